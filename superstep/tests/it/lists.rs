//! Wherever a list of names is meant, anything that gives names will do: arrays, lists, sets, iterators, of text borrowed or owned.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use superstep::{CompiledStateGraph, JoinSources, JsonState, MemorySaver, NodeOptions, START, StateGraph};

use crate::support::{Notes, says};

fn nodes() -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_node("b", says("b")).add_node("c", says("c"));
    graph.add_edge(START, "a").add_edge(START, "b");
    graph
}

fn owned() -> Vec<String> {
    vec!["a".to_owned(), "b".to_owned()]
}

fn compiled(graph: &mut StateGraph<Notes>) -> CompiledStateGraph<Notes> {
    graph.checkpointer(MemorySaver::new()).compile().unwrap()
}

#[tokio::test]
async fn stops_of_graphs_and_of_runs_are_given_alike() {
    let stopped = |app: CompiledStateGraph<Notes>| async move {
        app.invoke(Notes::update().topic("t")).thread("t").await.unwrap();
        app.thread("t").state().await.unwrap().next
    };
    let names = owned();
    assert_eq!(stopped(compiled(nodes().interrupt_before(["a"]))).await, ["a", "b"]);
    assert_eq!(stopped(compiled(nodes().interrupt_before(owned()))).await, ["a", "b"]);
    assert_eq!(stopped(compiled(nodes().interrupt_before(&names))).await, ["a", "b"]);
    assert_eq!(stopped(compiled(nodes().interrupt_before(BTreeSet::from(["a"])))).await, ["a", "b"]);
    assert_eq!(stopped(compiled(nodes().interrupt_before(names.iter().filter(|name| *name == "b")))).await, ["a", "b"]);
    let run = compiled(&mut nodes());
    for stops in [names.iter().map(|name| Cow::from(name.as_str())).collect::<Vec<_>>(), vec![Cow::Borrowed("a")]] {
        run.invoke(Notes::update().topic("t")).thread("t").interrupt_before(stops).await.unwrap();
        assert_eq!(run.thread("t").state().await.unwrap().next, ["a", "b"]);
    }
}

#[tokio::test]
async fn joins_targets_and_destinations_are_given_alike() {
    async fn log(graph: &mut StateGraph<Notes>) -> Vec<String> {
        graph.compile().unwrap().invoke(Notes::update().topic("t")).await.unwrap().state.log.clone()
    }
    let names = owned();
    assert_eq!(log(nodes().add_edge(["a", "b"], "c")).await, ["a", "b", "c"]);
    assert_eq!(log(nodes().add_edge(owned(), "c")).await, ["a", "b", "c"]);
    assert_eq!(log(nodes().add_edge(&names, "c")).await, ["a", "b", "c"]);
    assert_eq!(log(nodes().add_edge(BTreeSet::from(["a", "b"]), "c")).await, ["a", "b", "c"]);
    assert_eq!(log(nodes().add_edge(names.as_slice(), "c")).await, ["a", "b", "c"]);
    let targets = ["c".to_owned()].into_iter().collect::<HashSet<String>>();
    assert_eq!(log(nodes().add_conditional_edges_with_map("a", |_: &Notes| "c", targets)).await, ["a", "b", "c"]);
    let led = NodeOptions::new().destinations(BTreeSet::from(["c"]));
    assert_eq!(log(nodes().add_node_with("d", says("d"), led).add_edge("b", "d")).await, ["a", "b", "d"]);
}

#[tokio::test]
async fn fields_are_named_by_text_or_by_their_handles() {
    let out = |graph: &mut StateGraph<Notes>| graph.compile().unwrap().invoke(Notes::update().topic("t")).into_future();
    assert_eq!(out(nodes().output([Notes::LOG])).await.unwrap().to_json(), serde_json::json!({ "log": ["a", "b"] }));
    assert!(out(nodes().input([Notes::TOPIC])).await.unwrap().state.topic.is_some());
    assert!(out(nodes().input(vec!["log".to_owned()])).await.unwrap().state.topic.is_none());
    let app = nodes().compile().unwrap();
    let chosen = app.invoke(()).output_keys([Notes::LOG]).await.unwrap();
    assert_eq!(chosen.to_json(), serde_json::json!({ "log": ["a", "b"] }));
}

#[test]
fn dynamic_fields_are_named_alike() {
    let names = owned();
    let fields = JsonState::schema().last_value("a").last_value("b").internal(&names);
    assert_eq!(fields.names().collect::<Vec<_>>(), names);
}

#[test]
fn the_sources_of_a_join_may_be_a_set() {
    assert_eq!(BTreeSet::from(["b", "a"]).sources(), Err(owned()));
}
