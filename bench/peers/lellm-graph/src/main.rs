//! lellm-graph 0.4.12: one-node-at-a-time walker over typed state + mutations. `bench-lellm-graph CASE N`
//! ParallelNode has static branches that each clone the whole state; its futures share one task.
//! Checkpoint stores: memory and files (no SQLite).
#[path = "../../../common.rs"]
mod common;
use common::*;
use lellm_graph::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

const SYS: &str = "lellm-graph";

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct St {
    x: i64,
    items: Vec<i64>,
    messages: Vec<Msg>,
}
#[derive(Debug, Clone)]
enum Mu {
    SetX(i64),
    AddX(i64),
    Message(Msg),
}
impl lellm_graph::state::workflow_state::StateMutation<St> for Mu {
    fn apply(self, s: &mut St) {
        match self {
            Mu::SetX(v) => s.x = v,
            Mu::AddX(v) => s.x += v,
            Mu::Message(m) => add_messages(&mut s.messages, vec![m]),
        }
    }
}
impl WorkflowState for St {
    type Checkpoint = St;
    type Mutation = Mu;
    fn snapshot(&self) -> St {
        self.clone()
    }
    fn restore(c: St) -> St {
        c
    }
}
/// Appends every branch's new items to the base, in branch order.
struct Concat;
impl MergeStrategy<St> for Concat {
    fn merge(base: &St, branches: Vec<St>) -> Result<St, WorkflowError> {
        let mut out = base.clone();
        for b in branches {
            out.items.extend_from_slice(&b.items[base.items.len()..]);
        }
        Ok(out)
    }
    fn default_instance() -> Self {
        Concat
    }
}
type G = Graph<St, Concat>;
type B = GraphBuilder<St, Concat>;

fn node(b: &mut B, name: &str, f: impl Fn(&mut NodeContext<'_, St>) -> Result<(), GraphError> + Send + Sync + 'static) {
    b.node(name, NodeKind::Task(TaskNode::new(name, f)));
}
fn g_chain(n: usize) -> G {
    let mut b = B::new("chain");
    b.start("n0");
    for i in 0..n {
        node(&mut b, &format!("n{i}"), |c| {
            let x = c.state().x + 1;
            c.record(Mu::SetX(x));
            Ok(())
        });
        if i > 0 {
            b.edge(format!("n{}", i - 1), format!("n{i}"));
        }
    }
    b.end(format!("n{}", n - 1));
    b.build().unwrap()
}
fn g_loop(n: usize) -> G {
    let mut b = B::new("loop");
    b.start("tick");
    node(&mut b, "tick", |c| {
        c.record(Mu::AddX(1));
        Ok(())
    });
    node(&mut b, "done", |_| Ok(()));
    b.edge_if("tick", "tick", move |s: &St| (s.x as usize) < n).max_visits(10_000_000);
    b.edge_fallback("tick", "done");
    b.end("done");
    b.build().unwrap()
}
/// ParallelNode's builder is private for typed state, so W3 runs on the crate's JSON `State`.
struct JsonConcat;
impl MergeStrategy<State> for JsonConcat {
    fn merge(base: &State, branches: Vec<State>) -> Result<State, WorkflowError> {
        let mut out = base.clone();
        let mut items = vec![];
        for b in branches {
            items.extend(b.get("items").and_then(|v| v.as_array()).cloned().unwrap_or_default());
        }
        out.insert("items".into(), serde_json::Value::Array(items));
        Ok(out)
    }
    fn default_instance() -> Self {
        JsonConcat
    }
}
fn g_fan(n: usize) -> Graph<State, JsonConcat> {
    let mut p = ParallelNode::builder().merge_strategy::<JsonConcat>();
    for i in 0..n {
        p = p.branch(
            format!("w{i}"),
            Arc::new(TaskNode::new(format!("w{i}"), move |c: &mut NodeContext<'_, State>| {
                c.record(StateMutation::Put("items".into(), json!([i])));
                Ok(())
            })),
        );
    }
    let mut b = GraphBuilder::<State, JsonConcat>::new("fan");
    b.start("fan");
    b.node("fan", NodeKind::Parallel(p.build()));
    b.node(
        "join",
        NodeKind::Task(TaskNode::new("join", |c: &mut NodeContext<'_, State>| {
            let t = c.state().get("items").and_then(|v| v.as_array()).map_or(0, |a| a.len());
            c.record(StateMutation::Put("total".into(), json!(t)));
            Ok(())
        })),
    );
    b.edge("fan", "join");
    b.end("join");
    b.build().unwrap()
}
async fn run_fan(g: &Graph<State, JsonConcat>) -> State {
    let mut s = State::new();
    {
        let mut e = ExecutionEngine::new(&mut s, None, CancellationToken::new(), None, None);
        g.run_inline(&mut e, 1_000_000_000, &mut NoopStepCallback).await.unwrap();
    }
    s
}
fn g_react(turns: usize) -> G {
    let mut b = B::new("react");
    b.start("model");
    node(&mut b, "model", move |c| {
        let m = model(c.state().messages.len(), turns);
        c.record(Mu::Message(m));
        Ok(())
    });
    node(&mut b, "tools", |c| {
        let m = tool(c.state().messages.last().unwrap());
        c.record(Mu::Message(m));
        Ok(())
    });
    node(&mut b, "done", |_| Ok(()));
    b.edge_if("model", "tools", |s: &St| !s.messages.last().unwrap().tool_calls.is_empty()).max_visits(10_000_000);
    b.edge_fallback("model", "done");
    b.edge("tools", "model").max_visits(10_000_000);
    b.end("done");
    b.build().unwrap()
}

