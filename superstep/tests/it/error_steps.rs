//! Errors of runs say in which step it was: in words, and when they are asked.

use std::time::Duration;

use serde_json::{Value, json};
use superstep::{
    BoxError, Command, CompiledStateGraph, Context, Entrypoint, Error, ErrorKind, GoOn, Interrupted, JsonInput,
    JsonState, MemorySaver, Next, NodeOptions, Resume, RetryPolicy, START, Send, StateGraph, Task, TaskError,
};

use crate::support::{Count, Notes, NotesUpdate, a_b_c, saved, says};

fn input() -> NotesUpdate {
    Notes::update().topic("tea")
}

/// `a`, `b`, `c`, and in step 4 what is tried.
fn then(graph: impl FnOnce(&mut StateGraph<Notes>) -> &mut StateGraph<Notes>) -> CompiledStateGraph<Notes> {
    let mut all = a_b_c();
    graph(&mut all);
    all.add_edge("c", "last").compile().unwrap()
}

#[track_caller]
fn check(error: &Error, kind: ErrorKind, (node, step): (Option<&str>, i64), words: &str) {
    assert_eq!(error.to_string(), words);
    assert_eq!((error.kind(), error.node(), error.step()), (kind, node, Some(step)), "{error}");
}

#[tokio::test]
async fn a_node_that_fails_says_in_which_step() {
    let fails = |_: Notes| async { Err::<(), _>("no luck") };
    let app = then(|graph| graph.add_node("last", fails));
    let words = "node `last` failed in step 4: no luck";
    check(&app.invoke(input()).await.unwrap_err(), ErrorKind::Node, (Some("last"), 4), words);

    let panics = |notes: Notes| async move { assert_eq!(notes.topic, None, "what?") };
    let app = then(|graph| graph.add_node("last", panics));
    let error = app.invoke(input()).await.unwrap_err();
    assert_eq!((error.kind(), error.node(), error.step()), (ErrorKind::Panic, Some("last"), Some(4)));
    assert!(error.to_string().starts_with("node `last` panicked in step 4: "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_takes_too_long_says_in_which_step() {
    let sleeps = |_: Notes| async { tokio::time::sleep(Duration::from_secs(9)).await };
    let options = NodeOptions::new().timeout(Duration::from_secs(1));
    let app = then(|graph| graph.add_node_with("last", sleeps, options));
    let words = "node `last` exceeded its run timeout of 1s in step 4";
    check(&app.invoke(input()).await.unwrap_err(), ErrorKind::Timeout, (Some("last"), 4), words);

    let app = then(|graph| graph.add_node("last", sleeps).step_timeout(Duration::from_secs(1)));
    let words = "step 4 exceeded its timeout of 1s";
    check(&app.invoke(input()).await.unwrap_err(), ErrorKind::Timeout, (None, 4), words);
}

#[tokio::test]
async fn updates_that_do_not_fit_say_in_which_step() {
    let json = |nodes: &[&'static str], bad: fn() -> Value| {
        let mut graph = StateGraph::dynamic(JsonState::schema().last_value("n").append("log"));
        let first = |_: JsonInput| async { json!({ "log": ["first"] }) };
        graph.add_node("first", first).add_edge(START, "first");
        for node in nodes {
            graph.add_node(*node, move |_: JsonInput| async move { bad() }).add_edge("first", *node);
        }
        graph.compile().unwrap()
    };
    let error = json(&["x"], || json!([1])).invoke(json!({})).await.unwrap_err();
    let words = "node `x` returned an update in step 2 that does not fit: expected an object, got [1]";
    check(&error, ErrorKind::InvalidUpdate, (Some("x"), 2), words);

    let error = json(&["x", "y"], || json!({ "n": 1 })).invoke(json!({})).await.unwrap_err();
    assert_eq!((error.kind(), error.node(), error.step()), (ErrorKind::InvalidUpdate, None, Some(2)));
    assert!(error.to_string().ends_with("(in what `x`, `y` wrote in step 2)"), "{error}");
}

#[tokio::test]
async fn conditional_edges_say_in_which_step() {
    let app = then(|graph| {
        graph.add_node("last", says("last"));
        graph.add_conditional_edges("last", |_: &Notes| -> Result<&'static str, BoxError> { Err("no way".into()) })
    });
    let words = "a conditional edge of `last` failed in step 4: no way";
    check(&app.invoke(input()).await.unwrap_err(), ErrorKind::Node, (Some("last"), 4), words);
    let app = then(|graph| graph.add_node("last", says("last")).add_conditional_edges("last", |_: &Notes| START));
    let words = "a conditional edge of `last` led to `START` in step 4";
    check(&app.invoke(input()).await.unwrap_err(), ErrorKind::Invalid, (Some("last"), 4), words);
}

#[tokio::test]
async fn an_error_is_the_same_if_someone_watches_or_saves_or_others_run_beside() {
    let fails = |_: Notes| async { Err::<(), _>("no luck") };
    let words = "node `last` failed in step 4: no luck";
    let place = (Some("last"), 4);
    let app = then(|graph| graph.add_node("last", fails).add_node("beside", says("beside")).add_edge("c", "beside"));
    check(&app.invoke(input()).await.unwrap_err(), ErrorKind::Node, place, words);
    let app = then(|graph| graph.add_node("last", fails).checkpointer(MemorySaver::new()));
    check(&app.invoke(input()).thread("t").await.unwrap_err(), ErrorKind::Node, place, words);
    check(&app.invoke(GoOn).thread("t").await.unwrap_err(), ErrorKind::Node, place, words);
    let mut stream = app.stream(input()).thread("u").start();
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = event.err();
    }
    check(&last.unwrap(), ErrorKind::Node, place, words);
    // What is kept are the node's own words.
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(seen.tasks[0].error, Some(TaskError::new(ErrorKind::Node, "no luck")));
}

#[tokio::test]
async fn an_error_inside_a_subgraph_has_the_step_of_the_subgraph() {
    let fails = |_: Notes| async { Err::<(), _>("no luck") };
    let inner = StateGraph::<Notes>::new()
        .add_node("one", says("one"))
        .add_node("two", fails)
        .add_sequence(["one", "two"])
        .compile()
        .unwrap();
    let called = inner.clone();
    let calls = move |notes: Notes| {
        let run = called.invoke(notes);
        async move { run.await.map(|out| Notes::update().log(out.state.log)) }
    };
    let words = "node `two` failed in step 2: no luck";
    let app = then(|graph| graph.add_node("last", inner));
    check(&app.invoke(input()).await.unwrap_err(), ErrorKind::Node, (Some("two"), 2), words);
    let app = then(|graph| graph.add_node("last", calls));
    check(&app.invoke(input()).await.unwrap_err(), ErrorKind::Node, (Some("two"), 2), words);
}

/// It had the node of the graph around, and the step of the graph inside.
#[tokio::test]
async fn an_error_of_no_node_inside_a_subgraph_has_the_node_and_the_step_around_it() {
    let topic = |topic: &'static str| move |_: Notes| async move { Notes::update().topic(topic) };
    let mut inner = a_b_c();
    inner.add_node("x", topic("x")).add_node("y", topic("y")).add_edge("b", "x").add_edge("b", "y");
    let inner = inner.compile().unwrap();
    let app = then(|graph| graph.add_node("last", inner));
    let error = app.invoke(input()).await.unwrap_err();
    assert!(error.to_string().ends_with("(in what `x`, `y` wrote in step 3)"), "{error}");
    assert_eq!((error.node(), error.step()), (Some("last"), Some(4)));
}

#[tokio::test]
async fn errors_that_are_no_nodes_have_no_step() {
    let app = saved(&mut a_b_c());
    let error = app.invoke(GoOn).thread("new").await.unwrap_err();
    assert_eq!((error.kind(), error.step()), (ErrorKind::EmptyInput, None));
    let error = app.invoke(input()).thread("t").recursion_limit(1).await.unwrap_err();
    assert_eq!((error.kind(), error.step()), (ErrorKind::RecursionLimit, None));
}

#[tokio::test(start_paused = true)]
async fn retry_policies_and_handlers_see_the_step() {
    let seen = Count::default();
    let asked = seen.clone();
    let fails = |_: Notes| async { Err::<(), _>("no luck") };
    let policy = RetryPolicy::new().max_attempts(2).retry_on(move |error| {
        assert_eq!(error.step(), Some(4));
        asked.up();
        true
    });
    let handler = |_: Notes| async { Err::<(), _>("no help") };
    let options = NodeOptions::new().retry(policy).error_handler(handler);
    let app = then(|graph| graph.add_node_with("last", fails, options));
    let error = app.invoke(input()).await.unwrap_err();
    assert_eq!(error.to_string(), "the error handler of `last` failed in step 4 (called for \"no luck\"): no help");
    assert_eq!((error.step(), seen.get()), (Some(4), 2));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_says_in_which_step_the_question_is() {
    let asks = |_: Notes, cx: Context| async move {
        let answer: i64 = cx.interrupt("how many?")?;
        Ok::<_, Interrupted>(Notes::update().total(answer))
    };
    let app = then(|graph| graph.add_node("last", asks).checkpointer(MemorySaver::new()));
    app.invoke(input()).thread("t").await.unwrap();
    let error = app.invoke(Resume::value("many")).thread("t").await.unwrap_err();
    assert_eq!((error.kind(), error.node(), error.step()), (ErrorKind::Invalid, Some("last"), Some(4)));
    assert!(error.to_string().starts_with("node `last` in step 4: "), "{error}");
}

#[tokio::test]
async fn a_call_in_a_workflow_that_fails_has_the_step_of_its_caller() {
    let part = Task::new("part", |_: i64| async { Err::<i64, _>("no luck") });
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let part = part.clone();
        async move { part.call(&cx, n).await }
    });
    let error = flow.compile().invoke(2).await.unwrap_err();
    check(&error, ErrorKind::Node, (Some("part"), 0), "task `part` failed in step 0: no luck");
}

mod where_nodes_lead {
    use super::*;

    fn goes(next: &'static str) -> CompiledStateGraph<Notes> {
        let goes = move |_: Notes| async move { (Notes::update().log(["chose"]), Next::node(next)) };
        then(|graph| graph.add_node("last", goes).add_node("plan", says("plan")))
    }

    #[tokio::test]
    async fn a_successor_that_the_graph_does_not_have_is_an_error_of_the_node() {
        let words = "node `last` returned `Next::node(\"plna\")` in step 4, but the graph has no such node (did you mean \
                     `plan`?); add it with `add_node(\"plna\", ..)`, or end with `Next::End`";
        check(&goes("plna").invoke(input()).await.unwrap_err(), ErrorKind::Invalid, (Some("last"), 4), words);
        let words = "node `last` returned `Next::node(\"elsewhere\")` in step 4, but the graph has no such node; add it \
                     with `add_node(\"elsewhere\", ..)`, or end with `Next::End`";
        check(&goes("elsewhere").invoke(input()).await.unwrap_err(), ErrorKind::Invalid, (Some("last"), 4), words);
        let words = "node `last` returned `Next::node(START)` in step 4, but the graph has no such node; name the node to \
                     go to, or end with `Next::End`";
        check(&goes(START).invoke(input()).await.unwrap_err(), ErrorKind::Invalid, (Some("last"), 4), words);
    }

    #[tokio::test]
    async fn a_successor_that_the_graph_has_and_the_end_are_gone_to() {
        assert_eq!(goes("plan").invoke(input()).await.unwrap().state.log, ["a", "b", "c", "chose", "plan"]);
        assert_eq!(goes(superstep::END).invoke(input()).await.unwrap().state.log, ["a", "b", "c", "chose"]);
    }

    #[tokio::test]
    async fn what_a_node_wrote_before_it_went_nowhere_is_dropped_and_it_runs_again() {
        let to_end = || superstep::Goto::from(Send::new(superstep::END, 1));
        let goes = |_: Notes| async { (Notes::update().log(["chose"]), Next::node("nowhere")) };
        let sends = move |_: Notes| async move {
            let work = Send::new("a", 1);
            Command::<Notes>::new().update(Notes::update().log(["chose"])).goto(work).goto(to_end())
        };
        let apps = [
            then(|graph| graph.add_node("last", goes).checkpointer(MemorySaver::new())),
            then(|graph| graph.add_node("last", sends).checkpointer(MemorySaver::new())),
        ];
        for (app, words) in apps.iter().zip(["no such node", "sent to `END`"]) {
            let first = app.invoke(input()).thread("t").await.unwrap_err().to_string();
            let seen = app.thread("t").state().await.unwrap();
            assert_eq!((seen.state.log.len(), seen.next), (3, vec!["last".to_owned()]));
            assert!(seen.tasks[0].error.as_ref().unwrap().message.contains(words));
            assert_eq!(app.invoke(GoOn).thread("t").await.unwrap_err().to_string(), first);
        }
    }

    #[tokio::test]
    async fn a_node_cannot_send_to_the_start_or_the_end() {
        for (to, name) in [(START, "START"), (superstep::END, "END")] {
            let words = format!("node `last` sent to `{name}` in step 4; `{name}` runs nothing, send to a node");
            let sends = move |_: Notes| async move { vec![Send::new(to, 1)] };
            let commands = move |_: Notes| async move { Command::<Notes>::new().goto(Send::new(to, 1)) };
            for app in [then(|graph| graph.add_node("last", sends)), then(|graph| graph.add_node("last", commands))] {
                let error = app.invoke(input()).await.unwrap_err();
                check(&error, ErrorKind::InvalidUpdate, (Some("last"), 4), &words);
            }
        }
    }
}
