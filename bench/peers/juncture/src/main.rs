//! juncture 0.4.0: typed state, derive macro, Pregel engine. `bench-juncture CASE N`
#[path = "../../../common.rs"]
mod common;
use common::*;
use juncture_checkpoint::{MemorySaver, SqliteSaver};
use juncture_core::command::SendTarget;
use juncture_core::node::{NodeFnCommand, NodeFnUpdate};
use juncture_core::stream::{EventEmitter, StreamMode};
use juncture_core::{Command, CompiledGraph, END, GraphOutput, PathMap, RunnableConfig, StateGraph};
use juncture_derive::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SYS: &str = "juncture";
static LIMIT: AtomicUsize = AtomicUsize::new(0); // loop length, read by the routers (they must be fn items)
static THREAD: AtomicUsize = AtomicUsize::new(0);

type Saver = Option<Arc<dyn juncture_core::checkpoint::CheckpointSaver>>;

fn add(cur: &mut i64, v: i64) {
    *cur += v;
}
fn merge(cur: &mut Vec<Msg>, v: Vec<Msg>) {
    add_messages(cur, v)
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chain {
    x: i64,
}
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Loop {
    #[reducer(custom = add)]
    n: i64,
}
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Fan {
    #[reducer(append)]
    items: Vec<i64>,
    i: i64,
    total: i64,
}
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[reducer(custom = merge)]
    messages: Vec<Msg>,
}

fn conf(thread: bool) -> RunnableConfig {
    let c = RunnableConfig { recursion_limit: 1_000_000_000, ..RunnableConfig::new() };
    if thread { c.with_thread_id(format!("t{}", THREAD.fetch_add(1, Relaxed))) } else { c }
}

fn g_chain(n: usize, saver: Saver) -> CompiledGraph<Chain> {
    let mut g = StateGraph::new();
    for i in 0..n {
        g.add_node_simple(
            format!("n{i}"),
            NodeFnUpdate(|s: &Chain| {
                let x = s.x + 1;
                async move { Ok(ChainUpdate { x: Some(x) }) }
            }),
        )
        .unwrap();
        if i > 0 {
            g.add_edge(format!("n{}", i - 1), format!("n{i}"));
        }
    }
    g.set_entry_point("n0");
    g.set_finish_point(format!("n{}", n - 1));
    g.compile_with_checkpointer(saver).unwrap()
}

fn route_loop(s: &Loop) -> &str {
    if (s.n as usize) < LIMIT.load(Relaxed) { "tick" } else { END }
}
fn route_chat(s: &Chat) -> &str {
    if s.messages.last().unwrap().tool_calls.is_empty() { END } else { "tools" }
}

fn g_loop() -> CompiledGraph<Loop> {
    let mut g = StateGraph::new();
    g.add_node_simple("tick", NodeFnUpdate(|_: &Loop| async { Ok(LoopUpdate { n: Some(1) }) })).unwrap();
    g.set_entry_point("tick");
    g.add_conditional_edges("tick", Arc::new(route_loop), PathMap::from(&[("tick", "tick"), (END, END)]));
    g.compile().unwrap()
}

fn g_fan(n: usize) -> CompiledGraph<Fan> {
    let mut g = StateGraph::new();
    g.add_node(
        "router",
        NodeFnCommand(move |_: &Fan| {
            Box::pin(async move {
                let t = (0..n)
                    .map(|i| SendTarget {
                        node: "work".into(),
                        state: json!({"items": [], "i": i, "total": 0}),
                        timeout: None,
                    })
                    .collect();
                Ok(Command::update_and_send(FanUpdate::default(), t))
            })
        }),
        false,
        None,
        None,
        vec![],
        vec![],
    )
    .unwrap();
    g.add_node_simple(
        "work",
        NodeFnUpdate(|s: &Fan| {
            let i = s.i;
            async move { Ok(FanUpdate { items: Some(vec![i]), ..Default::default() }) }
        }),
    )
    .unwrap();
    g.add_node_simple(
        "join",
        NodeFnUpdate(|s: &Fan| {
            let t = s.items.len() as i64;
            async move { Ok(FanUpdate { total: Some(t), ..Default::default() }) }
        }),
    )
    .unwrap();
    g.set_entry_point("router");
    g.add_edge("router", "work");
    g.add_edge("work", "join");
    g.set_finish_point("join");
    g.compile().unwrap()
}

fn g_react(turns: usize, saver: Saver) -> CompiledGraph<Chat> {
    let mut g = StateGraph::new();
    g.add_node_simple(
        "model",
        NodeFnUpdate(move |s: &Chat| {
            let m = model(s.messages.len(), turns);
            async move { Ok(ChatUpdate { messages: Some(vec![m]) }) }
        }),
    )
    .unwrap();
    g.add_node_simple(
        "tools",
        NodeFnUpdate(|s: &Chat| {
            let m = tool(s.messages.last().unwrap());
            async move { Ok(ChatUpdate { messages: Some(vec![m]) }) }
        }),
    )
    .unwrap();
    g.set_entry_point("model");
    g.add_conditional_edges("model", Arc::new(route_chat), PathMap::from(&[("tools", "tools"), (END, END)]));
    g.add_edge("tools", "model");
    g.compile_with_checkpointer(saver).unwrap()
}

