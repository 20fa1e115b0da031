//! langgraph 0.2.5 (Onelevenvy): JSON channels, Pregel loop. `bench-langgraph CASE N`
//! Routers return only a node name and nodes cannot return Send, so W3 uses N distinct nodes.
#[path = "../../../common.rs"]
mod common;
use common::*;
use langgraph::channels::{BinaryOperatorAggregate, Channel, LastValue};
use langgraph::checkpoint::{BaseCheckpointSaver, InMemorySaver};
use langgraph::prelude::*;
use langgraph::sqlite::SqliteSaver;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SYS: &str = "langgraph-rs";
static THREAD: AtomicUsize = AtomicUsize::new(0);
type Saver = Option<Arc<dyn BaseCheckpointSaver>>;

fn conf(thread: bool) -> RunnableConfig {
    let mut c = RunnableConfig::new();
    c.insert("recursion_limit".into(), json!(1_000_000_000u64));
    if thread {
        c.insert(
            "configurable".into(),
            json!({"thread_id": format!("t{}", THREAD.fetch_add(1, Relaxed)), "checkpoint_ns": ""}),
        );
    }
    c
}
fn done(mut g: StateGraph, s: Saver) -> CompiledStateGraph {
    let b = g.compile_builder().recursion_limit(1_000_000_000);
    match s {
        Some(s) => b.checkpointer(s).build().unwrap(),
        None => b.build().unwrap(),
    }
}
fn chans(v: Vec<(&str, Box<dyn Channel>)>) -> HashMap<String, Box<dyn Channel>> {
    v.into_iter().map(|(k, c)| (k.to_string(), c)).collect()
}
fn append(a: &JsonValue, b: &JsonValue) -> JsonValue {
    let mut v = a.as_array().cloned().unwrap_or_default();
    v.extend(b.as_array().cloned().unwrap_or_default());
    JsonValue::Array(v)
}
fn merge(a: &JsonValue, b: &JsonValue) -> JsonValue {
    let mut l = a.as_array().cloned().unwrap_or_default();
    for m in b.as_array().cloned().unwrap_or_default() {
        match l.iter().rposition(|x| x["id"] == m["id"]) {
            Some(i) => l[i] = m,
            None => l.push(m),
        }
    }
    JsonValue::Array(l)
}

