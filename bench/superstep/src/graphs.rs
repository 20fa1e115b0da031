//! The graphs of the workloads, and one checked run of each: besides `wide`, `disk` and `chats` the only file that knows superstep's API.
use crate::common::peak_rss_mb;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use superstep::{
    BoxError, Checkpointer, CompiledStateGraph, Context, Durability, END, MemorySaver, Message, MessageKind, Mode,
    START, Send, Sent, State, StateGraph, ToolCall,
};

/// Never reached: the loops end by their own condition.
const NO_LIMIT: usize = 1_000_000_000;

// ---- W1, W7: a chain of nodes that add 1 to an int ----

#[derive(State, Clone, Default, Serialize, Deserialize)]
pub struct Chain {
    x: i64,
}

pub fn chain(n: usize) -> CompiledStateGraph<Chain> {
    chain_builder(n).compile().unwrap()
}

pub fn chain_saved(n: usize) -> CompiledStateGraph<Chain> {
    chain_builder(n).checkpointer(MemorySaver::new()).compile().unwrap()
}

fn chain_builder(n: usize) -> StateGraph<Chain> {
    let mut graph = StateGraph::<Chain>::new();
    let mut previous = START.to_owned();
    for i in 0..n {
        let name = format!("n{i}");
        graph
            .add_node(&name, |s: Arc<Chain>| async move { Chain::update().x(s.x + 1) })
            .add_edge(previous.as_str(), &name);
        previous = name;
    }
    graph.add_edge(previous.as_str(), END);
    graph
}

pub async fn run_chain(app: &CompiledStateGraph<Chain>, n: usize) {
    let out = app.invoke(Chain::default()).recursion_limit(NO_LIMIT).await.unwrap();
    assert_eq!(out.x, n as i64);
}

/// `threads` runs at a time, each on its own thread id, as tasks of the runtime.
pub async fn run_concurrent(app: CompiledStateGraph<Chain>, threads: usize) {
    let run = |i: usize| {
        let app = app.clone();
        tokio::spawn(async move { app.invoke(Chain::default()).thread(format!("t{i}")).await.unwrap().x })
    };
    let runs: Vec<_> = (0..threads).map(run).collect();
    for x in runs {
        assert_eq!(x.await.unwrap(), 10);
    }
}

// ---- W2, W8, mem: one node with a conditional edge ----

#[derive(State, Clone, Default, Serialize, Deserialize)]
pub struct Count {
    #[state(sum)]
    n: i64,
}

pub fn tick_loop(n: usize) -> CompiledStateGraph<Count> {
    let n = n as i64;
    StateGraph::<Count>::new()
        .add_node("tick", |_: Arc<Count>| async move { Count::update().n(1) })
        .add_edge(START, "tick")
        .add_conditional_edges("tick", move |s: &Count| if s.n < n { "tick" } else { END })
        .compile()
        .unwrap()
}

pub async fn run_loop(app: &CompiledStateGraph<Count>, n: usize) {
    let out = app.invoke(Count::default()).recursion_limit(NO_LIMIT).await.unwrap();
    assert_eq!(out.n, n as i64);
}

/// Streams the updates of the loop; gives the time to the first event.
pub async fn run_stream(app: &CompiledStateGraph<Count>, n: usize) -> Duration {
    let start = Instant::now();
    let mut events = app.stream(Count::default()).modes([Mode::Updates]).recursion_limit(NO_LIMIT).start();
    let (mut first, mut seen) = (Duration::ZERO, 0);
    while let Some(event) = events.next().await {
        event.unwrap();
        if seen == 0 {
            first = start.elapsed();
        }
        seen += 1;
    }
    assert_eq!(seen, n);
    first
}

/// The bits of the peak resident set that the node of [`watched_loop`] saw.
static RSS_AFTER_10K: AtomicU64 = AtomicU64::new(0);

pub fn watched_loop(n: usize) -> CompiledStateGraph<Count> {
    let n = n as i64;
    let watch = |s: Arc<Count>| async move {
        if s.n == 10_000 {
            RSS_AFTER_10K.store(peak_rss_mb().to_bits(), Relaxed);
        }
        Count::update().n(1)
    };
    StateGraph::<Count>::new()
        .add_node("tick", watch)
        .add_edge(START, "tick")
        .add_conditional_edges("tick", move |s: &Count| if s.n < n { "tick" } else { END })
        .compile()
        .unwrap()
}

pub fn rss_after_10k_mb() -> f64 {
    f64::from_bits(RSS_AFTER_10K.load(Relaxed))
}

// ---- W3: `Send` to N tasks, then a join ----

#[derive(State, Clone, Default, Serialize, Deserialize)]
pub struct Fan {
    #[state(append)]
    items: Vec<i64>,
    total: i64,
}

pub fn fan(n: usize) -> CompiledStateGraph<Fan> {
    let n = n as i64;
    StateGraph::<Fan>::new()
        .add_node("work", |Sent(i): Sent<i64>| async move { Fan::update().items([i]) })
        .add_node("join", |s: Arc<Fan>| async move { Fan::update().total(s.items.len() as i64) })
        .add_conditional_edges(START, move |_: &Fan| -> Vec<Send> { (0..n).map(|i| Send::new("work", i)).collect() })
        .add_edge("work", "join")
        .add_edge("join", END)
        .compile()
        .unwrap()
}

