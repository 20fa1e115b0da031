//! weavegraph 0.7.0: fixed channels (messages, extra JSON map, errors), frontier supersteps. `bench-weavegraph CASE N`
//! A Message is role + content only, so the ReAct payload travels as JSON text in `content`.
//! No Send with payload: W3 uses N distinct nodes. Nodes always receive a clone of the whole state.
#[path = "../../../common.rs"]
mod common;
use async_trait::async_trait;
use common::*;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::sync::Arc;
use weavegraph::app::App;
use weavegraph::channels::Channel;
use weavegraph::graphs::GraphBuilder;
use weavegraph::message::{Message, Role};
use weavegraph::node::{Node, NodeContext, NodeError, NodePartial};
use weavegraph::runtimes::checkpointer::InMemoryCheckpointer;
use weavegraph::runtimes::{AppRunner, Checkpointer, EventBusConfig, RuntimeConfig, SQLiteCheckpointer};
use weavegraph::state::{StateSnapshot, VersionedState};
use weavegraph::types::NodeKind;

const SYS: &str = "weavegraph";
type Cp = Option<Arc<dyn Checkpointer>>;

struct Fun<F>(F);
#[async_trait]
impl<F: Fn(StateSnapshot) -> NodePartial + Send + Sync> Node for Fun<F> {
    async fn run(&self, s: StateSnapshot, _c: NodeContext) -> Result<NodePartial, NodeError> {
        Ok((self.0)(s))
    }
}
fn k(s: impl Into<String>) -> NodeKind {
    NodeKind::Custom(s.into())
}
fn put(key: &str, v: Value) -> NodePartial {
    let mut m = FxHashMap::default();
    m.insert(key.to_string(), v);
    NodePartial::new().with_extra(m)
}
fn conf(cp: Cp) -> RuntimeConfig {
    let c = RuntimeConfig::default().with_event_bus(EventBusConfig::new(1024, vec![]));
    match cp {
        Some(cp) => c.checkpointer_custom(cp),
        None => c,
    }
}
fn int(s: &StateSnapshot, key: &str) -> i64 {
    s.extra.get(key).and_then(Value::as_i64).unwrap_or(0)
}

