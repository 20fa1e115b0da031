//! graph-flow 0.8.1: a task walker over a shared JSON context (no channels, no supersteps). `bench-graph-flow CASE N`
//! W3 uses FanOutTask with N child tasks writing distinct keys (no reducer exists). Only memory and Postgres storage.
#[path = "../../../common.rs"]
mod common;
use async_trait::async_trait;
use common::*;
use graph_flow::{
    Context, ExecutionStatus, FanOutTask, FlowRunner, Graph, GraphBuilder, InMemorySessionStorage, NextAction, Session,
    SessionStorage, Task, TaskResult,
};
use serde_json::json;
use std::sync::Arc;

const SYS: &str = "graph-flow";

/// A task made from a name, a closure on the context and the action to return.
struct Fun<F> {
    id: String,
    f: F,
}
#[async_trait]
impl<F: Fn(&Context) -> NextAction + Send + Sync> Task for Fun<F> {
    fn id(&self) -> &str {
        &self.id
    }
    async fn run(&self, c: Context) -> graph_flow::Result<TaskResult> {
        let next = (self.f)(&c);
        Ok(TaskResult::new(None, next))
    }
}
fn fun<F: Fn(&Context) -> NextAction + Send + Sync + 'static>(id: String, f: F) -> Arc<dyn Task> {
    Arc::new(Fun { id, f })
}

