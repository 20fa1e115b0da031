//! The part of a thread that belongs to a subgraph: looked at and changed by hand while it waits.

use serde_json::json;
use superstep::{
    CompiledStateGraph, Context, ErrorKind, GoOn, Interrupted, MappedGraph, MemorySaver, Resume, START, Source,
    StateGraph, Thread,
};

use crate::support::{Count, Notes, NotesUpdate, saved, says, trace};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

/// `first`, a question, and `last`, which tells what it saw.
fn asking(runs: &Count) -> StateGraph<Notes> {
    let runs = runs.clone();
    let first = move |_: Notes| {
        runs.up();
        async { Notes::update().log(["first"]) }
    };
    let ask = |_: Notes, cx: Context| async move {
        let answer: String = cx.interrupt("what?")?;
        Ok::<_, Interrupted>(Notes::update().log([answer]))
    };
    let last = |notes: Notes| async move { Notes::update().topic(format!("last saw {}", notes.log.join(" "))) };
    let mut graph = StateGraph::new();
    graph.add_node("first", first).add_node("ask", ask).add_node("last", last).add_sequence(["first", "ask", "last"]);
    graph
}

fn around(child: CompiledStateGraph<Notes>) -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("child", child).add_edge(START, "child");
    graph
}

/// The thread of the subgraph that waits now.
async fn inside(thread: &Thread<Notes>) -> Thread<Notes> {
    let seen = thread.state().await.unwrap();
    thread.subgraph(seen.tasks[0].namespace.as_ref().expect("the task has a subgraph")).expect("over notes")
}

async fn waiting(child: &StateGraph<Notes>) -> CompiledStateGraph<Notes> {
    let app = saved(&mut around(child.compile().unwrap()));
    assert_eq!(app.invoke(input()).thread("t").await.unwrap().interrupts.len(), 1);
    app
}

#[tokio::test]
async fn a_change_inside_is_seen_when_the_run_goes_on() {
    let kinds: [fn(&mut StateGraph<Notes>) -> &mut StateGraph<Notes>; 2] = [|g| g, StateGraph::persistent];
    for kind in kinds {
        let runs = Count::default();
        let app = waiting(kind(&mut asking(&runs))).await;
        let child = inside(&app.thread("t")).await;
        let at = child.update(Notes::update().log(["by hand"])).as_node("first").await.unwrap();
        assert!(at.namespace.starts_with("child"), "{at:?}");
        let seen = child.state().await.unwrap();
        assert_eq!(
            (seen.source, seen.next.clone(), seen.values()["log"].clone()),
            (Some(Source::Update), vec!["ask".to_owned()], json!(["first", "by hand"]))
        );
        let parent = app.thread("t").state().await.unwrap();
        assert_eq!(parent.values(), json!({ "log": [], "topic": "t", "total": 0 }), "the parent has not changed");
        let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
        assert_eq!(out.state.topic.as_deref(), Some("last saw first by hand yes"));
        assert_eq!((out.state.log.join(" ").as_str(), runs.get()), ("first by hand yes", 1));
    }
}

#[tokio::test]
async fn a_change_inside_decides_what_runs_next_there() {
    let app = waiting(&asking(&Count::default())).await;
    let child = inside(&app.thread("t")).await;
    child.update(Notes::update().log(["answered by hand"])).as_node("ask").await.unwrap();
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert!(out.interrupts.is_empty(), "nobody asks any more");
    assert_eq!(out.state.topic.as_deref(), Some("last saw first answered by hand"));
}

#[tokio::test]
async fn a_change_two_levels_deep_is_seen_at_the_top() {
    let middle = around(asking(&Count::default()).compile().unwrap());
    let app = saved(&mut around(middle.compile().unwrap()));
    app.invoke(input()).thread("t").await.unwrap();
    let bottom = inside(&inside(&app.thread("t")).await).await;
    let at = bottom.update(Notes::update().log(["deep"])).as_node("first").await.unwrap();
    assert_eq!(at.namespace.split('|').count(), 2, "{at:?}");
    let deep = app.thread("t").state_with_subgraphs().await.unwrap();
    let middle = deep.tasks[0].subgraph.as_ref().unwrap();
    let bottom = middle.tasks[0].subgraph.as_ref().unwrap();
    assert_eq!(bottom.state_as::<Notes>().unwrap().log, ["first", "deep"]);
    assert_eq!(bottom.values()["log"], json!(["first", "deep"]));
    let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!(out.state.log.join(" "), "first deep yes");
}

