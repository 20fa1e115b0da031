//! What a failed, cancelled or dropped run leaves behind, and how the thread goes on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use superstep::{
    BoxError, CancellationToken, CompiledStateGraph, Context, Durability, ErrorKind, GoOn, MemorySaver, Mode,
    NodeError, NodeOptions, Resume, START, StateGraph, Task, TaskError,
};
use tokio::sync::Notify;

use crate::support::{Count, Notes, NotesUpdate, saved, says, trace};

/// Fails at its first run.
fn fails_once(
    name: &'static str,
) -> impl Fn(Notes) -> std::future::Ready<Result<NotesUpdate, BoxError>> + Send + Sync + 'static {
    let runs = Count::default();
    move |_| {
        std::future::ready(if runs.up() == 0 {
            Err(format!("{name} is not ready").into())
        } else {
            Ok(Notes::update().log([name]))
        })
    }
}

fn input() -> NotesUpdate {
    Notes::update().log(["start"])
}

#[tokio::test]
async fn a_failed_step_is_gone_on_with_where_it_failed() {
    let app = saved(
        StateGraph::new()
            .add_node("a", says("a"))
            .add_node("b", fails_once("b"))
            .add_node("c", says("c"))
            .add_sequence(["a", "b", "c"]),
    );
    let error = app.invoke(input()).thread("t").await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Node, "node `b` failed in step 2: b is not ready")
    );
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(
        (seen.next.clone(), seen.values()),
        (vec!["b".to_owned()], json!({ "log": ["start", "a"], "total": 0 }))
    );
    assert_eq!(seen.tasks[0].error, Some(TaskError::new(ErrorKind::Node, "b is not ready")));
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["start", "a", "b", "c"]);
}

#[tokio::test]
async fn what_ran_beside_a_failed_node_is_kept_and_not_run_again() {
    let runs = Count::default();
    let counter = runs.clone();
    let beside = move |_: Notes| {
        counter.up();
        async { Notes::update().log(["beside"]) }
    };
    let mut graph = StateGraph::new();
    graph.add_node("beside", beside).add_node("fails", fails_once("fails"));
    let app = saved(graph.add_edge(START, "beside").add_edge(START, "fails"));
    app.invoke(input()).thread("t").await.unwrap_err();
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(
        (seen.next.clone(), seen.values()["log"].clone()),
        (vec!["fails".to_owned()], json!(["start", "beside"]))
    );
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!((out.state.log.clone(), runs.get()), (vec!["start".into(), "beside".into(), "fails".into()], 1));
}

/// As in `LangGraph`, what a node wrote before its conditional edge failed is kept as its result: a resume
/// neither runs it again nor follows the edge.
async fn node_with_a_failing_edge(durability: Durability, side_by_side: bool) {
    let asked = Count::default();
    let path = move |_: &Notes| if asked.up() == 0 { Err::<&str, BoxError>("no way yet".into()) } else { Ok("b") };
    let mut graph = StateGraph::new();
    graph
        .add_node("a", says("a"))
        .add_node("b", says("b"))
        .add_node("other", says("other"))
        .add_edge(START, "a")
        .add_conditional_edges("a", path);
    if side_by_side {
        graph.add_edge(START, "other");
    }
    let app = saved(&mut graph);
    let error = app.invoke(input()).thread("t").durability(durability).await.unwrap_err();
    assert_eq!(error.to_string(), "a conditional edge of `a` failed in step 1: no way yet");
    let expected: &[&str] = if side_by_side { &["start", "a", "other"] } else { &["start", "a"] };
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(
        (seen.next.len(), &seen.state.log[..]),
        (0, &expected.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..]),
        "{durability:?}"
    );
    let out = app.invoke(GoOn).thread("t").durability(durability).await.unwrap();
    assert_eq!(out.state.log, expected, "{durability:?}");
}

#[tokio::test]
async fn a_node_whose_conditional_edge_failed_keeps_what_it_wrote() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        node_with_a_failing_edge(durability, false).await;
        node_with_a_failing_edge(durability, true).await;
    }
}

/// Two nodes side by side: one is done, the other waits until it is told.
fn waiting(saver: MemorySaver, go: &Arc<Notify>, stopped: &Count) -> CompiledStateGraph<Notes> {
    struct OnDrop(Count);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.up();
        }
    }
    let (go, stopped) = (go.clone(), stopped.clone());
    let waits = move |_: Notes, cx: Context| {
        let (go, guard) = (go.clone(), OnDrop(stopped.clone()));
        async move {
            cx.emit("waiting").await;
            go.notified().await;
            drop(guard);
            Notes::update().log(["waits"])
        }
    };
    StateGraph::new()
        .add_node("done", says("done"))
        .add_node("waits", waits)
        .add_node("last", says("last"))
        .add_edge(START, "done")
        .add_edge(START, "waits")
        .add_edge(["done", "waits"], "last")
        .checkpointer(saver)
        .compile()
        .expect("no mistakes")
}

