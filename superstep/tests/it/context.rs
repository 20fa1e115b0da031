//! What a node may ask its context for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use superstep::{
    AgentState, BoxError, CompiledStateGraph, Context, Entrypoint, EventData, Final, MemorySaver, MemoryStore, Message,
    Mode, NodeOptions, Resume, RetryPolicy, RunControl, START, Send, Sent, StateGraph, Store, Task,
};

use crate::support::{Count, Notes, NotesUpdate, events, saved};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

/// One node that logs what it finds in its context.
fn telling(tell: impl Fn(&Context) -> String + Clone + std::marker::Send + Sync + 'static) -> StateGraph<Notes> {
    let node = move |_: Notes, cx: Context| {
        let line = tell(&cx);
        async move { Notes::update().log([line]) }
    };
    let mut graph = StateGraph::new();
    graph.add_node("n", node).add_edge(START, "n");
    graph
}

#[tokio::test]
async fn a_node_knows_its_name_step_thread_and_run() {
    let app = saved(&mut telling(|cx| {
        format!("{} {} {:?} {} {}", cx.node(), cx.step(), cx.thread(), cx.run_id(), cx.metadata()["who"])
    }));
    let run = app.invoke(input()).thread("t").run_id("r1").metadata("who", "ada");
    assert_eq!(run.await.unwrap().state.log, [r#"n 1 Some("t") r1 "ada""#]);
    let app = telling(|cx| format!("{:?} {}", cx.thread(), cx.metadata().len())).compile().unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().state.log, ["None 0"]);
}

#[tokio::test]
async fn a_node_inside_a_subgraph_knows_the_same_run() {
    let child =
        telling(|cx| format!("{} {:?} {} {:?}", cx.node(), cx.thread(), cx.metadata()["who"], cx.context::<u32>()));
    let app = saved(StateGraph::new().add_node("child", child.compile().unwrap()).add_edge(START, "child"));
    let run = app.invoke(input()).thread("t").metadata("who", "ada").context(7u32);
    assert_eq!(run.await.unwrap().state.log, [r#"n Some("t") "ada" Some(7)"#]);
}

#[tokio::test]
async fn what_the_caller_gave_is_found_by_its_type_and_the_last_of_a_type_counts() {
    let app = telling(|cx| format!("{:?} {:?} {:?}", cx.context::<u32>(), cx.context::<&str>(), cx.context::<i8>()));
    let run = app.compile().unwrap().invoke(input()).context(1u32).context("word").context(2u32);
    assert_eq!(run.await.unwrap().state.log, [r#"Some(2) Some("word") None"#]);
}

#[tokio::test]
async fn a_node_finds_the_store_of_its_graph() {
    let node = |_: Notes, cx: Context| async move {
        let Some(store) = cx.store() else { return Ok::<_, BoxError>(Notes::update().log(["no store"])) };
        store.put(["facts"], "k", json!(1)).await?;
        Ok(Notes::update().log(["stored"]))
    };
    let graph = || {
        let mut graph = StateGraph::new();
        graph.add_node("n", node).add_edge(START, "n");
        graph
    };
    let store = MemoryStore::new();
    let out = graph().store(store.clone()).compile().unwrap().invoke(input()).await.unwrap();
    assert_eq!(out.state.log, ["stored"]);
    assert_eq!(store.get(["facts"], "k").await.unwrap().unwrap().value, 1);
    assert_eq!(graph().compile().unwrap().invoke(input()).await.unwrap().state.log, ["no store"]);
}

#[tokio::test]
async fn a_node_knows_how_many_steps_are_left() {
    let tells = |_: Notes, cx: Context| async move {
        Notes::update().log([format!("{}{}", cx.remaining_steps(), if cx.is_last_step() { " last" } else { "" })])
    };
    let mut graph = StateGraph::new();
    graph.add_node("a", tells).add_node("b", tells).add_node("c", tells);
    let app = graph.add_sequence(["a", "b", "c"]).compile().unwrap();
    let left = |limit: usize| app.invoke(input()).recursion_limit(limit).into_future();
    assert_eq!(left(10).await.unwrap().state.log, ["9", "8", "7"], "one is for finding that nothing is left");
    assert_eq!(left(4).await.unwrap().state.log, ["3", "2", "1 last"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_knows_which_attempt_it_is() {
    let node = |_: Notes, cx: Context| async move {
        if cx.attempt() < 3 { Err::<NotesUpdate, BoxError>("again".into()) } else { Ok(Notes::update().log(["third"])) }
    };
    let options = NodeOptions::new().retry(RetryPolicy::new().max_attempts(3));
    let app = StateGraph::new().add_node_with("n", node, options).add_edge(START, "n").compile().unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().state.log, ["third"]);
}

type Keys = Arc<Mutex<Vec<(String, String)>>>;

/// A node that notes its keys, fails at its first attempt, and asks; beside it, two tasks of another.
fn keyed(keys: &Keys) -> CompiledStateGraph<Notes> {
    let of = |keys: &Keys, cx: &Context| {
        keys.lock().unwrap().push((format!("{} {}", cx.thread().unwrap(), cx.node()), cx.idempotency_key()));
    };
    let notes = keys.clone();
    let asks = move |_: Notes, cx: Context| {
        of(&notes, &cx);
        async move {
            if cx.attempt() == 1 {
                return Err::<NotesUpdate, BoxError>("again".into());
            }
            let answer: String = cx.interrupt("what?")?;
            Ok(Notes::update().log([answer]))
        }
    };
    let notes = keys.clone();
    let work = move |Sent(n): Sent<i64>, cx: Context| {
        of(&notes, &cx);
        async move { Notes::update().total(n) }
    };
    saved(
        StateGraph::new()
            .add_node_with("asks", asks, NodeOptions::new().retry(RetryPolicy::new()))
            .add_node("work", work)
            .add_conditional_edges(START, |_: &Notes| {
                vec!["asks".into(), superstep::Goto::from(Send::new("work", 1)), Send::new("work", 1).into()]
            }),
    )
}

#[tokio::test(start_paused = true)]
async fn the_same_work_has_the_same_key_in_every_attempt_and_other_work_has_another() {
    let keys = Keys::default();
    let app = keyed(&keys);
    for thread in ["t", "u"] {
        app.invoke(input()).thread(thread).await.unwrap();
        app.invoke(Resume::value("this")).thread(thread).await.unwrap();
    }
    let keys = keys.lock().unwrap().clone();
    let of = |who: &str| keys.iter().filter(|(name, _)| name == who).map(|(_, key)| key.clone()).collect::<Vec<_>>();
    let asked = of("t asks");
    assert_eq!(asked.len(), 4, "two attempts, and two more with the answer");
    assert!(asked.iter().all(|key| *key == asked[0]), "{asked:?}");
    let mut all: Vec<_> = keys.iter().map(|(_, key)| key.clone()).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 6, "on each thread one that asks and two that work: {keys:?}");
}

#[tokio::test]
async fn a_node_sends_messages_while_it_runs() {
    let node = |_: AgentState, cx: Context| async move {
        cx.emit_message(Message::assistant("hel").with_id("m1")).await;
        cx.emit_message(Message::assistant("lo").with_id("m1")).await;
        superstep::AgentStateUpdate { messages: Some(vec![Message::assistant("hello").with_id("m1")]) }
    };
    let app = StateGraph::<AgentState>::new().add_node("model", node).add_edge(START, "model").compile().unwrap();
    let said = |mode: Mode| {
        let mut stream = app.stream(()).mode(mode).start();
        async move {
            let mut said = Vec::new();
            while let Some(event) = stream.next().await {
                if let EventData::Message(message) = event.unwrap().data {
                    said.push(format!("{} {}: {}", message.node, message.step, message.message.text()));
                }
            }
            said
        }
    };
    // The whole message is not shown once more, because its pieces were.
    assert_eq!(said(Mode::Messages).await, ["model 1: hel", "model 1: lo"]);
    assert!(said(Mode::Updates).await.is_empty());
}

#[tokio::test]
async fn what_an_entrypoint_saved_is_found_in_the_context_too() {
    let flow = Entrypoint::new("flow", async |n: i64, cx: Context| {
        let before: Option<i64> = cx.previous()?;
        Ok::<_, BoxError>(Final { value: before, save: n })
    })
    .checkpointer(MemorySaver::new())
    .compile();
    assert_eq!(flow.invoke(2).thread("t").await.unwrap().get::<Option<i64>>().unwrap(), None);
    assert_eq!(flow.invoke(3).thread("t").await.unwrap().get::<Option<i64>>().unwrap(), Some(2));
}

#[test]
fn the_first_reason_to_stop_is_the_one_that_is_told() {
    let control = RunControl::new();
    assert_eq!(control.drain_reason(), None);
    control.request_drain("deploy");
    control.clone().request_drain("later");
    assert_eq!(control.drain_reason().as_deref(), Some("deploy"));
}

#[tokio::test(start_paused = true)]
async fn what_a_node_starts_is_told_when_its_run_is_cancelled() {
    let (stopped, token) = (Count::default(), superstep::CancellationToken::new());
    let counter = stopped.clone();
    let node = move |_: Notes, cx: Context| {
        let counter = counter.clone();
        async move {
            let cancelled = cx.cancellation().clone();
            tokio::spawn(async move {
                cancelled.cancelled().await;
                counter.up();
            });
            std::future::pending::<()>().await;
        }
    };
    let app = StateGraph::new().add_node("n", node).add_edge(START, "n").compile().unwrap();
    let run = tokio::spawn(app.invoke(input()).cancellation(token.clone()).into_future());
    tokio::time::sleep(Duration::from_secs(1)).await;
    token.cancel();
    assert!(run.await.unwrap().unwrap_err().is_cancelled());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stopped.get(), 1);
}

#[tokio::test]
async fn a_node_asks_for_nothing_that_is_not_there_if_it_may_do_without() {
    let node = |_: Notes, store: Option<superstep::StoreHandle>, number: Option<superstep::Runtime<u32>>| async move {
        Notes::update().log([format!("{} {}", store.is_some(), number.is_some())])
    };
    let app = StateGraph::new().add_node("n", node).add_edge(START, "n").compile().unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().state.log, ["false false"]);
    assert_eq!(app.invoke(input()).context(1u32).await.unwrap().state.log, ["false true"]);
}

#[tokio::test]
async fn custom_events_bear_the_path_of_their_graph() {
    let talks = |_: Notes, cx: Context| async move { cx.emit(json!({ "from": cx.node() })).await };
    let child = StateGraph::new().add_node("inner", talks).add_edge(START, "inner").compile().unwrap();
    let mut graph = StateGraph::new();
    graph.add_node("outer", talks).add_node("child", child).add_sequence(["outer", "child"]);
    let app = graph.compile().unwrap();
    let shown = |deep: bool| {
        let stream = app.stream(input()).mode(Mode::Custom);
        let stream = if deep { stream.subgraphs() } else { stream }.start();
        async move {
            let all = events(stream).await;
            all.into_iter().map(|e| (e["path"].clone(), e["data"].clone())).collect::<Vec<(Value, Value)>>()
        }
    };
    let outer = (json!([]), json!({ "from": "outer" }));
    assert_eq!(shown(true).await, [outer.clone(), (json!(["child"]), json!({ "from": "inner" }))]);
    assert_eq!(shown(false).await, [outer]);
}

#[tokio::test]
async fn a_question_that_cannot_be_encoded_is_the_nodes_error() {
    struct Unspeakable;
    impl serde::Serialize for Unspeakable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no words"))
        }
    }
    let node = |_: Notes, cx: Context| async move { cx.interrupt::<()>(Unspeakable) };
    let app = saved(StateGraph::new().add_node("n", node).add_edge(START, "n"));
    let error = app.invoke(input()).thread("t").await.unwrap_err();
    assert_eq!(error.node(), Some("n"));
    assert!(error.to_string().contains("no words"), "{error}");
}

/// Counts its own end.
struct Guest(Count);

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.up();
    }
}

