//! wesichain-graph 0.3.0: typed state, a work queue with JoinSet (no superstep barrier). `bench-wesichain-graph CASE N`
//! Conditional edges return names only, so W3 uses N distinct nodes.
#[path = "../../../common.rs"]
mod common;
use common::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use wesichain_checkpoint_sqlite::SqliteCheckpointer;
use wesichain_core::WesichainError;
use wesichain_core::checkpoint::{Checkpointer, InMemoryCheckpointer};
use wesichain_graph::{
    END, ExecutableGraph, ExecutionConfig, ExecutionOptions, GraphBuilder, GraphContext, GraphNode, GraphState,
    StateSchema, StateUpdate,
};

const SYS: &str = "wesichain-graph";
static THREAD: AtomicUsize = AtomicUsize::new(0);
static JOINS: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
struct St {
    x: Option<i64>,
    n: i64,
    items: Vec<i64>,
    messages: Vec<Msg>,
}
/// The executor demands Update = Self, so the state type doubles as the update.
type Up = St;
impl StateSchema for St {
    type Update = Up;
    fn apply(cur: &Self, u: Up) -> Self {
        let mut s = cur.clone(); // the trait only lends the old state, so a copy is unavoidable
        if u.x.is_some() {
            s.x = u.x;
        }
        s.n += u.n;
        s.items.extend(u.items);
        add_messages(&mut s.messages, u.messages);
        s
    }
}
struct Fun<F>(F);
#[async_trait::async_trait]
impl<F: Fn(&St) -> Up + Send + Sync> GraphNode<St> for Fun<F> {
    async fn invoke_with_context(
        &self,
        s: GraphState<St>,
        _c: &GraphContext,
    ) -> Result<StateUpdate<St>, WesichainError> {
        Ok(StateUpdate::new((self.0)(&s.data)))
    }
}
fn conf() -> ExecutionConfig {
    ExecutionConfig {
        max_steps: None,
        max_visits: None,
        max_loop_iterations: None,
        cycle_detection: false,
        ..Default::default()
    }
}
type B = GraphBuilder<St>;
fn g_chain(n: usize, b: B) -> ExecutableGraph<St> {
    let mut b = b.with_default_config(conf());
    for i in 0..n {
        b = b.add_node(&format!("n{i}"), Fun(|s: &St| Up { x: Some(s.x.unwrap_or(0) + 1), ..Default::default() }));
        b = b.add_edge(&format!("n{i}"), &if i + 1 == n { END.to_string() } else { format!("n{}", i + 1) });
    }
    b.set_entry("n0").build()
}
fn g_loop(n: usize) -> ExecutableGraph<St> {
    B::new()
        .with_default_config(conf())
        .add_node("tick", Fun(|_: &St| Up { n: 1, ..Default::default() }))
        .set_entry("tick")
        .add_conditional_edge("tick", move |s| {
            vec![if (s.data.n as usize) < n { "tick".into() } else { END.to_string() }]
        })
        .build()
}
fn g_fan(n: usize) -> ExecutableGraph<St> {
    let names: Vec<String> = (0..n).map(|i| format!("w{i}")).collect();
    let mut b = B::new().with_default_config(conf()).add_node("fan", Fun(|_: &St| Up::default())).set_entry("fan");
    for (i, w) in names.iter().enumerate() {
        b = b.add_node(w, Fun(move |_: &St| Up { items: vec![i as i64], ..Default::default() })).add_edge(w, "join");
    }
    b.add_node(
        "join",
        Fun(|s: &St| {
            JOINS.fetch_add(1, Relaxed);
            Up { x: Some(s.items.len() as i64), ..Default::default() }
        }),
    )
    .add_conditional_edge("fan", move |_| names.clone())
    .add_edge("join", END)
    .build()
}
fn g_react(turns: usize, b: B) -> ExecutableGraph<St> {
    b.with_default_config(conf())
        .add_node(
            "model",
            Fun(move |s: &St| Up { messages: vec![model(s.messages.len(), turns)], ..Default::default() }),
        )
        .add_node("tools", Fun(|s: &St| Up { messages: vec![tool(s.messages.last().unwrap())], ..Default::default() }))
        .set_entry("model")
        .add_conditional_edge("model", |s| {
            vec![if s.data.messages.last().unwrap().tool_calls.is_empty() { END.to_string() } else { "tools".into() }]
        })
        .add_edge("tools", "model")
        .build()
}
/// A checkpointer behind an Arc, so that many runs can share it.
#[derive(Clone)]
struct Shared(Arc<dyn Checkpointer<St>>);
#[async_trait::async_trait]
impl Checkpointer<St> for Shared {
    async fn save(&self, c: &wesichain_core::checkpoint::Checkpoint<St>) -> Result<(), WesichainError> {
        self.0.save(c).await
    }
    async fn load(&self, t: &str) -> Result<Option<wesichain_core::checkpoint::Checkpoint<St>>, WesichainError> {
        self.0.load(t).await
    }
}
async fn run(g: &ExecutableGraph<St>, s: St, thread: bool) -> St {
    let o = ExecutionOptions {
        checkpoint_thread_id: thread.then(|| format!("t{}", THREAD.fetch_add(1, Relaxed))),
        ..Default::default()
    };
    g.invoke_graph_with_options(GraphState::new(s), o).await.unwrap().data
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
            let g = g_chain(n, B::new());
            let t = measure(|| async { assert_eq!(run(&g, St::default(), false).await.x, Some(n as i64)) }).await;
            report(SYS, "W1", n, &t, n, json!({}))
        }
        "w2" => {
            let g = g_loop(n);
            let t = measure(|| async { assert_eq!(run(&g, St::default(), false).await.n, n as i64) }).await;
            report(SYS, "W2", n, &t, n, json!({}))
        }
        "w3" => {
            let g = g_fan(n);
            let o = run(&g, St::default(), false).await;
            let joins = JOINS.load(Relaxed);
            let t = measure(|| async {
                run(&g, St::default(), false).await;
            })
            .await;
            report(
                SYS,
                "W3",
                n,
                &t,
                3,
                json!({"us_per_task": median(&t) / n as f64 * 1e6, "total": o.x, "items": o.items.len(),
                "in_order": o.items == (0..n as i64).collect::<Vec<_>>(), "join_runs": joins, "note": "static nodes, no barrier"}),
            )
        }
        "w5" => {
            let g = g_react(n, B::new());
            let t = measure(|| async { assert_eq!(run(&g, chat(), false).await.messages.len(), 2 * n + 2) }).await;
            report(SYS, "W5", n, &t, 2 * n + 1, json!({}))
        }
        "w6mem" => {
            // a fresh saver per run, so that peak RSS is that of one run
            let t = measure(|| async {
                let g = g_react(n, B::new().with_checkpointer(InMemoryCheckpointer::default(), "t"));
                assert_eq!(run(&g, chat(), true).await.messages.len(), 2 * n + 2)
            })
            .await;
            report(SYS, "W6-memory", n, &t, 2 * n + 1, json!({}))
        }
        "w6sql" => {
            let p = fresh_db("wesi");
            std::fs::File::create(&p).unwrap();
            let url = format!("sqlite://{p}");
            let g =
                g_react(n, B::new().with_checkpointer(SqliteCheckpointer::builder(&url).build().await.unwrap(), "t"));
            let t = measure(|| async { assert_eq!(run(&g, chat(), true).await.messages.len(), 2 * n + 2) }).await;
            drop(g);
            drop_db(&p);
            std::fs::File::create(&p).unwrap();
            let g =
                g_react(n, B::new().with_checkpointer(SqliteCheckpointer::builder(&url).build().await.unwrap(), "t"));
            run(&g, chat(), true).await;
            let b = db_bytes(&p);
            drop_db(&p);
            report(SYS, "W6-sqlite", n, &t, 2 * n + 1, json!({"bytes_total": b}))
        }
        "w7" => {
            let t = measure(|| async {
                let cp = Shared(Arc::new(InMemoryCheckpointer::default()));
                let g = g_chain(10, B::new().with_checkpointer(cp, "t"));
                let g = &g;
                let o =
                    futures::future::join_all((0..n).map(|_| async move { run(g, St::default(), true).await.x })).await;
                assert!(o.iter().all(|x| *x == Some(10)));
            })
            .await;
            report(SYS, "W7-memory", n, &t, n * 10, json!({"runs_per_s": n as f64 / median(&t)}))
        }
        o => eprintln!("no case {o}"),
    }
}