/// Saves every boundary into an InMemoryBlobStore, as CheckpointConfig::for_store does.
struct Sink {
    store: Arc<InMemoryBlobStore>,
    trace: TraceId,
}
#[async_trait::async_trait]
impl CheckpointSink<St> for Sink {
    async fn on_checkpoint(&mut self, s: &St, f: &FrameInfo) -> Result<(), CheckpointStoreError> {
        let cp = Checkpoint::new(f.next_node.clone(), s, 1, f.step);
        let blob = SerdeCheckpointCodec::<St>::new().serialize(&cp, 1)?;
        self.store.save_with_trace(&self.trace, &blob).await
    }
}
async fn run(g: &G, mut s: St, store: Option<Arc<InMemoryBlobStore>>) -> St {
    let mut sink = store.map(|store| Sink { store, trace: TraceId::new() });
    {
        let cp = sink.as_mut().map(|s| s as &mut dyn CheckpointSink<St>);
        let mut e = ExecutionEngine::new(&mut s, None, CancellationToken::new(), cp, None);
        g.run_inline(&mut e, 1_000_000_000, &mut NoopStepCallback).await.unwrap();
    }
    s
}
fn chat() -> St {
    St { messages: vec![user()], ..Default::default() }
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
            let t = measure(|| async { assert_eq!(run(&g, St::default(), None).await.x, n as i64) }).await;
            report(SYS, "W1", n, &t, n, json!({}))
        }
        "w2" => {
            let g = g_loop(n);
            let t = measure(|| async { assert_eq!(run(&g, St::default(), None).await.x, n as i64) }).await;
            report(SYS, "W2", n, &t, n, json!({}))
        }
        "w3" => {
            let g = g_fan(n);
            let o = run_fan(&g).await;
            let items: Vec<usize> = serde_json::from_value(o.get("items").unwrap().clone()).unwrap();
            let t = measure(|| async {
                run_fan(&g).await;
            })
            .await;
            report(
                SYS,
                "W3",
                n,
                &t,
                2,
                json!({"us_per_task": median(&t) / n as f64 * 1e6, "total": o.get("total"), "items": items.len(),
                "in_order": items == (0..n).collect::<Vec<_>>(), "note": "static branches, JSON state, one task"}),
            )
        }
        "w5" => {
            let g = g_react(n);
            let t = measure(|| async { assert_eq!(run(&g, chat(), None).await.messages.len(), 2 * n + 2) }).await;
            report(SYS, "W5", n, &t, 2 * n + 1, json!({}))
        }
        "w6mem" => {
            let g = g_react(n);
            let t = measure(|| async {
                assert_eq!(run(&g, chat(), Some(Arc::new(InMemoryBlobStore::new()))).await.messages.len(), 2 * n + 2)
            })
            .await;
            report(SYS, "W6-memory", n, &t, 2 * n + 1, json!({}))
        }
        "w7" => {
            let t = measure(|| async {
                let (g, store) = (g_chain(10), Arc::new(InMemoryBlobStore::new()));
                let g = &g;
                let o = futures::future::join_all((0..n).map(|_| {
                    let s = store.clone();
                    async move { run(g, St::default(), Some(s)).await.x }
                }))
                .await;
                assert!(o.iter().all(|x| *x == 10));
            })
            .await;
            report(SYS, "W7-memory", n, &t, n * 10, json!({"runs_per_s": n as f64 / median(&t)}))
        }
        o => eprintln!("no case {o}"),
    }
}