/// In 0.4.0 neither invoke_async nor stream hands the checkpointer to the engine (the database stays empty);
/// execute_with_emitter does, so the checkpointed cases use it with a task that drains the events.
async fn run_saved<S>(g: &CompiledGraph<S>, input: S) -> S
where
    S: juncture_core::State + Clone + Send + serde::de::DeserializeOwned + Serialize + 'static,
    S::Update: Serialize,
{
    let (tx, mut rx) = tokio::sync::mpsc::channel(256);
    let drain = tokio::spawn(async move { while rx.recv().await.is_some() {} });
    let cfg = conf(true).with_checkpoint_id("seed"); // without an id put_writes fails: "checkpoint_id is required"
    let out = g.execute_with_emitter(input, &cfg, EventEmitter::new(tx, StreamMode::Updates)).await.unwrap();
    drain.await.unwrap();
    out
}

async fn run_chat(g: &CompiledGraph<Chat>, turns: usize, thread: bool) {
    if thread {
        let o = run_saved(g, Chat { messages: vec![user()] }).await;
        assert_eq!(o.messages.len(), 2 * turns + 2);
        return;
    }
    let o: GraphOutput<Chat, Chat> = g.invoke_async(Chat { messages: vec![user()] }, &conf(thread)).await.unwrap();
    assert_eq!(o.value.messages.len(), 2 * turns + 2);
}

/// Everything runs on a worker thread: from the `block_on` thread each spawn would cost a cross-thread wake-up.
#[tokio::main]
async fn main() {
    tokio::spawn(bench()).await.unwrap()
}

async fn bench() {
    let (case, n) = args();
    LIMIT.store(n, Relaxed);
    match case.as_str() {
        "w1" => {
            let g = g_chain(n, None);
            let t = measure(|| async {
                assert_eq!(g.invoke_async(Chain::default(), &conf(false)).await.unwrap().value.x, n as i64)
            })
            .await;
            report(SYS, "W1", n, &t, n, json!({}))
        }
        "w2" => {
            let g = g_loop();
            let t = measure(|| async {
                assert_eq!(g.invoke_async(Loop::default(), &conf(false)).await.unwrap().value.n, n as i64)
            })
            .await;
            report(SYS, "W2", n, &t, n, json!({}))
        }
        "w3" => {
            let g = g_fan(n);
            let mut seen = (0, 0, true);
            for _ in 0..1 {
                let o = g.invoke_async(Fan::default(), &conf(false)).await.unwrap().value;
                seen = (o.total, o.items.len(), o.items == (0..n as i64).collect::<Vec<_>>());
            }
            let t = measure(|| async {
                g.invoke_async(Fan::default(), &conf(false)).await.unwrap();
            })
            .await;
            report(
                SYS,
                "W3",
                n,
                &t,
                3,
                json!({"us_per_task": median(&t) / n as f64 * 1e6, "total": seen.0, "items": seen.1, "in_order": seen.2}),
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
                let g = g_react(n, Some(Arc::new(MemorySaver::new())));
                run_chat(&g, n, true).await
            })
            .await;
            report(SYS, "W6-memory", n, &t, 2 * n + 1, json!({}))
        }
        "w6sql" => {
            let p = fresh_db("juncture");
            std::fs::File::create(&p).unwrap();
            let g = g_react(n, Some(Arc::new(SqliteSaver::new(p.clone()).await.unwrap())));
            let t = measure(|| run_chat(&g, n, true)).await;
            drop(g);
            drop_db(&p);
            std::fs::File::create(&p).unwrap();
            let g = g_react(n, Some(Arc::new(SqliteSaver::new(p.clone()).await.unwrap())));
            run_chat(&g, n, true).await;
            let b = db_bytes(&p);
            drop_db(&p);
            report(SYS, "W6-sqlite", n, &t, 2 * n + 1, json!({"bytes_total": b}))
        }
        "w7" => {
            let t = measure(|| async {
                let g = g_chain(10, Some(Arc::new(MemorySaver::new())));
                let g = &g;
                let outs =
                    futures::future::join_all((0..n).map(|_| async move { run_saved(g, Chain::default()).await.x }))
                        .await;
                assert!(outs.iter().all(|x| *x == 10));
            })
            .await;
            report(SYS, "W7-memory", n, &t, n * 10, json!({"runs_per_s": n as f64 / median(&t)}))
        }
        o => eprintln!("no case {o}"),
    }
}