async fn goes_on(app: &CompiledStateGraph<Notes>, go: &Arc<Notify>, stopped: &Count, story: &str) {
    tokio::task::yield_now().await;
    assert_eq!(stopped.get(), 1, "{story}: the task was stopped");
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(
        (seen.next.clone(), seen.values()["log"].clone()),
        (vec!["waits".to_owned()], json!(["start", "done"])),
        "{story}"
    );
    go.notify_one();
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["start", "done", "waits", "last"], "{story}");
}

#[tokio::test(start_paused = true)]
async fn dropping_a_run_stops_its_tasks_and_leaves_a_thread_to_go_on_with() {
    let (go, stopped) = (Arc::new(Notify::new()), Count::default());
    let app = waiting(MemorySaver::new(), &go, &stopped);
    let run = app.invoke(input()).thread("t").into_future();
    assert!(tokio::time::timeout(Duration::from_secs(1), run).await.is_err(), "it waits for ever");
    goes_on(&app, &go, &stopped, "dropped future").await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_stream_stops_its_tasks_and_leaves_a_thread_to_go_on_with() {
    let (go, stopped) = (Arc::new(Notify::new()), Count::default());
    let app = waiting(MemorySaver::new(), &go, &stopped);
    let mut events = app.stream(input()).thread("t").mode(Mode::Custom).durability(Durability::Sync).start();
    assert_eq!(events.next().await.unwrap().unwrap().to_json(), "waiting");
    assert!(tokio::time::timeout(Duration::from_secs(1), events.next()).await.is_err(), "it waits for ever");
    drop(events);
    goes_on(&app, &go, &stopped, "dropped stream").await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_says_so_and_leaves_a_thread_to_go_on_with() {
    let (go, stopped) = (Arc::new(Notify::new()), Count::default());
    let app = waiting(MemorySaver::new(), &go, &stopped);
    let token = CancellationToken::new();
    let run = tokio::spawn(app.invoke(input()).thread("t").cancellation(token.clone()).into_future());
    tokio::time::sleep(Duration::from_secs(1)).await;
    token.cancel();
    let error = run.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.is_cancelled()), (ErrorKind::Cancelled, true));
    goes_on(&app, &go, &stopped, "cancelled").await;
}