pub async fn run_fan(app: &CompiledStateGraph<Fan>, n: usize) {
    let out = app.invoke(Fan::default()).await.unwrap();
    assert_eq!(out.total, n as i64);
    assert!(out.items.iter().copied().eq(0..n as i64));
}

// ---- W5, W6: the ReAct loop on messages, the conversation of `common.rs` in superstep's own types ----

#[derive(State, Clone, Default, Serialize, Deserialize)]
pub struct Chat {
    #[state(messages)]
    messages: Vec<Message>,
}

pub fn react(turns: usize) -> CompiledStateGraph<Chat> {
    react_builder(turns).compile().unwrap()
}

pub fn react_saved(turns: usize, saver: impl Checkpointer) -> CompiledStateGraph<Chat> {
    react_builder(turns).checkpointer(saver).compile().unwrap()
}

fn react_builder(turns: usize) -> StateGraph<Chat> {
    let mut graph = StateGraph::<Chat>::new();
    graph
        .add_node("model", move |s: Arc<Chat>| async move { Chat::update().messages([model(s.messages.len(), turns)]) })
        .add_node("tools", |s: Arc<Chat>| async move {
            let call = wanted_call(&s).expect("the model asked for a tool");
            Chat::update().messages([tool_result(call)])
        })
        .add_edge(START, "model")
        .add_conditional_edges("model", |s: &Chat| if wanted_call(s).is_some() { "tools" } else { END })
        .add_edge("tools", "model");
    graph
}

/// What the fake model says after `seen` messages when it wants `turns` tool calls in all.
fn model(seen: usize, turns: usize) -> Message {
    let turn = (seen - 1) / 2;
    let message = if turn < turns {
        let args = json!({"q": format!("query {turn}")});
        let calls = vec![ToolCall::new(format!("call{turn}"), "lookup", args)];
        Message::from(MessageKind::AssistantCalls { text: String::new(), calls })
    } else {
        Message::assistant("a".repeat(200))
    };
    message.with_id(format!("ai{turn}"))
}

fn wanted_call(chat: &Chat) -> Option<&ToolCall> {
    match &chat.messages.last()?.kind {
        MessageKind::AssistantCalls { calls, .. } => calls.first(),
        _ => None,
    }
}

fn tool_result(call: &ToolCall) -> Message {
    Message::tool_result(call.id.clone(), "r".repeat(200)).with_id(format!("t{}", call.id))
}

fn question() -> Chat {
    Chat { messages: vec![Message::user("hi").with_id("h0")] }
}

pub async fn run_react(app: &CompiledStateGraph<Chat>, turns: usize) {
    let out = app.invoke(question()).recursion_limit(NO_LIMIT).await.unwrap();
    assert_eq!(out.messages.len(), 2 * turns + 2);
}

/// A run on a thread of its own.
pub async fn run_react_saved(app: &CompiledStateGraph<Chat>, turns: usize, durability: Durability) {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    let thread = format!("t{}", THREADS.fetch_add(1, Relaxed));
    let run = app.invoke(question()).recursion_limit(NO_LIMIT).thread(thread).durability(durability);
    assert_eq!(run.await.unwrap().messages.len(), 2 * turns + 2);
}

// ---- W9: `Send` to a compiled subgraph of 3 nodes ----

#[derive(State, Clone, Default, Serialize, Deserialize)]
pub struct Part {
    i: i64,
    #[state(append)]
    items: Vec<i64>,
}

pub fn subgraph_fan(n: usize) -> CompiledStateGraph<Fan> {
    let part = StateGraph::<Part>::new()
        .add_node("a", |s: Arc<Part>| async move { Part::update().i(s.i + 1) })
        .add_node("b", |s: Arc<Part>| async move { Part::update().i(s.i + 1) })
        .add_node("c", |s: Arc<Part>| async move { Part::update().items([s.i]) })
        .add_edge(START, "a")
        .add_edge("a", "b")
        .add_edge("b", "c")
        .add_edge("c", END)
        .compile()
        .unwrap();
    let n = n as i64;
    StateGraph::<Fan>::new()
        .add_node("sub", move |Sent(i): Sent<i64>, cx: Context| {
            let part = part.clone();
            async move {
                let out = cx.invoke(&part, Part { i, items: vec![] }).await?;
                Ok::<_, BoxError>(Fan::update().items(out.items.clone()))
            }
        })
        .add_node("join", |s: Arc<Fan>| async move { Fan::update().total(s.items.len() as i64) })
        .add_conditional_edges(START, move |_: &Fan| -> Vec<Send> { (0..n).map(|i| Send::new("sub", i)).collect() })
        .add_edge("sub", "join")
        .add_edge("join", END)
        .compile()
        .unwrap()
}

pub async fn run_subgraph_fan(app: &CompiledStateGraph<Fan>, n: usize) {
    let out = app.invoke(Fan::default()).await.unwrap();
    assert_eq!(out.total, n as i64);
}
