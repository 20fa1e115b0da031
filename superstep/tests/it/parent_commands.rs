//! Commands that a node of a subgraph gives to the graph around it.

use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::{
    BoxError, Command, CompiledStateGraph, Context, ErrorKind, Goto, MappedGraph, MemorySaver, Mode, START, Send, Sent,
    State, StateGraph,
};

use crate::support::{Count, Notes, NotesUpdate, events, saved, says, trace};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

fn nowhere() -> [Goto; 0] {
    []
}

/// A child whose first node commands the parent, and whose second would run after it.
fn commanding(line: &'static str, goto: &'static [&'static str]) -> StateGraph<Notes> {
    let commands = move |_: Notes| async move {
        Command::<Notes>::to_parent(Notes::update().log([line]), goto.iter().map(|to| Goto::from(*to)))
            .update(Notes::update().log(["dropped"]))
    };
    let mut graph = StateGraph::new();
    graph
        .add_node("before", says("lost"))
        .add_node("commands", commands)
        .add_node("after", says("never"))
        .add_sequence(["before", "commands", "after"]);
    graph
}

fn around(child: &StateGraph<Notes>) -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph
        .add_node("child", child.compile().unwrap())
        .add_node("there", says("there"))
        .add_node("edge", says("edge"))
        .add_edge(START, "child");
    graph
}

#[tokio::test]
async fn a_command_updates_the_parent_and_leads_it() {
    let app = saved(&mut around(&commanding("from inside", &["there"])));
    let out = app.invoke(input()).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["from inside", "there"], "what the child wrote by itself is dropped");
    expect_test::expect![[r#"
        -1 input  {"log":[],"total":0} -> __start__
         0 loop   {"log":[],"topic":"t","total":0} -> child
         1 loop   {"log":["from inside"],"topic":"t","total":0} -> there
         2 loop   {"log":["from inside","there"],"topic":"t","total":0} -> "#]]
    .assert_eq(&trace(&app.thread("t")).await.unwrap());
}

#[tokio::test]
async fn a_command_to_the_parent_works_without_a_checkpointer_and_in_every_kind_of_child() {
    let kinds: [fn(&mut StateGraph<Notes>) -> &mut StateGraph<Notes>; 3] =
        [|g| g, StateGraph::persistent, StateGraph::stateless];
    for kind in kinds {
        let graph = || around(kind(&mut commanding("from inside", &["there"])));
        assert_eq!(graph().compile().unwrap().invoke(input()).await.unwrap().state.log, ["from inside", "there"]);
        assert_eq!(saved(&mut graph()).invoke(input()).thread("t").await.unwrap().state.log, ["from inside", "there"]);
    }
}

#[tokio::test]
async fn the_static_edges_of_the_subgraphs_node_run_too() {
    let app = around(&commanding("x", &["there"])).add_edge("child", "edge").compile().unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().state.log, ["x", "edge", "there"]);
    let app = around(&commanding("x", &[])).add_edge("child", "edge").compile().unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().state.log, ["x", "edge"]);
}

#[tokio::test]
async fn a_command_may_send_the_parent_to_several_nodes_with_payloads() {
    let work = |Sent(n): Sent<i64>| async move { Notes::update().total(n) };
    let commands = |_: Notes| async {
        let to = [Send::new("work", 1).into(), Send::new("work", 20).into(), Goto::from("there")];
        Command::<Notes>::to_parent(Notes::update(), to)
    };
    let mut child = StateGraph::new();
    child.add_node("commands", commands).add_edge(START, "commands");
    let app = around(&child).add_node("work", work).compile().unwrap();
    let out = app.invoke(input()).await.unwrap();
    assert_eq!((out.state.total, out.state.log.clone()), (21, vec!["there".to_owned()]));
}

#[tokio::test]
async fn a_command_from_deep_inside_reaches_the_next_graph_only() {
    let middle = around(&commanding("for the middle", &["there"]));
    let app = StateGraph::new()
        .add_node("middle", middle.compile().unwrap())
        .add_node("there", says("there of the top"))
        .add_edge(START, "middle")
        .compile()
        .unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().state.log, ["for the middle", "there"]);
}