/// How many of ten runs let go of what their caller gave them.
async fn let_go(graph: &mut StateGraph<Notes>) -> usize {
    let (app, gone) = (saved(graph), Count::default());
    for run in 0..10 {
        app.invoke(input()).thread(run.to_string()).context(Guest(gone.clone())).await.unwrap();
    }
    gone.get()
}

#[tokio::test]
async fn a_run_that_ended_keeps_nothing_of_what_its_caller_gave() {
    assert_eq!(let_go(&mut telling(|cx| cx.node().to_owned())).await, 10);
    let mut wide = telling(|cx| cx.node().to_owned());
    wide.add_node("m", crate::support::says("m")).add_edge(START, "m");
    assert_eq!(let_go(&mut wide).await, 10);
    let child = telling(|cx| cx.node().to_owned()).compile().unwrap();
    assert_eq!(let_go(StateGraph::new().add_node("child", child).add_edge(START, "child")).await, 10);
}

#[tokio::test]
async fn a_run_that_made_calls_keeps_nothing_of_what_its_caller_gave() {
    let inner = Task::new("inner", async |n: i64| Ok::<_, BoxError>(n + 1));
    let outer = Task::new("outer", move |n: i64, cx: Context| {
        let inner = inner.clone();
        async move { inner.call(&cx, n).await }
    });
    let node = move |_: Notes, cx: Context| {
        let outer = outer.clone();
        async move { Ok::<_, BoxError>(Notes::update().total(outer.call(&cx, 1).await?)) }
    };
    assert_eq!(let_go(StateGraph::new().add_node("n", node).add_edge(START, "n")).await, 10);
}