fn g_chain(n: usize, cp: Cp) -> App {
    let mut b = GraphBuilder::new().with_runtime_config(conf(cp));
    let mut prev = NodeKind::Start;
    for i in 0..n {
        b = b
            .add_node(k(format!("n{i}")), Fun(|s: StateSnapshot| put("x", json!(int(&s, "x") + 1))))
            .add_edge(prev, k(format!("n{i}")));
        prev = k(format!("n{i}"));
    }
    b.add_edge(prev, NodeKind::End).compile().unwrap()
}
fn g_loop(n: usize) -> App {
    GraphBuilder::new()
        .with_runtime_config(conf(None))
        .add_node(k("tick"), Fun(|s: StateSnapshot| put("n", json!(int(&s, "n") + 1))))
        .add_edge(NodeKind::Start, k("tick"))
        .add_conditional_edge(
            k("tick"),
            Arc::new(move |s| if (int(&s, "n") as usize) < n { vec!["tick".into()] } else { vec!["End".into()] }),
        )
        .compile()
        .unwrap()
}
fn g_fan(n: usize) -> App {
    let mut b = GraphBuilder::new()
        .with_runtime_config(conf(None))
        .add_node(k("join"), Fun(|s: StateSnapshot| put("total", json!(s.messages.len()))));
    for i in 0..n {
        let w = k(format!("w{i}"));
        b = b
            .add_node(
                w.clone(),
                Fun(move |_| {
                    NodePartial::new().with_messages(vec![Message::with_role(Role::Assistant, &i.to_string())])
                }),
            )
            .add_edge(NodeKind::Start, w.clone())
            .add_edge(w, k("join"));
    }
    b.add_edge(k("join"), NodeKind::End).compile().unwrap()
}
fn msg(m: &Msg) -> NodePartial {
    NodePartial::new().with_messages(vec![Message::with_role(Role::Assistant, &serde_json::to_string(m).unwrap())])
}
fn last(s: &StateSnapshot) -> Msg {
    serde_json::from_str(&s.messages.last().unwrap().content).unwrap()
}
fn g_react(turns: usize, cp: Cp) -> App {
    GraphBuilder::new()
        .with_runtime_config(conf(cp))
        .add_node(k("model"), Fun(move |s: StateSnapshot| msg(&model(s.messages.len(), turns))))
        .add_node(k("tools"), Fun(|s: StateSnapshot| msg(&tool(&last(&s)))))
        .add_edge(NodeKind::Start, k("model"))
        .add_conditional_edge(
            k("model"),
            Arc::new(|s| if last(&s).tool_calls.is_empty() { vec!["End".into()] } else { vec!["tools".into()] }),
        )
        .add_edge(k("tools"), k("model"))
        .compile()
        .unwrap()
}
fn start() -> VersionedState {
    VersionedState::new_with_messages(vec![])
}
fn chat() -> VersionedState {
    VersionedState::new_with_messages(vec![Message::with_role(Role::User, &serde_json::to_string(&user()).unwrap())])
}
/// Without checkpoints: a runner with autosave off.
async fn plain(app: &Arc<App>, s: VersionedState) -> VersionedState {
    let mut r = AppRunner::builder().app_arc(app.clone()).autosave(false).start_listener(false).build().await;
    r.create_session("s".into(), s).await.unwrap();
    r.run_until_complete("s").await.unwrap()
}
fn extra(s: &VersionedState, key: &str) -> i64 {
    s.extra.snapshot().get(key).and_then(Value::as_i64).unwrap_or(0)
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
            let g = Arc::new(g_chain(n, None));
            let t = measure(|| async { assert_eq!(extra(&plain(&g, start()).await, "x"), n as i64) }).await;
            report(SYS, "W1", n, &t, n, json!({}))
        }
        "w2" => {
            let g = Arc::new(g_loop(n));
            let t = measure(|| async { assert_eq!(extra(&plain(&g, start()).await, "n"), n as i64) }).await;
            report(SYS, "W2", n, &t, n, json!({}))
        }
        "w3" => {
            let g = Arc::new(g_fan(n));
            let o = plain(&g, start()).await;
            let items: Vec<usize> = o.messages.snapshot().iter().map(|m| m.content.parse().unwrap()).collect();
            let t = measure(|| async {
                plain(&g, start()).await;
            })
            .await;
            report(
                SYS,
                "W3",
                n,
                &t,
                2,
                json!({"us_per_task": median(&t) / n as f64 * 1e6, "total": extra(&o, "total"), "items": items.len(),
                "in_order": items == (0..n).collect::<Vec<_>>(), "note": "static nodes, no Send; concurrency = cores"}),
            )
        }
        "w5" => {
            let g = Arc::new(g_react(n, None));
            let t =
                measure(|| async { assert_eq!(plain(&g, chat()).await.messages.snapshot().len(), 2 * n + 2) }).await;
            report(SYS, "W5", n, &t, 2 * n + 1, json!({}))
        }
        "w6mem" => {
            let g = g_react(n, Some(Arc::new(InMemoryCheckpointer::new())));
            let t =
                measure(|| async { assert_eq!(g.invoke(chat()).await.unwrap().messages.snapshot().len(), 2 * n + 2) })
                    .await;
            report(SYS, "W6-memory", n, &t, 2 * n + 1, json!({"note": "keeps only the latest snapshot"}))
        }
        "w6sql" => {
            let p = fresh_db("weave");
            std::fs::File::create(&p).unwrap();
            let g = g_react(n, Some(Arc::new(SQLiteCheckpointer::connect(&format!("sqlite://{p}")).await.unwrap())));
            let t =
                measure(|| async { assert_eq!(g.invoke(chat()).await.unwrap().messages.snapshot().len(), 2 * n + 2) })
                    .await;
            drop(g);
            drop_db(&p);
            std::fs::File::create(&p).unwrap();
            let g = g_react(n, Some(Arc::new(SQLiteCheckpointer::connect(&format!("sqlite://{p}")).await.unwrap())));
            g.invoke(chat()).await.unwrap();
            let b = db_bytes(&p);
            drop_db(&p);
            report(SYS, "W6-sqlite", n, &t, 2 * n + 1, json!({"bytes_total": b}))
        }
        "w7" => {
            let t = measure(|| async {
                let g = g_chain(10, Some(Arc::new(InMemoryCheckpointer::new())));
                let g = &g;
                let o = futures::future::join_all(
                    (0..n).map(|_| async move { extra(&g.invoke(start()).await.unwrap(), "x") }),
                )
                .await;
                assert!(o.iter().all(|x| *x == 10));
            })
            .await;
            let extra = json!({"runs_per_s": n as f64 / median(&t), "note": "keeps only the latest snapshot"});
            report(SYS, "W7-memory", n, &t, n * 10, extra)
        }
        o => eprintln!("no case {o}"),
    }
}