fn g_chain(n: usize, go: NextAction) -> Graph {
    let mut b = GraphBuilder::new("chain");
    for i in 0..n {
        let go = if i + 1 == n { NextAction::End } else { go.clone() };
        b = b.add_task(fun(format!("n{i}"), move |c| {
            c.set("x", c.get::<i64>("x").unwrap_or(0) + 1).unwrap();
            go.clone()
        }));
    }
    for i in 1..n {
        b = b.add_edge(format!("n{}", i - 1), format!("n{i}"));
    }
    b.build().unwrap()
}
fn g_loop(n: usize) -> Graph {
    GraphBuilder::new("loop")
        .add_task(fun("tick".into(), |c| {
            c.set("n", c.get::<i64>("n").unwrap_or(0) + 1).unwrap();
            NextAction::ContinueAndExecute
        }))
        .add_task(fun("done".into(), |_| NextAction::End))
        .add_conditional_edge("tick", move |c| (c.get::<i64>("n").unwrap_or(0) as usize) < n, "tick", "done")
        .build()
        .unwrap()
}
fn g_fan(n: usize) -> Graph {
    let kids = (0..n)
        .map(|i| {
            fun(format!("w{i}"), move |c| {
                c.set(format!("item.{i}"), i).unwrap();
                NextAction::End
            })
        })
        .collect();
    GraphBuilder::new("fan")
        .add_task(FanOutTask::new("fan", kids).with_next_action(NextAction::ContinueAndExecute))
        .add_task(fun("join".into(), move |c| {
            let items: Vec<usize> = (0..n).filter_map(|i| c.get(&format!("item.{i}"))).collect();
            c.set("total", items.len()).unwrap();
            NextAction::End
        }))
        .add_edge("fan", "join")
        .build()
        .unwrap()
}
fn g_react(turns: usize, go: NextAction) -> Graph {
    let (go1, go2) = (go.clone(), go);
    GraphBuilder::new("react")
        .add_task(fun("model".into(), move |c| {
            let mut v: Vec<Msg> = c.get("messages").unwrap();
            let m = model(v.len(), turns);
            let end = m.tool_calls.is_empty();
            add_messages(&mut v, vec![m]);
            c.set("messages", v).unwrap();
            if end { NextAction::End } else { go1.clone() }
        }))
        .add_task(fun("tools".into(), move |c| {
            let mut v: Vec<Msg> = c.get("messages").unwrap();
            let m = tool(v.last().unwrap());
            add_messages(&mut v, vec![m]);
            c.set("messages", v).unwrap();
            go2.clone()
        }))
        .add_edge("model", "tools")
        .add_edge("tools", "model")
        .build()
        .unwrap()
}
async fn direct(g: &Graph, start: &str, key: &str, val: serde_json::Value) -> Session {
    let mut s = Session::new_from_task("s".into(), start);
    s.context.set(key, val).unwrap();
    let r = g.execute_session(&mut s).await.unwrap();
    assert!(matches!(r.status, ExecutionStatus::Completed));
    s
}
/// One FlowRunner::run per step: load session, run one task, save session.
async fn stepped(
    r: &FlowRunner,
    st: &Arc<InMemorySessionStorage>,
    id: String,
    start: &str,
    key: &str,
    val: serde_json::Value,
) -> Session {
    let s = Session::new_from_task(id.clone(), start);
    s.context.set(key, val).unwrap();
    st.save(s).await.unwrap();
    loop {
        if matches!(r.run(&id).await.unwrap().status, ExecutionStatus::Completed) {
            return st.get(&id).await.unwrap().unwrap();
        }
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
            let g = g_chain(n, NextAction::ContinueAndExecute);
            let t = measure(|| async {
                assert_eq!(direct(&g, "n0", "x", json!(0)).await.context.get::<i64>("x"), Some(n as i64))
            })
            .await;
            report(SYS, "W1", n, &t, n, json!({}))
        }
        "w2" => {
            let g = g_loop(n);
            let t = measure(|| async {
                assert_eq!(direct(&g, "tick", "n", json!(0)).await.context.get::<i64>("n"), Some(n as i64))
            })
            .await;
            report(SYS, "W2", n, &t, n, json!({}))
        }
        "w3" => {
            let g = g_fan(n);
            let t = measure(|| async {
                assert_eq!(direct(&g, "fan", "z", json!(0)).await.context.get::<usize>("total"), Some(n))
            })
            .await;
            report(
                SYS,
                "W3",
                n,
                &t,
                2,
                json!({"us_per_task": median(&t) / n as f64 * 1e6, "note": "FanOutTask, distinct keys, no reducer"}),
            )
        }
        "w5" => {
            let g = g_react(n, NextAction::ContinueAndExecute);
            let t = measure(|| async {
                assert_eq!(
                    direct(&g, "model", "messages", json!([user()]))
                        .await
                        .context
                        .get::<Vec<Msg>>("messages")
                        .unwrap()
                        .len(),
                    2 * n + 2
                )
            })
            .await;
            report(SYS, "W5", n, &t, 2 * n + 1, json!({}))
        }
        "w6mem" => {
            let g = Arc::new(g_react(n, NextAction::Continue));
            let st = Arc::new(InMemorySessionStorage::new());
            let r = FlowRunner::new(g, st.clone());
            let k = std::sync::atomic::AtomicUsize::new(0);
            let t = measure(|| async {
                let id = format!("s{}", k.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
                assert_eq!(
                    stepped(&r, &st, id, "model", "messages", json!([user()]))
                        .await
                        .context
                        .get::<Vec<Msg>>("messages")
                        .unwrap()
                        .len(),
                    2 * n + 2
                )
            })
            .await;
            report(SYS, "W6-memory", n, &t, 2 * n + 1, json!({"note": "latest session only, no history"}))
        }
        "w7" => {
            let t = measure(|| async {
                let st = Arc::new(InMemorySessionStorage::new());
                let r = FlowRunner::new(Arc::new(g_chain(10, NextAction::Continue)), st.clone());
                let (r, st) = (&r, &st);
                let o = futures::future::join_all((0..n).map(|i| async move {
                    stepped(r, st, format!("s{i}"), "n0", "x", json!(0)).await.context.get::<i64>("x")
                }))
                .await;
                assert!(o.iter().all(|x| *x == Some(10)));
            })
            .await;
            let extra = json!({"runs_per_s": n as f64 / median(&t), "note": "latest session only, no history"});
            report(SYS, "W7-memory", n, &t, n * 10, extra)
        }
        o => eprintln!("no case {o}"),
    }
}
