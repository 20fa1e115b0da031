//! cognis-graph 0.3.2: typed state, Pregel supersteps, nodes choose their successor (Goto, with Send payloads).
//! `bench-cognis-graph CASE N`
#[path = "../../../common.rs"]
mod common;
use cognis_graph::cognis_core::{Runnable, RunnableConfig};
use cognis_graph::{
    Checkpointer, CompiledGraph, Goto, Graph, GraphState, InMemoryCheckpointer, NodeCtx, NodeOut, SqliteCheckpointer,
    node_fn,
};
use common::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SYS: &str = "cognis-graph";
static JOINS: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct St {
    x: i64,
    n: i64,
    items: Vec<i64>,
    messages: Vec<Msg>,
}
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Up {
    x: Option<i64>,
    n: i64,
    items: Vec<i64>,
    messages: Vec<Msg>,
}
impl GraphState for St {
    type Update = Up;
    fn apply(&mut self, u: Up) {
        if let Some(x) = u.x {
            self.x = x;
        }
        self.n += u.n;
        self.items.extend(u.items);
        add_messages(&mut self.messages, u.messages);
    }
}
fn out(update: Up, goto: Goto) -> cognis_graph::cognis_core::Result<NodeOut<St>> {
    Ok(NodeOut { update, goto })
}
fn conf() -> RunnableConfig {
    RunnableConfig { recursion_limit: u32::MAX, ..Default::default() }
}
type G = CompiledGraph<St>;

fn g_chain(n: usize) -> G {
    let mut g = Graph::<St>::new();
    for i in 0..n {
        let next = if i + 1 == n { Goto::End } else { Goto::node(format!("n{}", i + 1)) };
        g = g.node(
            format!("n{i}"),
            node_fn::<St, _, _>(format!("n{i}"), move |s: &St, _: &NodeCtx<'_>| {
                let (x, next) = (s.x + 1, next.clone());
                async move { out(Up { x: Some(x), ..Default::default() }, next) }
            }),
        );
    }
    g.start_at("n0").compile().unwrap()
}
fn g_loop(n: usize) -> G {
    Graph::<St>::new()
        .node(
            "tick",
            node_fn::<St, _, _>("tick", move |s: &St, _: &NodeCtx<'_>| {
                let more = (s.n as usize) + 1 < n;
                async move { out(Up { n: 1, ..Default::default() }, if more { Goto::node("tick") } else { Goto::End }) }
            }),
        )
        .start_at("tick")
        .compile()
        .unwrap()
}
fn g_fan(n: usize) -> G {
    Graph::<St>::new()
        .node(
            "fan",
            node_fn::<St, _, _>("fan", move |_: &St, _: &NodeCtx<'_>| async move {
                out(Up::default(), Goto::Send((0..n).map(|i| ("work".to_string(), json!(i))).collect()))
            }),
        )
        .node(
            "work",
            node_fn::<St, _, _>("work", |_: &St, c: &NodeCtx<'_>| {
                let i = c.payload().and_then(|p| p.as_i64()).unwrap_or(-1);
                async move { out(Up { items: vec![i], ..Default::default() }, Goto::node("join")) }
            }),
        )
        .node(
            "join",
            node_fn::<St, _, _>("join", |s: &St, _: &NodeCtx<'_>| {
                JOINS.fetch_add(1, Relaxed);
                let t = s.items.len() as i64;
                async move { out(Up { x: Some(t), ..Default::default() }, Goto::End) }
            }),
        )
        .start_at("fan")
        .compile()
        .unwrap()
}
fn g_react(turns: usize) -> G {
    Graph::<St>::new()
        .node(
            "model",
            node_fn::<St, _, _>("model", move |s: &St, _: &NodeCtx<'_>| {
                let m = model(s.messages.len(), turns);
                async move {
                    let goto = if m.tool_calls.is_empty() { Goto::End } else { Goto::node("tools") };
                    out(Up { messages: vec![m], ..Default::default() }, goto)
                }
            }),
        )
        .node(
            "tools",
            node_fn::<St, _, _>("tools", |s: &St, _: &NodeCtx<'_>| {
                let m = tool(s.messages.last().unwrap());
                async move { out(Up { messages: vec![m], ..Default::default() }, Goto::node("model")) }
            }),
        )
        .start_at("model")
        .compile()
        .unwrap()
}
fn chat() -> St {
    St { messages: vec![user()], ..Default::default() }
}
async fn sqlite(p: &str) -> Arc<dyn Checkpointer<St>> {
    std::fs::File::create(p).unwrap();
    Arc::new(SqliteCheckpointer::<St>::connect(&format!("sqlite://{p}")).await.unwrap())
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
            let g = g_chain(n);
            let t = measure(|| async { assert_eq!(g.invoke(St::default(), conf()).await.unwrap().x, n as i64) }).await;
            report(SYS, "W1", n, &t, n, json!({}))
        }
        "w2" => {
            let g = g_loop(n);
            let t = measure(|| async { assert_eq!(g.invoke(St::default(), conf()).await.unwrap().n, n as i64) }).await;
            report(SYS, "W2", n, &t, n, json!({}))
        }
        "w3" => {
            let g = g_fan(n);
            let o = g.invoke(St::default(), conf()).await.unwrap();
            let joins = JOINS.load(Relaxed);
            let t = measure(|| async {
                g.invoke(St::default(), conf()).await.unwrap();
            })
            .await;
            report(
                SYS,
                "W3",
                n,
                &t,
                3,
                json!({"us_per_task": median(&t) / n as f64 * 1e6, "total": o.x, "items": o.items.len(),
                "in_order": o.items == (0..n as i64).collect::<Vec<_>>(), "join_runs": joins}),
            )
        }
        "w5" => {
            let g = g_react(n);
            let t = measure(|| async { assert_eq!(g.invoke(chat(), conf()).await.unwrap().messages.len(), 2 * n + 2) })
                .await;
            report(SYS, "W5", n, &t, 2 * n + 1, json!({}))
        }
        "w6mem" => {
            // a fresh saver per run, so that peak RSS is that of one run
            let t = measure(|| async {
                let g = g_react(n).with_checkpointer(Arc::new(InMemoryCheckpointer::new()));
                assert_eq!(g.invoke(chat(), conf()).await.unwrap().messages.len(), 2 * n + 2)
            })
            .await;
            report(SYS, "W6-memory", n, &t, 2 * n + 1, json!({}))
        }
        "w6sql" => {
            let p = fresh_db("cognis");
            let g = g_react(n).with_checkpointer(sqlite(&p).await);
            let t = measure(|| async { assert_eq!(g.invoke(chat(), conf()).await.unwrap().messages.len(), 2 * n + 2) })
                .await;
            drop(g);
            drop_db(&p);
            let g = g_react(n).with_checkpointer(sqlite(&p).await);
            g.invoke(chat(), conf()).await.unwrap();
            let b = db_bytes(&p);
            drop_db(&p);
            report(SYS, "W6-sqlite", n, &t, 2 * n + 1, json!({"bytes_total": b}))
        }
        "w7" => {
            let t = measure(|| async {
                let g = g_chain(10).with_checkpointer(Arc::new(InMemoryCheckpointer::new()));
                let g = &g;
                let o = futures::future::join_all(
                    (0..n).map(|_| async move { g.invoke(St::default(), conf()).await.unwrap().x }),
                )
                .await;
                assert!(o.iter().all(|x| *x == 10));
            })
            .await;
            report(SYS, "W7-memory", n, &t, n * 10, json!({"runs_per_s": n as f64 / median(&t)}))
        }
        o => eprintln!("no case {o}"),
    }
}
