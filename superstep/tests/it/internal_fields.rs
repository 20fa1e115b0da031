//! Fields that are saved with the thread and kept to the graph's nodes.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{
    CachePolicy, CompiledStateGraph, Durability, ErrorKind, JsonInput, JsonState, MemoryCache, MemorySaver, Mode,
    NodeOptions, START, State, StateGraph, Update,
};

use crate::support::{events, history};

#[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Talk {
    #[state(append)]
    said: Vec<String>,
    #[state(sum, internal)]
    calls: u64,
    #[state(internal, rename = "last_model")]
    model: Option<String>,
}

/// Counts its calls, and says how many there were before.
fn counting() -> StateGraph<Talk> {
    let mut graph = StateGraph::new();
    let counts = |talk: Talk| Talk::update().calls(1).model("small").said([format!("{} before", talk.calls)]);
    graph.add_node("counts", counts).add_edge(START, "counts").checkpointer(MemorySaver::new());
    graph
}

fn app() -> CompiledStateGraph<Talk> {
    counting().compile().unwrap()
}

/// Whether the name or a value of an internal field is somewhere in it.
fn tells(value: &impl Serialize) -> bool {
    let text = serde_json::to_string(value).unwrap();
    ["calls", "model", "small"].iter().any(|word| text.contains(word))
}

#[tokio::test]
async fn nodes_read_and_write_it_and_the_thread_keeps_it() {
    let app = app();
    for _ in 0..3 {
        app.invoke(()).thread("t").await.unwrap();
    }
    let state = app.thread("t").state().await.unwrap();
    assert_eq!(state.state.said, ["0 before", "1 before", "2 before"]);
    assert_eq!((state.state.calls, state.state.model.as_deref()), (3, Some("small")), "typed, it is there");
}

#[tokio::test]
async fn no_input_writes_it() {
    let app = app();
    let out = app.invoke(Talk::update().calls(100).said(["hi"])).thread("t").await.unwrap();
    assert_eq!((out.state.calls, &*out.state.said), (1, &["hi".to_owned(), "0 before".to_owned()][..]));
    let whole = Talk { calls: 100, model: Some("large".into()), said: vec!["all".into()] };
    let out = app.invoke(whole.clone()).thread("t").await.unwrap();
    assert_eq!((out.state.calls, out.state.model.as_deref()), (2, Some("small")));
    app.thread("t").update_as_input(whole).await.unwrap();
    app.invoke(()).thread("u").durability(Durability::Exit).await.unwrap();
    assert_eq!(app.thread("t").invoke(superstep::GoOn).await.unwrap().state.calls, 3);
}

#[tokio::test]
async fn no_output_event_or_snapshot_shows_it() {
    let app = app();
    let modes = [Mode::Values, Mode::Updates, Mode::Tasks, Mode::Checkpoints, Mode::Debug];
    for event in events(app.stream(Talk::update().said(["hi"])).thread("t").modes(modes).start()).await {
        assert!(!tells(&event), "{event}");
    }
    assert!(!tells(&app.invoke(()).thread("t").await.unwrap().to_json()));
    for snapshot in history(&app.thread("t")).await.unwrap() {
        assert!(!tells(&snapshot), "{snapshot}");
    }
    assert!(!tells(&app.thread("t").state().await.unwrap().to_json()));
}

#[tokio::test]
async fn who_asks_for_it_by_name_is_refused() {
    let error = app().invoke(()).output_keys(["calls"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("`calls` is internal to the graph"), "{error}");
    for (list, graph) in [("input", counting().input(["calls"])), ("output", counting().output(["calls"]))] {
        let expected = format!("field `calls`: it is internal and so no part of the {list}; leave it out of the list");
        assert_eq!(graph.compile().unwrap_err().to_string(), expected);
    }
}

/// A result is kept for all that its node sees.
#[tokio::test]
async fn a_cached_result_is_not_that_of_another_value_of_it() {
    let mut graph = StateGraph::<Talk>::new();
    let says = |talk: Talk| Talk::update().said([format!("{} calls", talk.calls)]);
    graph.add_node_with("says", says, NodeOptions::new().cache(CachePolicy::new())).add_edge(START, "says");
    let app = graph.cache(MemoryCache::new()).checkpointer(MemorySaver::new()).compile().unwrap();
    assert_eq!(app.invoke(()).thread("t").await.unwrap().state.said, ["0 calls"]);
    app.thread("u").update(Talk::update().calls(5)).as_node("says").await.unwrap();
    assert_eq!(app.invoke(()).thread("u").await.unwrap().state.said, ["5 calls"]);
}

#[tokio::test]
async fn a_typed_caller_may_write_it_by_hand() {
    let app = app();
    app.thread("t").update(Talk::update().calls(10)).as_node("counts").await.unwrap();
    assert_eq!(app.invoke(()).thread("t").await.unwrap().state.said, ["10 before"]);
}

#[tokio::test]
async fn a_node_that_gives_back_the_whole_state_gives_it_too() {
    let mut graph = StateGraph::<Talk>::new();
    graph.add_node("whole", |talk: Talk| Talk { calls: talk.calls + 2, ..talk }).add_edge(START, "whole");
    graph.add_node("other", |_: Talk| Talk::update().calls(1)).add_edge(START, "other");
    assert_eq!(graph.compile().unwrap().invoke(()).await.unwrap().state.calls, 3);
}

/// A graph in another one is given what a caller could give it, and gives back what a caller would get.
#[tokio::test]
async fn a_graph_inside_keeps_it_to_itself() {
    let mut outer = counting();
    outer.add_node("inner", counting().stateless().compile().unwrap()).add_edge("counts", "inner");
    let out = outer.compile().unwrap().invoke(()).thread("t").await.unwrap().state;
    assert_eq!(out.said.last().map(String::as_str), Some("0 before"));
    assert_eq!(out.calls, 1);
}

#[tokio::test]
async fn fields_of_graphs_over_json_are_internal_too() {
    let fields = JsonState::schema().append("said").sum("calls").internal(["calls"]);
    let counts = async |seen: JsonInput| json!({ "calls": 1, "said": [format!("{} before", seen["calls"])] });
    let mut graph = StateGraph::dynamic(fields);
    graph.add_node("counts", counts).add_edge(START, "counts").checkpointer(MemorySaver::new());
    let app = graph.compile().unwrap();
    app.invoke(json!({ "calls": 100 })).thread("t").await.unwrap();
    let modes = [Mode::Values, Mode::Updates, Mode::Checkpoints];
    let shown: Vec<Value> = events(app.stream(json!({ "calls": 5 })).thread("t").modes(modes).start()).await;
    assert!(!shown.iter().any(tells), "{shown:?}");
    let state = app.thread("t").state().await.unwrap();
    assert_eq!(state.values(), json!({ "said": ["0 before", "1 before"] }));

    let unknown = StateGraph::dynamic(JsonState::schema().internal(["calls"])).compile().unwrap_err();
    assert!(unknown.to_string().contains("`calls`: it is to be internal, but was not added before"), "{unknown}");
}

#[test]
fn a_field_made_by_hand_says_so_in_its_specification() {
    let internal =
        |state: &[superstep::FieldSpec]| state.iter().map(superstep::FieldSpec::is_internal).collect::<Vec<_>>();
    assert_eq!(internal(Talk::fields(&())), [false, true, true]);
    assert_eq!(Update::<Talk>::new().set(Talk::CALLS, 1u64).puts().len(), 1);
}
