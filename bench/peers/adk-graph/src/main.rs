//! adk-graph 2.3.0: JSON-map state with reducers, Pregel executor. `bench-adk-graph CASE N`
//! There is no Send with per-task input, so W3 uses N distinct nodes started in parallel.
#[path = "../../../common.rs"]
mod common;
use adk_graph::MemoryCheckpointer;
use adk_graph::prelude::*;
use common::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SYS: &str = "adk-graph";
static THREAD: AtomicUsize = AtomicUsize::new(0);

fn conf() -> ExecutionConfig {
    ExecutionConfig::new(&format!("t{}", THREAD.fetch_add(1, Relaxed))).with_recursion_limit(1_000_000_000)
}
fn st(k: &str, v: Value) -> State {
    State::from([(k.to_string(), v)])
}
fn done(g: StateGraph, cp: Option<Arc<dyn Checkpointer>>) -> CompiledGraph {
    let g = g.compile().unwrap().with_recursion_limit(1_000_000_000);
    match cp {
        Some(c) => g.with_checkpointer_arc(c),
        None => g,
    }
}

fn g_chain(n: usize, cp: Option<Arc<dyn Checkpointer>>) -> CompiledGraph {
    let mut g = StateGraph::with_channels(&["x"]);
    let mut prev = START.to_string();
    for i in 0..n {
        let name = format!("n{i}");
        g = g.add_node_fn(&name, |c| async move {
            Ok(NodeOutput::new().with_update("x", c.get("x").unwrap().as_i64().unwrap() + 1))
        });
        g = g.add_edge(&prev, &name);
        prev = name;
    }
    done(g.add_edge(&prev, END), cp)
}

fn g_loop(n: usize) -> CompiledGraph {
    let g = StateGraph::new(StateSchema::builder().counter_channel("n").build())
        .add_node_fn("tick", |_| async { Ok(NodeOutput::new().with_update("n", 1)) })
        .add_edge(START, "tick")
        .add_conditional_edges(
            "tick",
            move |s| {
                if (s["n"].as_f64().unwrap() as usize) < n { "tick".into() } else { END.into() }
            },
            [("tick", "tick"), (END, END)],
        );
    done(g, None)
}

fn g_fan(n: usize) -> CompiledGraph {
    let mut g = StateGraph::new(StateSchema::builder().list_channel("items").channel("total").build());
    g = g.add_node_fn("join", |c| async move {
        Ok(NodeOutput::new().with_update("total", c.get("items").unwrap().as_array().unwrap().len()))
    });
    for i in 0..n {
        let name = format!("w{i}");
        g = g.add_node_fn(&name, move |_| async move { Ok(NodeOutput::new().with_update("items", json!([i]))) });
        g = g.add_edge(START, &name).add_edge(&name, "join");
    }
    done(g.add_edge("join", END), None)
}

fn g_react(turns: usize, cp: Option<Arc<dyn Checkpointer>>) -> CompiledGraph {
    let merge = Reducer::Custom(Arc::new(|l: Value, r: Value| {
        let mut l = match l {
            Value::Array(a) => a,
            _ => vec![],
        };
        if let Value::Array(r) = r {
            for m in r {
                match l.iter().rposition(|x| x["id"] == m["id"]) {
                    Some(i) => l[i] = m,
                    None => l.push(m),
                }
            }
        }
        Value::Array(l)
    }));
    let g = StateGraph::new(StateSchema::builder().channel_with_reducer("messages", merge).build())
        .add_node_fn("model", move |c| async move {
            let n = c.get("messages").unwrap().as_array().unwrap().len();
            Ok(NodeOutput::new().with_update("messages", json!([model(n, turns)])))
        })
        .add_node_fn("tools", |c| async move {
            let last: Msg =
                serde_json::from_value(c.get("messages").unwrap().as_array().unwrap().last().unwrap().clone()).unwrap();
            Ok(NodeOutput::new().with_update("messages", json!([tool(&last)])))
        })
        .add_edge(START, "model")
        .add_conditional_edges(
            "model",
            |s| {
                let last = s["messages"].as_array().unwrap().last().unwrap();
                if last["tool_calls"].as_array().is_some_and(|t| !t.is_empty()) { "tools".into() } else { END.into() }
            },
            [("tools", "tools"), (END, END)],
        );
    // A node with two direct in-edges (START and tools) is silently made a fan-in node: each visit then stores the
    // whole state inside the state under "model_fan_in" (cubic time). ADK_DIRECT=1 shows that; the default avoids it
    // by returning to the model through a conditional edge.
    let g = if std::env::var("ADK_DIRECT").is_ok() {
        g.add_edge("tools", "model")
    } else {
        g.add_conditional_edges("tools", |_| "model".into(), [("model", "model")])
    };
    done(g, cp)
}