#[tokio::test]
async fn a_cancelled_token_lets_nothing_start() {
    let runs = Count::default();
    let counter = runs.clone();
    let node = move |_: Notes| {
        counter.up();
        async {}
    };
    let app = saved(StateGraph::new().add_node("n", node).add_edge(START, "n"));
    let token = CancellationToken::new();
    token.cancel();
    let error = app.invoke(input()).thread("t").cancellation(token).await.unwrap_err();
    assert_eq!((error.kind(), runs.get()), (ErrorKind::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn a_failure_stops_what_runs_beside_it() {
    let finished = Count::default();
    let counter = finished.clone();
    let slow = move |_: Notes| {
        let counter = counter.clone();
        async move {
            tokio::time::sleep(Duration::from_mins(1)).await;
            counter.up();
        }
    };
    let fails = |_: Notes| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err::<(), _>("no")
    };
    let app = saved(
        StateGraph::new()
            .add_node("slow", slow)
            .add_node("fails", fails)
            .add_edge(START, "slow")
            .add_edge(START, "fails"),
    );
    let error = app.invoke(input()).thread("t").await.unwrap_err();
    assert_eq!(error.node(), Some("fails"));
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(finished.get(), 0);
    assert_eq!(
        app.thread("t").state().await.unwrap().next,
        ["slow", "fails"],
        "in the order in which the nodes were added"
    );
}

#[tokio::test]
async fn an_error_handler_takes_over_after_a_restart_too() {
    let (runs, handled) = (Count::default(), Count::default());
    let counter = runs.clone();
    let node = move |notes: Notes| {
        counter.up();
        async move { assert!(notes.total > 0, "broken") }
    };
    let counter = handled.clone();
    let rescue = move |_: Notes, error: NodeError| {
        let first = counter.up() == 0;
        async move {
            if first {
                Err::<NotesUpdate, BoxError>("the handler is not ready".into())
            } else {
                Ok(Notes::update().log([format!("{:?} in {}: {}", error.kind(), error.node(), error.message())]))
            }
        }
    };
    let options = NodeOptions::new().error_handler(rescue);
    let app = saved(StateGraph::new().add_node_with("n", node, options).add_edge(START, "n"));
    let error = app.invoke(input()).thread("t").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the error handler of `n` failed in step 1 (called for \"node `n` panicked in step 1: broken\"): the handler is not ready"
    );
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(seen.tasks[0].error, Some(TaskError::new(ErrorKind::Panic, "node `n` panicked in step 1: broken")));
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!(
        (out.state.log.clone(), runs.get(), handled.get()),
        (vec!["start".to_owned(), "Panic in n: node `n` panicked in step 1: broken".to_owned()], 1, 2)
    );
}

#[tokio::test]
async fn a_finished_error_handler_runs_again_when_its_step_is_gone_on_with_but_its_tasks_do_not() {
    let (handled, paid_back, keys) = (Count::default(), Count::default(), Arc::new(Mutex::new(Vec::new())));
    let counter = paid_back.clone();
    let pay_back = Task::new("pay_back", move |sum: i64| {
        counter.up();
        async move { Ok::<_, BoxError>(sum) }
    });
    let (counter, seen) = (handled.clone(), keys.clone());
    let rescue = move |_: Notes, cx: Context, error: NodeError| {
        counter.up();
        seen.lock().unwrap().push(cx.idempotency_key());
        let pay_back = pay_back.clone();
        async move {
            let sum = pay_back.call(&cx, 7).await?;
            let live = if error.error().is_some() { "live" } else { "saved" };
            Ok::<_, BoxError>(Notes::update().total(sum).log([format!("{live}: {}", error.message())]))
        }
    };
    let app = saved(
        StateGraph::new()
            .add_node("asks", async |_: Notes, cx: Context| {
                let yes: bool = cx.interrupt("go on?")?;
                Ok::<_, BoxError>(Notes::update().log([format!("asked: {yes}")]))
            })
            .add_node_with(
                "breaks",
                async |_: Notes| Err::<NotesUpdate, BoxError>("broken".into()),
                NodeOptions::new().error_handler(rescue),
            )
            .add_edge(START, "asks")
            .add_edge(START, "breaks"),
    );
    let out = app.invoke(input()).thread("t").await.unwrap();
    assert_eq!((out.state.log.clone(), out.state.total), (vec!["start".to_owned(), "live: broken".to_owned()], 7));
    let out = app.invoke(Resume::value(true)).thread("t").await.unwrap();
    assert_eq!(
        (out.state.log.clone(), out.state.total),
        (["start", "asked: true", "saved: broken"].map(str::to_owned).to_vec(), 7)
    );
    assert_eq!((handled.get(), paid_back.get()), (2, 1));
    let keys = keys.lock().unwrap();
    assert_eq!(keys[0], keys[1], "what the handler does outside can be told apart from new work");
}

#[tokio::test]
async fn new_input_drops_what_was_left_to_do() {
    let app = saved(StateGraph::new().add_node("a", says("a")).add_node("b", fails_once("b")).add_sequence(["a", "b"]));
    app.invoke(input()).thread("t").await.unwrap_err();
    let out = app.invoke(Notes::update().log(["again"])).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["start", "a", "again", "a", "b"]);
    expect_test::expect![[r#"
        -1 input  {"log":[],"total":0} -> __start__
         0 loop   {"log":["start"],"total":0} -> a
         1 loop   {"log":["start","a"],"total":0} -> b
         2 input  {"log":["start","a"],"total":0} -> __start__
         3 loop   {"log":["start","a","again"],"total":0} -> a
         4 loop   {"log":["start","a","again","a"],"total":0} -> b
         5 loop   {"log":["start","a","again","a","b"],"total":0} -> "#]]
    .assert_eq(&trace(&app.thread("t")).await.unwrap());
}

#[tokio::test]
async fn a_whole_state_that_was_sent_is_the_same_after_a_restart() {
    let tells = |state: &Notes| Notes::update().log([format!("{:?} {} {:?}", state.log, state.total, state.topic)]);
    let graph = || {
        let sent = Notes { log: vec!["x".to_owned()], total: 7, topic: Some("tea".to_owned()) };
        let mut graph = StateGraph::<Notes>::new();
        graph
            .add_node("owned", move |state: Notes| async move { tells(&state) })
            .add_node("shared", move |state: Arc<Notes>| async move { tells(&state) })
            .add_conditional_edges(START, move |_: &Notes| {
                ["owned", "shared"].map(|node| superstep::Send::new(node, sent.clone())).to_vec()
            })
            .interrupt_before(["owned"]);
        graph
    };
    let child = graph().compile().unwrap();
    for app in [saved(&mut graph()), saved(StateGraph::new().add_node("child", child).add_edge(START, "child"))] {
        let paused = app.invoke(Notes::update().total(1)).thread("t").await.unwrap();
        assert!(paused.state.log.is_empty(), "the sends wait in a checkpoint");
        assert_eq!(app.invoke(GoOn).thread("t").await.unwrap().state.log, [r#"["x"] 7 Some("tea")"#; 2]);
    }
}
