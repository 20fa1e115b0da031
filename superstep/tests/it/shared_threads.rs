//! Graphs that share a checkpointer and the name of a thread: told apart, or refused.

use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::{
    CheckpointError, CheckpointErrorKind, CompiledStateGraph, Context, Entrypoint, ErrorKind, GoOn, LastValue,
    MemorySaver, NodeBuilder, Pregel, Previous, START, SavedFields, State, StateGraph, Then,
};

use crate::given_contexts::Warnings;
use crate::support::{Notes, NotesUpdate, says};

#[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    item: Option<String>,
}

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

/// A graph of one node that says its name.
fn notes_of(node: &'static str) -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node(node, says(node)).add_edge(START, node);
    graph
}

fn orders(saver: &MemorySaver) -> StateGraph<Order> {
    let mut graph = StateGraph::new();
    graph.add_node("sell", |_: Order| Order::update().item("tea".to_owned())).add_edge(START, "sell");
    graph.checkpointer(saver.clone());
    graph
}

async fn saved_by(graph: &mut StateGraph<Notes>, saver: &MemorySaver) -> CompiledStateGraph<Notes> {
    let app = graph.checkpointer(saver.clone()).compile().unwrap();
    app.invoke(input()).thread("1").await.unwrap();
    app
}

/// Two agents with thread "1" on one checkpointer: the second began anew on top of the first, whose state was gone.
#[tokio::test]
async fn a_thread_of_a_graph_with_nothing_in_common_is_refused() {
    let saver = MemorySaver::new();
    let notes = saved_by(&mut notes_of("write"), &saver).await;
    let orders = orders(&saver).compile().unwrap();
    let error = orders.invoke(Order::default()).thread("1").await.unwrap_err();
    let words = "a checkpoint could not be saved or read: thread `1` was saved by a graph (nodes `write`; fields `log`, \
                 `total`, `topic`), of which this one, a graph (nodes `sell`; fields `item`), has no node; run it on a \
                 thread of another name or give each graph a checkpointer of its own. If it is an earlier form of this \
                 graph, say what became of one of its nodes with `renamed_node(..)` or `removed_node(..)` (of an \
                 entrypoint, with `renamed_from(..)`)";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Checkpoint, words));
    assert!(!error.is_retryable());
    let other = |error: superstep::Error| {
        let found = error.downcast_ref::<CheckpointError>().map(|found| (found.kind(), found.thread()));
        assert_eq!(found, Some((CheckpointErrorKind::OtherGraph, Some("1"))), "{error}");
    };
    other(orders.get_state("1").await.unwrap_err());
    other(orders.get_state_history("1").await.unwrap_err());
    other(orders.update_state("1", Order::update().item("x".to_owned()), None).await.unwrap_err());
    other(orders.invoke(GoOn).thread("1").await.unwrap_err());
    assert_eq!(notes.get_state("1").await.unwrap().state.log, ["write"], "the thread is as it was");
    assert_eq!(orders.invoke(Order::default()).thread("2").await.unwrap().state.item.as_deref(), Some("tea"));
}

/// A name that was given tells graphs apart that have fields in common, if they have no node in common.
#[tokio::test]
async fn graphs_of_other_names_and_nodes_are_told_apart_though_their_fields_are_the_same() {
    let saver = MemorySaver::new();
    saved_by(notes_of("write").name("writer"), &saver).await;
    let reader = notes_of("read").name("reader").checkpointer(saver.clone()).compile().unwrap();
    let error = reader.invoke(input()).thread("1").await.unwrap_err().to_string();
    for part in ["thread `1` was saved by graph `writer` (nodes `write`;", "this one, graph `reader` (nodes `read`;"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let same_name = notes_of("read").name("writer").checkpointer(saver.clone()).compile().unwrap();
    assert_eq!(same_name.invoke(input()).thread("1").await.unwrap().state.log, ["write", "read"]);
}

/// The work that waits on the thread is none of this graph's: new input would drop it without a word.
#[tokio::test]
async fn new_input_of_another_graph_does_not_drop_what_waits() {
    let saver = MemorySaver::new();
    let named = |name: &str, last: &'static str| {
        let mut graph = notes_of("first");
        graph.add_node(last, says(last)).add_edge("first", last).interrupt_before([last]).name(name);
        graph
    };
    let writer = saved_by(&mut named("writer", "write"), &saver).await;
    let reader = named("reader", "read").checkpointer(saver.clone()).compile().unwrap();
    let error = reader.invoke(input()).thread("1").await.unwrap_err();
    let found = error.downcast_ref::<CheckpointError>().map(CheckpointError::kind);
    assert_eq!(found, Some(CheckpointErrorKind::OtherGraph), "{error}");
    assert_eq!(writer.invoke(GoOn).thread("1").await.unwrap().state.log, ["first", "write"]);
}