fn g_chain(n: usize, s: Saver) -> CompiledStateGraph {
    let mut g = StateGraph::new(chans(vec![("x", Box::new(LastValue::new("x")))]));
    let mut prev = START.to_string();
    for i in 0..n {
        let name = format!("n{i}");
        g.add_node(name.clone(), |s: JsonValue, _c: RunnableConfig| async move {
            Ok(json!({"x": s["x"].as_i64().unwrap_or(0) + 1}))
        })
        .unwrap();
        g.add_edge(prev, name.clone()).unwrap();
        prev = name;
    }
    g.add_edge(prev, END).unwrap();
    done(g, s)
}
/// The router of this crate is given the node's own output, not the merged state, so a counter reducer
/// (node returns {"n": 1}) never ends the loop. The node therefore returns the absolute count in a LastValue.
fn g_loop(n: usize) -> CompiledStateGraph {
    let mut g = StateGraph::new(chans(vec![("n", Box::new(LastValue::new("n")))]));
    g.add_node(
        "tick",
        |s: JsonValue, _c: RunnableConfig| async move { Ok(json!({"n": s["n"].as_i64().unwrap_or(0) + 1})) },
    )
    .unwrap();
    g.add_edge(START, "tick").unwrap();
    g.add_conditional_edges(
        "tick",
        RoutingFn(
            move |s: &JsonValue| {
                if (s["n"].as_i64().unwrap_or(0) as usize) < n { "tick".to_string() } else { END.to_string() }
            },
        ),
        None,
    )
    .unwrap();
    done(g, None)
}
fn g_fan(n: usize) -> CompiledStateGraph {
    let mut g = StateGraph::new(chans(vec![
        ("items", Box::new(BinaryOperatorAggregate::new("items", append))),
        ("total", Box::new(LastValue::new("total"))),
    ]));
    g.add_node("join", |s: JsonValue, _c: RunnableConfig| async move {
        Ok(json!({"total": s["items"].as_array().map_or(0, |a| a.len())}))
    })
    .unwrap();
    for i in 0..n {
        let w = format!("w{i}");
        g.add_node(w.clone(), move |_s: JsonValue, _c: RunnableConfig| async move { Ok(json!({"items": [i]})) })
            .unwrap();
        g.add_edge(START, w.clone()).unwrap();
        g.add_edge(w, "join").unwrap();
    }
    g.add_edge("join", END).unwrap();
    done(g, None)
}
fn g_react(turns: usize, s: Saver) -> CompiledStateGraph {
    let mut g = StateGraph::new(chans(vec![("messages", Box::new(BinaryOperatorAggregate::new("messages", merge)))]));
    g.add_node("model", move |s: JsonValue, _c: RunnableConfig| async move {
        Ok(json!({"messages": [model(s["messages"].as_array().unwrap().len(), turns)]}))
    })
    .unwrap();
    g.add_node("tools", |s: JsonValue, _c: RunnableConfig| async move {
        let last: Msg = serde_json::from_value(s["messages"].as_array().unwrap().last().unwrap().clone()).unwrap();
        Ok(json!({"messages": [tool(&last)]}))
    })
    .unwrap();
    g.add_edge(START, "model").unwrap();
    g.add_conditional_edges(
        "model",
        RoutingFn(|s: &JsonValue| {
            let last = s["messages"].as_array().unwrap().last().unwrap();
            if last["tool_calls"].as_array().is_some_and(|t| !t.is_empty()) {
                "tools".to_string()
            } else {
                END.to_string()
            }
        }),
        None,
    )
    .unwrap();
    g.add_edge("tools", "model").unwrap();
    done(g, s)
}
async fn run_chat(g: &CompiledStateGraph, turns: usize, thread: bool) {
    let o = g.ainvoke(&json!({"messages": [user()]}), &conf(thread)).await.unwrap();
    assert_eq!(o["messages"].as_array().unwrap().len(), 2 * turns + 2);
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
            let t = measure(|| async {
                assert_eq!(g.ainvoke(&json!({"x": 0}), &conf(false)).await.unwrap()["x"], json!(n))
            })
            .await;
            report(SYS, "W1", n, &t, n, json!({}))
        }
        "w2" => {
            let g = g_loop(n);
            let t = measure(|| async {
                assert_eq!(g.ainvoke(&json!({"n": 0}), &conf(false)).await.unwrap()["n"], json!(n))
            })
            .await;
            report(SYS, "W2", n, &t, n, json!({}))
        }
        "w3" => {
            let g = g_fan(n);
            let o = g.ainvoke(&json!({"items": []}), &conf(false)).await.unwrap();
            let items: Vec<usize> = serde_json::from_value(o["items"].clone()).unwrap();
            let t = measure(|| async {
                g.ainvoke(&json!({"items": []}), &conf(false)).await.unwrap();
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
            let t = measure(|| run_chat(&g, n, false)).await;
            report(SYS, "W5", n, &t, 2 * n + 1, json!({}))
        }
        "w6mem" => {
            // a fresh saver per run, so that peak RSS is that of one run
            let t = measure(|| async {
                let g = g_react(n, Some(Arc::new(InMemorySaver::new())));
                run_chat(&g, n, true).await
            })
            .await;
            report(SYS, "W6-memory", n, &t, 2 * n + 1, json!({}))
        }
        "w6sql" => {
            let p = fresh_db("lg");
            let mk = || async {
                let s = SqliteSaver::from_conn_string(&format!("sqlite:{p}?mode=rwc")).await.unwrap();
                s.setup().await.unwrap();
                g_react(n, Some(Arc::new(s)))
            };
            let g = mk().await;
            let t = measure(|| run_chat(&g, n, true)).await;
            drop(g);
            drop_db(&p);
            let g = mk().await;
            run_chat(&g, n, true).await;
            let b = db_bytes(&p);
            drop_db(&p);
            report(SYS, "W6-sqlite", n, &t, 2 * n + 1, json!({"bytes_total": b}))
        }
        "w7" => {
            let t = measure(|| async {
                let g = g_chain(10, Some(Arc::new(InMemorySaver::new())));
                let g = &g;
                let outs = futures::future::join_all((0..n).map(|_| async move {
                    g.ainvoke(&json!({"x": 0}), &conf(true)).await.unwrap()["x"].as_i64().unwrap()
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
