//! A list of targets in place of a map: the nodes that a path may name.

use serde_json::json;
use superstep::{
    CompiledStateGraph, Context, END, ErrorKind, JsonInput, JsonState, NamedPath, START, Send, StateGraph, StoreHandle,
};

use crate::support::{Notes, NotesUpdate, says};

fn input(topic: &str) -> NotesUpdate {
    Notes::update().topic(topic)
}

/// Where the topic says.
fn by_topic(notes: &Notes) -> String {
    notes.topic.clone().unwrap_or_default()
}

fn nodes() -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_node("b", says("b")).add_node("c", says("c"));
    graph
}

fn from_a() -> CompiledStateGraph<Notes> {
    let mut graph = nodes();
    graph.add_edge(START, "a").add_edge("c", END).add_edge("b", "c");
    graph.add_conditional_edges_with_map("a", by_topic, ["b", END]).compile().unwrap()
}

async fn log(app: &CompiledStateGraph<Notes>, topic: &str) -> String {
    app.invoke(input(topic)).await.unwrap().state.log.join(" ")
}

async fn refusal(app: &CompiledStateGraph<Notes>, topic: &str) -> String {
    let error = app.invoke(input(topic)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.to_string()
}

#[tokio::test]
async fn a_path_leads_to_what_it_names_if_the_list_has_it() {
    let app = from_a();
    assert_eq!(log(&app, "b").await, "a b c");
    assert_eq!(log(&app, END).await, "a");
    let text = refusal(&app, "c").await;
    let expected =
        r#"a conditional edge of `a` returned `c` in step 1, which is not in its list of targets ["b", "__end__"]"#;
    assert!(text.contains(expected), "{text}");
}

#[test]
fn what_the_list_has_is_drawn_without_labels_and_the_rest_is_not() {
    let drawn = from_a().draw();
    let of_a = drawn.edges.iter().filter(|edge| edge.from == "a");
    let mut of_a: Vec<_> = of_a.map(|edge| (edge.to.as_str(), edge.conditional, edge.label.is_some())).collect();
    of_a.sort_unstable();
    assert_eq!(of_a, [(END, true, false), ("b", true, false)]);
}

#[test]
fn a_list_is_checked_when_the_graph_is_compiled() {
    let mut graph = nodes();
    graph.add_edge(START, "a").add_conditional_edges_with_map("a", by_topic, ["b".to_owned(), "bb".to_owned()]);
    let expected = r#"edge from `a` to unknown node `bb`; add it with `add_node("bb", ..)`"#;
    assert_eq!(graph.compile().unwrap_err().to_string(), expected);
}

#[tokio::test]
async fn a_list_holds_for_async_paths() {
    let path = async |notes: Notes, _: Context, _: Option<StoreHandle>| by_topic(&notes);
    let mut graph = nodes();
    graph.add_edge(START, "a").add_conditional_edges_with_map("a", NamedPath::new("way", path), ["b"]);
    let app = graph.compile().unwrap();
    assert_eq!(log(&app, "b").await, "a b");
    let text = refusal(&app, "c").await;
    assert!(
        text.contains(r#"`way` of `a` returned `c` in step 1, which is not in its list of targets ["b"]"#),
        "{text}"
    );
}

#[tokio::test]
async fn a_list_holds_for_the_entry() {
    let app = nodes().set_conditional_entry_point_with_map(by_topic, ["a", "b"]).compile().unwrap();
    assert_eq!(log(&app, "b").await, "b");
    let text = refusal(&app, "c").await;
    assert!(text.contains("`c`") && text.contains(r#"which is not in its list of targets ["a", "b"]"#), "{text}");
    let mapped = nodes().set_conditional_entry_point_with_map(by_topic, [("first", "a")]).compile().unwrap();
    assert_eq!(log(&mapped, "first").await, "a");
}

#[tokio::test]
async fn what_is_sent_may_go_past_the_list() {
    let mut graph = nodes();
    let path = |notes: &Notes| Send::new("c", notes.clone());
    let app = graph.add_edge(START, "a").add_conditional_edges_with_map("a", path, ["b"]).compile().unwrap();
    assert_eq!(log(&app, "any").await, "a c");
}

#[tokio::test]
async fn a_list_holds_for_graphs_over_json() {
    let says = |name: &'static str| move |_: JsonInput| std::future::ready(json!({ "log": [name] }));
    let mut graph = StateGraph::dynamic(JsonState::schema().append("log").last_value("topic"));
    graph.add_node("a", says("a")).add_node("b", says("b")).add_node("c", says("c")).add_edge(START, "a");
    let path = async |input: JsonInput| input["topic"].as_str().unwrap_or(END).to_owned();
    let app = graph.add_conditional_edges_with_map("a", path, ["b", END]).compile().unwrap();
    let out = app.invoke(json!({ "topic": "b" })).await.unwrap();
    assert_eq!(out.to_json()["log"], json!(["a", "b"]));
    let error = app.invoke(json!({ "topic": "c" })).await.unwrap_err();
    assert!(
        error.to_string().contains(r#"`c` in step 1, which is not in its list of targets ["b", "__end__"]"#),
        "{error}"
    );
}

#[tokio::test]
async fn what_a_list_leads_to_meets_in_one_node() {
    let mut graph = nodes();
    graph.add_edge(START, "a").add_conditional_edges_then("a", by_topic, ["b", END], "c");
    assert_eq!(log(&graph.compile().unwrap(), "b").await, "a b c");
}
