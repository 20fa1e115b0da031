//! Seed 004: what it writes in Python, in Rust.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{
    BinaryOperatorAggregate, Channel, END, GoOn, JsonReducer, LastValue, MemorySaver, Mode, NodeBuilder, Pregel,
    Runtime, START, State, StateGraph, Topic,
};

use crate::support::{Notes, NotesUpdate, events, says};

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Chat {
    #[state(append)]
    messages: Vec<String>,
    step: i64,
}

fn node1_func(state: &Chat) -> ChatUpdate {
    Chat::update().messages(["one"]).step(state.step + 1)
}

fn node2_func(state: &Chat) -> ChatUpdate {
    Chat::update().messages(["two"]).step(state.step + 1)
}

fn should_continue(state: &Chat) -> &'static str {
    if state.messages.first().is_some_and(|word| word == "Hello") { "node2" } else { END }
}

/// Part 四: build, compile, run; and 7.4: look, change, go on.
#[tokio::test]
async fn a_graph_is_built_compiled_run_and_changed_as_the_seed_does_it() {
    let mut graph = StateGraph::<Chat>::new();
    graph.add_node("node1", node1_func);
    graph.add_node("node2", node2_func);
    graph.add_edge(START, "node1");
    graph.add_conditional_edges_with_map("node1", should_continue, [("node2", "node2"), (END, END)]);
    graph.add_edge("node2", END);
    let app = graph.checkpointer(MemorySaver::new()).interrupt_before(["node2"]).debug(true).compile().unwrap();

    let input = || Chat::update().messages(["Hello"]);
    let result = app.invoke(input()).thread("thread-1").await.unwrap();
    assert_eq!(result.state.messages, ["Hello", "one"], "it stops before `node2`");
    let snapshot = app.get_state("thread-1").await.unwrap();
    assert_eq!(
        (snapshot.values(), &snapshot.next),
        (json!({ "messages": ["Hello", "one"], "step": 1 }), &vec!["node2".into()])
    );
    app.update_state("thread-1", Chat::update().step(10), None).await.unwrap();
    let result = app.invoke(GoOn).thread("thread-1").await.unwrap();
    assert_eq!((result.state.messages, result.state.step), (vec!["Hello".into(), "one".into(), "two".into()], 11));

    let seen = events(app.stream(input()).thread("thread-2").start()).await;
    assert_eq!(seen[0]["data"], json!({ "node1": { "messages": ["one"], "step": 1 } }));
    let ended = app.invoke(Chat::update().messages(["Bye"])).thread("thread-3").await.unwrap();
    assert_eq!(ended.state.messages, ["Bye", "one"]);
}

/// 7.5: what goes into a node, and what comes out.
#[tokio::test]
async fn the_debug_stream_tells_input_and_result_of_every_task() {
    let app = StateGraph::<Notes>::new().add_node("a", says("a")).add_edge(START, "a").compile().unwrap();
    let seen = events(app.stream(Notes::update().topic("tea")).mode(Mode::Debug).start()).await;
    let told: Vec<_> = seen.iter().map(|event| (&event["data"]["type"], &event["data"]["payload"])).collect();
    let of = |kind: &str| told.iter().find(|(found, _)| *found == kind).unwrap().1;
    assert_eq!(of("task")["input"]["topic"], "tea");
    assert_eq!(of("task_result")["result"], json!({ "log": ["a"] }));
}

/// 3.1: a context of another type is refused, here by the node that asks for it.
#[tokio::test]
async fn a_context_of_another_type_is_an_error_that_names_it() {
    struct User(&'static str);
    fn greets(_: &Notes, Runtime(user): Runtime<User>) -> NotesUpdate {
        Notes::update().log([user.0])
    }
    let app = StateGraph::<Notes>::new().add_node("greets", greets).add_edge(START, "greets").compile().unwrap();
    let input = || Notes::update().total(1);
    assert_eq!(app.invoke(input()).context(User("ada")).await.unwrap().state.log, ["ada"]);
    let error = app.invoke(input()).context(7_u32).await.unwrap_err();
    assert!(error.node() == Some("greets") && error.to_string().contains("User"), "{error}");
}

/// 6.3 and 3.6 say that such a value is no update; in LangGraph it is one, and wakes who waits for it.
#[tokio::test]
async fn a_value_that_stays_the_same_is_an_update() {
    async fn seen(channel: impl Channel, write: i64) -> Value {
        let app = Pregel::builder()
            .channel("in", LastValue::default())
            .channel("same", channel)
            .channel("seen", Topic::new().accumulate())
            .node("writes", NodeBuilder::new().subscribe_only("in").write_value("same", write))
            .node("sees", NodeBuilder::new().subscribe_only("same").write_to("seen"))
            .input(["in"])
            .output(["seen"])
            .checkpointer(MemorySaver::new())
            .build()
            .unwrap();
        app.invoke(json!({ "in": 0 })).thread("t").await.unwrap();
        app.invoke(json!({ "in": 0 })).thread("t").await.unwrap().to_json()
    }
    assert_eq!(seen(LastValue::default(), 1).await, json!({ "seen": [1, 1] }));
    let sum = BinaryOperatorAggregate::new(JsonReducer::Add, Some(json!(3)));
    assert_eq!(seen(sum, 0).await, json!({ "seen": [3, 3] }));
}

/// 3.2.5 advises fewer than a thousand nodes.
#[tokio::test]
async fn a_graph_may_have_thousands_of_nodes_in_a_chain_and_in_one_step() {
    const NODES: usize = 2_000;
    fn counts(_: &Notes) -> NotesUpdate {
        Notes::update().total(1)
    }
    let names: Vec<String> = (0..NODES).map(|n| format!("n{n:04}")).collect();
    let (mut chain, mut beside) = (StateGraph::<Notes>::new(), StateGraph::<Notes>::new());
    for name in &names {
        chain.add_node(name, counts);
        beside.add_node(name, counts).add_edge(START, name);
    }
    chain.add_sequence(&names);
    for graph in [chain, beside] {
        let out = graph.compile().unwrap().invoke(Notes::update().total(0)).await.unwrap();
        assert_eq!(out.state.total, NODES as i64);
    }
}