#[tokio::test]
async fn a_command_may_be_handed_up_from_graph_to_graph() {
    let hands_up = |notes: Notes| async move {
        Command::<Notes>::to_parent(Notes::update().log([format!("middle saw {:?}", notes.log)]), ["there".into()])
    };
    let bottom = commanding("from the bottom", &["hands up"]);
    let mut middle = StateGraph::new();
    middle.add_node("bottom", bottom.compile().unwrap()).add_node("hands up", hands_up).add_edge(START, "bottom");
    let mut top = StateGraph::new();
    top.add_node("middle", middle.compile().unwrap()).add_node("there", says("there")).add_edge(START, "middle");
    let out = saved(&mut top).invoke(input()).thread("t").await.unwrap();
    assert_eq!(out.state.log, [r#"middle saw ["from the bottom"]"#, "there"]);
}

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Inner {
    word: Option<String>,
}

fn inner<P: State>(
    update: impl Fn(&str) -> superstep::Update<P> + std::marker::Send + Sync + 'static,
) -> CompiledStateGraph<Inner> {
    let node = move |inner: Inner| {
        let update = update(inner.word.as_deref().unwrap_or_default());
        async move { Command::<Inner>::to_parent(update, ["there".into()]) }
    };
    StateGraph::<Inner>::new().add_node("n", node).add_edge(START, "n").compile().unwrap()
}

fn logs(word: &str) -> superstep::Update<Notes> {
    superstep::IntoUpdate::into_update(Notes::update().log([format!("inner got {word}")]))
}

#[tokio::test]
async fn a_child_over_another_state_commands_its_parent_in_the_parents_state() {
    let mapped = MappedGraph::new(
        inner(logs),
        |notes: &Notes| Inner::update().word(notes.topic.clone().unwrap_or_default()),
        |_: &Inner| Notes::update().log(["the output is not used"]),
    );
    let app = StateGraph::new()
        .add_node("child", mapped)
        .add_node("there", says("there"))
        .add_edge(START, "child")
        .compile()
        .unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().state.log, ["inner got t", "there"]);
}

#[tokio::test]
async fn a_called_graph_commands_the_graph_of_the_node_that_calls_it() {
    let (child, went_on) = (inner(logs), Count::default());
    let counter = went_on.clone();
    let calls = move |_: Notes, cx: Context| {
        let (child, counter) = (child.clone(), counter.clone());
        async move {
            cx.invoke(&child, Inner::update().word("called")).await?;
            counter.up();
            Ok::<_, BoxError>(Notes::update().log(["the node does not go on"]))
        }
    };
    let app = StateGraph::new()
        .add_node("calls", calls)
        .add_node("there", says("there"))
        .add_edge(START, "calls")
        .compile()
        .unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().state.log, ["inner got called", "there"]);
    assert_eq!(went_on.get(), 0);
}

#[tokio::test]
async fn an_update_of_another_state_than_the_parents_is_refused_with_the_nodes_name() {
    let wrong = inner(|word| superstep::IntoUpdate::<Inner>::into_update(Inner::update().word(word)));
    let mapped = MappedGraph::new(wrong, |_: &Notes| Inner::update().word("x"), |_: &Inner| Notes::update());
    let app = saved(StateGraph::new().add_node("child", mapped).add_edge(START, "child"));
    let error = app.invoke(input()).thread("t").await.unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Node, Some("child")));
    assert_eq!(
        error.to_string(),
        "node `child` failed in step 1: a command for the parent graph carries an update of another state than the parent's"
    );
    assert_eq!(app.thread("t").state().await.unwrap().next, ["child"]);
}

#[tokio::test]
async fn a_root_graph_has_no_parent_to_command() {
    let app = saved(&mut commanding("x", &[]));
    let error = app.invoke(input()).thread("t").await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::ParentCommand, "a command for a parent graph reached the root graph")
    );
    assert_eq!(app.thread("t").state().await.unwrap().next, ["commands"], "what was done before is kept");
    let command = Command::<Notes>::to_parent(Notes::update().log(["x"]), nowhere());
    let error = app.invoke(command).thread("t").await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::InvalidUpdate, "there is no parent graph to command")
    );
}

#[tokio::test]
async fn a_command_to_the_parent_is_streamed_as_the_update_of_the_subgraphs_node() {
    let app = around(&commanding("from inside", &["there"])).checkpointer(MemorySaver::new()).compile().unwrap();
    let all = events(app.stream(input()).thread("t").mode(Mode::Updates).start()).await;
    let shown: Vec<_> = all.iter().map(|e| e["data"].clone()).collect();
    assert_eq!(shown, [json!({ "child": { "log": ["from inside"] } }), json!({ "there": { "log": ["there"] } })]);
}
