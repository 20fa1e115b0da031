//! Paths, `goto`s and sends to nodes that the graph does not have.

use serde_json::json;
use superstep::{
    Command, CompiledStateGraph, Durability, Error, ErrorKind, GoOn, Goto, JsonInput, JsonState, MemorySaver,
    NamedPath, Next, NodeOptions, RetryPolicy, START, Send, StateGraph,
};

use crate::support::{Count, Notes, NotesUpdate, says};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

/// `plan` and `agent`, and from `plan` whatever is added.
fn plan_and_agent() -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("plan", says("plan")).add_node("agent", says("agent")).add_edge(START, "plan");
    graph
}

async fn error_of(graph: &StateGraph<Notes>) -> Error {
    graph.compile().unwrap().invoke(input()).await.unwrap_err()
}

const WAY_OUT: &str = "add it with `add_node(\"agnet\", ..)`, or let the graph ignore such names with \
                       `ignore_unknown_targets(true)`";

/// A misspelled name ended the run as if all was done, with a line in the log.
#[tokio::test]
async fn a_path_to_an_unknown_node_is_an_error_that_names_both_and_the_nearest() {
    let mut graph = plan_and_agent();
    let error = error_of(graph.add_conditional_edges("plan", |_: &Notes| "agnet")).await;
    assert_eq!(
        error.to_string(),
        format!(
            "a conditional edge of `plan` led to `agnet` in step 1, but the graph has no such node (did you mean \
             `agent`?); {WAY_OUT}"
        )
    );
    assert_eq!((error.kind(), error.node(), error.step()), (ErrorKind::Invalid, Some("plan"), Some(1)));
    let mut graph = plan_and_agent();
    let error =
        error_of(graph.add_conditional_edges("plan", NamedPath::new("next", |_: &Notes| vec!["agent", "x"]))).await;
    let words = "the conditional edge `next` of `plan` led to `x` in step 1, but the graph has no such node; add it";
    assert!(error.to_string().starts_with(words), "{error}");
    let mut graph = plan_and_agent();
    let error = error_of(graph.add_conditional_edges(START, async |_: Notes| "agnet")).await;
    assert!(error.to_string().starts_with("a conditional edge of `START` led to `agnet`"), "{error}");
}

#[tokio::test]
async fn a_goto_of_an_unknown_node_is_an_error_of_the_node_that_goes_there() {
    let goes = |_: Notes| Command::<Notes>::new().update(Notes::update().log(["plan"])).goto("agnet");
    let mut graph = StateGraph::new();
    graph.add_node("plan", goes).add_node("agent", says("agent")).add_edge(START, "plan");
    let error = error_of(&graph).await;
    assert_eq!(
        error.to_string(),
        format!(
            "node `plan` goes to `agnet` in step 1, but the graph has no such node (did you mean `agent`?); {WAY_OUT}"
        )
    );
    assert_eq!((error.kind(), error.node()), (ErrorKind::Invalid, Some("plan")));
}

#[tokio::test]
async fn a_send_to_an_unknown_node_is_an_error_where_it_is_sent() {
    let mut graph = plan_and_agent();
    let error = error_of(graph.add_conditional_edges("plan", |_: &Notes| Send::new("agnet", 1))).await;
    let words = "a conditional edge of `plan` sent to `agnet` in step 1, but the graph has no such node";
    assert!(error.to_string().starts_with(words), "{error}");
    let sends = |_: Notes| vec![Send::new("plan", 1), Send::new("agnet", 1)];
    let mut graph = StateGraph::new();
    graph.add_node("plan", sends).add_node("agent", says("agent")).add_edge(START, "plan");
    let error = error_of(&graph).await;
    assert!(error.to_string().starts_with("node `plan` sent to `agnet` in step 1, but"), "{error}");
}

/// The caller's own mistake is refused before anything of it is saved.
#[tokio::test]
async fn a_command_that_goes_to_an_unknown_node_is_refused() {
    let app = plan_and_agent().checkpointer(MemorySaver::new()).compile().unwrap();
    let goto = || Command::<Notes>::new().goto("agnet");
    let words = "the command that the run begins with goes to `agnet`, but the graph has no such node";
    let error = app.invoke(goto()).thread("fresh").await.unwrap_err();
    assert!(error.to_string().starts_with(words), "{error}");
    app.invoke(input()).thread("t").await.unwrap();
    let before = app.thread("t").history().await.unwrap().len();
    let error = app.invoke(goto()).thread("t").await.unwrap_err();
    assert!(error.to_string().starts_with(words), "{error}");
    let error = app.invoke(Command::<Notes>::new().goto(Send::new("agnet", 1))).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("begins with sends to `agnet`, but"), "{error}");
    assert_eq!(app.thread("t").history().await.unwrap().len(), before);
    assert!(app.thread("t").state().await.unwrap().next.is_empty());
    let error = app.update_state("t", goto(), Some("plan")).await.unwrap_err();
    assert!(error.to_string().contains("goes to `agnet`"), "{error}");
}