async fn run_chat(g: &CompiledGraph, turns: usize) {
    let o = g.invoke(st("messages", json!([user()])), conf()).await.unwrap();
    assert_eq!(o["messages"].as_array().unwrap().len(), 2 * turns + 2);
    if std::env::var("ADK_SIZES").is_ok() {
        let sizes: Vec<_> = o.iter().map(|(k, v)| (k.clone(), v.to_string().len())).collect();
        eprintln!("final state, bytes per key: {sizes:?}");
    }
}

/// Everything runs on a worker thread: from the `block_on` thread each spawn would cost a cross-thread wake-up.
#[tokio::main]
async fn main() {
    tokio::spawn(bench()).await.unwrap()
}

async fn bench() {
    let (case, n) = args();
    match case.as_str() {
        "w1" => {
            let g = g_chain(n, None);
            let t = measure(|| async { assert_eq!(g.invoke(st("x", json!(0)), conf()).await.unwrap()["x"], json!(n)) })
                .await;
            report(SYS, "W1", n, &t, n, json!({}))
        }
        "w2" => {
            let g = g_loop(n);
            let t = measure(|| async {
                assert_eq!(g.invoke(st("n", json!(0)), conf()).await.unwrap()["n"].as_f64().unwrap() as usize, n)
            })
            .await;
            report(SYS, "W2", n, &t, n, json!({}))
        }
        "w3" => {
            let g = g_fan(n);
            let o = g.invoke(st("items", json!([])), conf()).await.unwrap();
            let items: Vec<usize> = serde_json::from_value(o["items"].clone()).unwrap();
            let t = measure(|| async {
                g.invoke(st("items", json!([])), conf()).await.unwrap();
            })
            .await;
            report(
                SYS,
                "W3",
                n,
                &t,
                2,
                json!({"us_per_task": median(&t) / n as f64 * 1e6, "total": o["total"], "items": items.len(),
                "in_order": items == (0..n).collect::<Vec<_>>(), "note": "static nodes, no Send"}),
            )
        }
        "w5" => {
            let g = g_react(n, None);
            let t = measure(|| run_chat(&g, n)).await;
            report(SYS, "W5", n, &t, 2 * n + 1, json!({}))
        }
        "w6mem" => {
            // a fresh saver per run, so that peak RSS is that of one run
            let t = measure(|| async {
                let g = g_react(n, Some(Arc::new(MemoryCheckpointer::new())));
                run_chat(&g, n).await
            })
            .await;
            report(SYS, "W6-memory", n, &t, 2 * n + 1, json!({}))
        }
        "w6sql" => {
            let p = fresh_db("adk");
            let url = format!("sqlite:{p}?mode=rwc");
            let g = g_react(n, Some(Arc::new(SqliteCheckpointer::new(&url).await.unwrap())));
            let t = measure(|| run_chat(&g, n)).await;
            drop(g);
            drop_db(&p);
            let g = g_react(n, Some(Arc::new(SqliteCheckpointer::new(&url).await.unwrap())));
            run_chat(&g, n).await;
            let b = db_bytes(&p);
            drop_db(&p);
            report(SYS, "W6-sqlite", n, &t, 2 * n + 1, json!({"bytes_total": b}))
        }
        "w7" => {
            let t = measure(|| async {
                let g = g_chain(10, Some(Arc::new(MemoryCheckpointer::new())));
                let g = &g;
                let outs =
                    futures::future::join_all((0..n).map(|_| async move {
                        g.invoke(st("x", json!(0)), conf()).await.unwrap()["x"].as_i64().unwrap()
                    }))
                    .await;
                assert!(outs.iter().all(|x| *x == 10));
            })
            .await;
            report(SYS, "W7-memory", n, &t, n * 10, json!({"runs_per_s": n as f64 / median(&t)}))
        }
        o => eprintln!("no case {o}"),
    }
}