#[tokio::test]
async fn a_graph_that_says_what_became_of_a_node_is_the_same_graph() {
    let saver = MemorySaver::new();
    saved_by(notes_of("write").name("old"), &saver).await;
    let mut graph = notes_of("read");
    let graph = graph.name("new").checkpointer(saver.clone());
    graph.compile().unwrap().invoke(input()).thread("1").await.unwrap_err();
    let renamed = graph.clone().renamed_node("write", "read").compile().unwrap();
    assert_eq!(renamed.get_state("1").await.unwrap().state.log, ["write"]);
    let removed = graph.removed_node("write", Then::forget()).compile().unwrap();
    assert_eq!(removed.invoke(input()).thread("1").await.unwrap().state.log, ["write", "read"]);
}

#[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
#[state(version = 2)]
struct Article {
    #[state(append)]
    lines: Vec<String>,
}

#[tokio::test]
async fn a_graph_with_a_migration_of_the_state_is_the_same_graph() {
    let saver = MemorySaver::new();
    saved_by(&mut notes_of("write"), &saver).await;
    let mut graph = StateGraph::<Article>::new();
    graph.add_node("print", |_: Article| {}).add_edge(START, "print").checkpointer(saver.clone());
    let error = graph.compile().unwrap().get_state("1").await.unwrap_err();
    let found = error.downcast_ref::<CheckpointError>().map(CheckpointError::kind);
    assert_eq!(found, Some(CheckpointErrorKind::OtherGraph), "{error}");
    graph.migrate(1, |fields: &mut SavedFields| {
        fields.rename("log", "lines");
    });
    assert_eq!(graph.compile().unwrap().get_state("1").await.unwrap().state.lines, ["write"]);
}

/// Graphs without a name whose nodes were all replaced may be one graph: they resume with the fields that both have.
#[tokio::test]
async fn a_thread_of_a_graph_with_other_nodes_and_the_same_fields_goes_on_with_a_warning() {
    let saver = MemorySaver::new();
    saved_by(&mut notes_of("write"), &saver).await;
    let reader = notes_of("read").checkpointer(saver.clone()).compile().unwrap();
    let warnings = Warnings::of(async {
        assert_eq!(reader.invoke(input()).thread("1").await.unwrap().state.log, ["write", "read"]);
    });
    let warnings = warnings.await;
    assert!(warnings.len() == 1 && warnings[0].contains("of which this one has no node"), "{warnings:?}");
    let again = Warnings::of(reader.invoke(input()).thread("1").into_future()).await;
    assert!(again.is_empty(), "the thread is its own now: {again:?}");
}

#[tokio::test]
async fn an_entrypoint_is_not_given_what_another_one_saved() {
    let saver = MemorySaver::new();
    let count = |name: &str| {
        let count = async |n: u32, before: Previous<u32>| before.0.unwrap_or(0) + n;
        Entrypoint::new(name, count).checkpointer(saver.clone())
    };
    count("sales").compile().invoke(2).thread("1").await.unwrap();
    let error = count("returns").compile().invoke(3).thread("1").await.unwrap_err();
    assert!(error.to_string().contains("thread `1` was saved by graph `sales`"), "{error}");
    let renamed = count("returns").renamed_from("sales").compile();
    assert_eq!(renamed.invoke(3).thread("1").await.unwrap().get::<u32>().unwrap(), 5);
}

#[tokio::test]
async fn a_graph_of_bare_channels_is_told_from_a_state_graph() {
    let saver = MemorySaver::new();
    saved_by(&mut notes_of("write"), &saver).await;
    let echo = NodeBuilder::new().subscribe_only("in").write_to("out");
    let app = Pregel::builder().channel("in", LastValue::default()).channel("out", LastValue::default());
    let app = app.node("echo", echo).input(["in"]).output(["out"]).checkpointer(saver.clone()).build().unwrap();
    let error = app.invoke(json!({ "in": 1 })).thread("1").await.unwrap_err();
    let found = error.downcast_ref::<CheckpointError>().map(CheckpointError::kind);
    assert_eq!(found, Some(CheckpointErrorKind::OtherGraph), "{error}");
}

/// A graph inside keeps one history under the name of its node: another graph there does not begin on top of it.
#[tokio::test]
async fn the_history_of_a_graph_inside_is_not_taken_over_by_another_one() {
    let saver = MemorySaver::new();
    let write = notes_of("write").persistent().compile().unwrap();
    let sell = orders(&saver).persistent().compile().unwrap();
    let mut old = StateGraph::<Notes>::new();
    saved_by(old.add_node("inside", write).add_edge(START, "inside"), &saver).await;
    let calls = move |_: Notes, cx: Context| {
        let sell = sell.clone();
        async move { cx.invoke(&sell, Order::default()).await.map(|_| ()) }
    };
    let new =
        StateGraph::<Notes>::new().add_node("inside", calls).add_edge(START, "inside").checkpointer(saver).compile();
    let error = new.unwrap().invoke(input()).thread("1").await.unwrap_err();
    assert!(error.to_string().contains("thread `1` in `inside` was saved by a graph (nodes `write`"), "{error}");
}