#[tokio::test]
async fn a_change_of_one_subgraph_leaves_its_sibling_alone() {
    let mut graph = StateGraph::new();
    graph
        .add_node("x", asking(&Count::default()).output(["log"]).compile().unwrap())
        .add_node("y", asking(&Count::default()).output(["log"]).compile().unwrap());
    let app = saved(graph.add_edge(START, "x").add_edge(START, "y"));
    let out = app.invoke(input()).thread("t").await.unwrap();
    let seen = app.thread("t").state().await.unwrap();
    let y = seen.tasks.iter().find(|t| t.name == "y").unwrap();
    let thread: Thread<Notes> = app.thread("t").subgraph(y.namespace.as_ref().unwrap()).unwrap();
    thread.update(Notes::update().log(["only y"])).as_node("first").await.unwrap();
    // After a change the task that asks is another one, with a question of its own.
    let answers = out.interrupts.iter().map(|q| (q.id.clone(), "yes"));
    let open = app.invoke(Resume::by_id(answers)).thread("t").await.unwrap().interrupts;
    assert_eq!(open.len(), 1);
    assert!(out.interrupts.iter().all(|q| q.id != open[0].id));
    let out = app.invoke(Resume::value("well, yes")).thread("t").await.unwrap();
    assert_eq!(out.state.log.join(" "), "first yes first only y well, yes");
}

#[tokio::test]
async fn the_history_of_a_subgraph_is_its_own() {
    let app = waiting(&asking(&Count::default())).await;
    let child = inside(&app.thread("t")).await;
    child.update(Notes::update().log(["by hand"])).as_node("first").await.unwrap();
    app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    expect_test::expect![[r#"
        -1 input  {"log":[],"total":0} -> __start__
         0 loop   {"log":[],"topic":"t","total":0} -> first
         1 loop   {"log":["first"],"topic":"t","total":0} -> ask
         2 update {"log":["first","by hand"],"topic":"t","total":0} -> ask
         3 loop   {"log":["first","by hand","yes"],"topic":"t","total":0} -> last
         4 loop   {"log":["first","by hand","yes"],"topic":"last saw first by hand yes","total":0} -> "#]]
    .assert_eq(&trace(&child).await.unwrap());
}

#[tokio::test]
async fn the_thread_of_a_subgraph_is_given_only_as_what_it_is() {
    let mut child = StateGraph::<superstep::AgentState>::new();
    child.add_node("n", async |_: superstep::AgentState, cx: Context| cx.interrupt::<()>("what?")).add_edge(START, "n");
    let map = MappedGraph::new(child.compile().unwrap(), |_: &Notes| (), |_: &superstep::AgentState| Notes::update());
    let app = saved(StateGraph::new().add_node("child", map).add_edge(START, "child"));
    app.invoke(input()).thread("t").await.unwrap();
    let seen = app.thread("t").state_with_subgraphs().await.unwrap();
    let (thread, at) = (app.thread("t"), seen.tasks[0].namespace.as_ref().unwrap());
    let refused = thread.subgraph::<Notes>(at).unwrap_err().to_string();
    assert!(refused.contains("the states of graph `graph` are no `") && refused.contains("Notes"), "{refused}");
    assert!(thread.subgraph::<superstep::AgentState>(at).is_ok());
    assert!(thread.subgraph::<superstep::AgentState>("other:1").is_err(), "no graph is there");
    let state = seen.tasks[0].subgraph.as_ref().unwrap();
    assert_eq!(state.next, ["n"]);
    assert!(state.state_as::<Notes>().is_none() && state.state_as::<superstep::AgentState>().is_some());
}

#[tokio::test]
async fn a_stateless_subgraph_has_no_thread() {
    let app = waiting(asking(&Count::default()).stateless()).await;
    assert!(app.thread("t").state_with_subgraphs().await.unwrap().tasks[0].namespace.is_none());
}

#[tokio::test]
async fn a_change_inside_as_an_unknown_node_is_refused_and_changes_nothing() {
    let app = waiting(&asking(&Count::default())).await;
    let child = inside(&app.thread("t")).await;
    let before = trace(&child).await.unwrap();
    let error = child.update(input()).as_node("child").await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::InvalidUpdate, "there is no node `child` to update as")
    );
    assert_eq!(trace(&child).await.unwrap(), before);
}

#[tokio::test]
async fn a_checkpointer_of_a_subgraph_is_not_used_inside_a_parent() {
    let own = MemorySaver::new();
    let child = asking(&Count::default()).checkpointer(own.clone()).compile().unwrap();
    let app = saved(around(child).add_node("after", says("after")).add_edge("child", "after"));
    app.invoke(input()).thread("t").await.unwrap();
    assert!(superstep::Checkpointer::namespaces(&own, "t").await.unwrap().is_empty());
    assert_eq!(inside(&app.thread("t")).await.state().await.unwrap().next, ["ask"]);
}

#[tokio::test]
async fn a_subgraph_goes_on_with_its_parent_only() {
    let kinds: [fn(&mut StateGraph<Notes>) -> &mut StateGraph<Notes>; 2] = [|g| g, StateGraph::persistent];
    for kind in kinds {
        let app = waiting(kind(&mut asking(&Count::default()))).await;
        let error = inside(&app.thread("t")).await.resume().await.unwrap_err();
        let words = "a subgraph resumes with the graph around it; resume that graph's thread";
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, words));
    }
}

#[tokio::test]
async fn a_run_may_start_at_a_change_made_inside() {
    let app = waiting(&asking(&Count::default())).await;
    let at = inside(&app.thread("t")).await.update(Notes::update().log(["by hand"])).as_node("ask").await.unwrap();
    let out = app.invoke(GoOn).at(&at).await.unwrap();
    assert_eq!(out.state.topic.as_deref(), Some("last saw first by hand"));
}