fn mending(count: &Count, kind: &str) -> CompiledStateGraph<Notes> {
    let (runs, paths) = (count.clone(), Count::default());
    let node = move |_: Notes| {
        let run = runs.up();
        Notes::update().log([format!("run {run}")])
    };
    let path = move |_: &Notes| if paths.up() == 0 { "agnet" } else { "agent" };
    let mut graph = StateGraph::new();
    graph.add_node("plan", node).add_node("agent", says("agent")).add_edge(START, "plan");
    if kind == "path" {
        graph.add_conditional_edges("plan", path);
    } else {
        graph.add_conditional_edges("plan", move |state: Notes| std::future::ready(path(&state)));
    }
    graph.checkpointer(MemorySaver::new()).compile().unwrap()
}

/// As for a `Next::Node` that the graph does not have: the node failed, so what it wrote is dropped.
#[tokio::test]
async fn a_node_whose_path_led_nowhere_runs_again_and_its_writes_are_dropped() {
    for kind in ["path", "async path"] {
        for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
            let runs = Count::default();
            let app = mending(&runs, kind);
            app.invoke(input()).thread("t").durability(durability).await.unwrap_err();
            let seen = app.thread("t").state().await.unwrap();
            assert_eq!((seen.next, seen.state.log.len()), (vec!["plan".to_owned()], 0), "{kind} {durability:?}");
            let out = app.invoke(GoOn).thread("t").durability(durability).await.unwrap();
            assert_eq!(out.state.log, ["run 1", "agent"], "{kind} {durability:?}");
        }
    }
}

#[tokio::test]
async fn an_unknown_target_is_not_retried_and_can_be_handled() {
    let runs = Count::default();
    let counter = runs.clone();
    let goes = move |_: Notes| {
        counter.up();
        Command::<Notes>::new().goto("agnet")
    };
    let options = || NodeOptions::new().retry(RetryPolicy::new());
    let mut graph = StateGraph::new();
    graph.add_node_with("plan", goes.clone(), options()).add_edge(START, "plan");
    error_of(&graph).await;
    assert_eq!(runs.get(), 1);
    let mut graph = StateGraph::new();
    graph.add_node_with("plan", goes, options().error_handler(says("handled"))).add_edge(START, "plan");
    assert_eq!(graph.compile().unwrap().invoke(input()).await.unwrap().state.log, ["handled"]);
}

#[tokio::test]
async fn a_graph_that_is_told_so_ignores_unknown_targets() {
    let goes = |_: Notes| Command::<Notes>::new().update(Notes::update().log(["plan"])).goto("agnet");
    let mut graph = StateGraph::new();
    graph.add_node("plan", goes).add_edge(START, "plan").add_conditional_edges("plan", |_: &Notes| Send::new("x", 1));
    graph.ignore_unknown_targets(true);
    let out = graph.compile().unwrap().invoke(input()).await.unwrap();
    assert_eq!(out.state.log, ["plan"]);
    let next = |_: Notes| (Notes::update(), Next::node("agnet"));
    let mut graph = StateGraph::new();
    graph.add_node("plan", next).add_edge(START, "plan").ignore_unknown_targets(true);
    let error = error_of(&graph).await;
    assert!(error.to_string().contains("returned `Next::node(\"agnet\")`"), "a successor is none of these: {error}");
}

/// Dynamic graphs do as LangGraph does (`branch_to_unknown`, `send_to_unknown`), unless they are told not to.
#[tokio::test]
async fn a_dynamic_graph_ignores_unknown_targets_unless_it_is_told_not_to() {
    let mut graph = StateGraph::dynamic(JsonState::schema().append("log"));
    graph.add_node("plan", |_: JsonInput| json!({ "log": ["plan"] })).add_edge(START, "plan");
    graph.add_conditional_edges("plan", |_: &JsonState| vec!["agnet", "plan2"]);
    graph.add_conditional_edges("plan", |_: &JsonState| Send::new("nobody", 1));
    let out = graph.compile().unwrap().invoke(json!({ "log": [] })).await.unwrap();
    assert_eq!(out.to_json(), json!({ "log": ["plan"] }));
    graph.ignore_unknown_targets(false);
    let error = graph.compile().unwrap().invoke(json!({ "log": [] })).await.unwrap_err();
    assert!(error.to_string().contains("led to `agnet`"), "{error}");
}

#[tokio::test]
async fn a_command_for_the_parent_graph_names_the_node_that_holds_the_child() {
    let child = StateGraph::<Notes>::new()
        .add_node("asks", |_: Notes| Command::<Notes>::to_parent::<Notes>(Notes::update(), [Goto::from("agnet")]))
        .add_edge(START, "asks")
        .compile()
        .unwrap();
    let mut graph = StateGraph::new();
    graph.add_node("child", child).add_node("agent", says("agent")).add_edge(START, "child");
    let error = error_of(&graph).await;
    assert!(error.to_string().starts_with("node `child` goes to `agnet` in step 1, but"), "{error}");
}
