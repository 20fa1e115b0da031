//! Runs that are asked to stop at the next checkpoint while a subgraph runs.

use std::sync::Arc;

use superstep::{CompiledStateGraph, Context, Durability, ErrorKind, GoOn, MemorySaver, RunControl, START, StateGraph};
use tokio::sync::{Barrier, Notify};

use crate::support::{Count, Notes, NotesUpdate};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

/// How often the nodes ran.
#[derive(Clone, Default)]
struct Runs {
    beside: Count,
    first: Count,
    second: Count,
    last: Count,
}

impl Runs {
    fn get(&self) -> [usize; 4] {
        [&self.beside, &self.first, &self.second, &self.last].map(Count::get)
    }
}

fn counts(
    name: &'static str,
    runs: &Count,
) -> impl Fn(Notes) -> std::future::Ready<NotesUpdate> + Send + Sync + 'static + use<> {
    let runs = runs.clone();
    move |_| {
        runs.up();
        std::future::ready(Notes::update().log([name]))
    }
}

/// A child whose first node asks the run to stop, the first time it runs.
fn child(runs: &Runs) -> StateGraph<Notes> {
    let first = runs.first.clone();
    let first = move |_: Notes, cx: Context| {
        if first.up() == 0 {
            cx.control().request_drain("deploy");
        }
        async { Notes::update().log(["first"]) }
    };
    let mut graph = StateGraph::new();
    graph
        .add_node("first", first)
        .add_node("second", counts("second", &runs.second))
        .add_sequence(["first", "second"])
        .output(["log"]);
    graph
}

fn around(child: CompiledStateGraph<Notes>, runs: &Runs, saver: &MemorySaver) -> CompiledStateGraph<Notes> {
    StateGraph::new()
        .add_node("child", child)
        .add_node("beside", counts("beside", &runs.beside))
        .add_node("last", counts("last", &runs.last))
        .add_edge(START, "child")
        .add_edge(START, "beside")
        .add_edge(["child", "beside"], "last")
        .checkpointer(saver.clone())
        .compile()
        .unwrap()
}

#[tokio::test]
async fn a_drain_inside_a_subgraph_stops_at_its_next_checkpoint_and_nothing_finished_runs_again() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let (runs, saver) = (Runs::default(), MemorySaver::new());
        let app = around(child(&runs).compile().unwrap(), &runs, &saver);
        let error = app.invoke(input()).thread("t").durability(durability).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Drained, "the run was asked to stop: deploy"),
            "{durability:?}"
        );
        assert_eq!(runs.get(), [1, 1, 0, 0], "{durability:?}: the step of the parent ends, no other starts");
        let seen = app.thread("t").state_with_subgraphs().await.unwrap();
        assert_eq!(seen.next, ["child"], "{durability:?}");
        let task = seen.tasks.iter().find(|t| t.name == "child").unwrap();
        assert_eq!(task.error, None, "{durability:?}: a task that was asked to stop has not failed");
        let inside = task.subgraph.as_ref().unwrap();
        assert_eq!(
            (inside.next.join(" "), inside.state_as::<Notes>().unwrap().log.join(" ")),
            ("second".to_owned(), "first".to_owned()),
            "{durability:?}"
        );
        let out = app.invoke(GoOn).thread("t").durability(durability).await.unwrap();
        assert_eq!(out.state.log.join(" "), "beside first second last", "{durability:?}");
        assert_eq!(runs.get(), [1, 1, 1, 1], "{durability:?}");
    }
}

#[tokio::test]
async fn a_drain_two_levels_deep_goes_on_there() {
    let (runs, saver) = (Runs::default(), MemorySaver::new());
    let mut middle = StateGraph::new();
    middle.add_node("bottom", child(&runs).compile().unwrap()).add_edge(START, "bottom");
    let app = around(middle.output(["log"]).compile().unwrap(), &runs, &saver);
    let error = app.invoke(input()).thread("t").await.unwrap_err();
    assert!(error.is_drained(), "{error}");
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!((out.state.log.join(" ").as_str(), runs.get()), ("beside first second last", [1, 1, 1, 1]));
}

#[tokio::test]
async fn a_drained_persistent_subgraph_goes_on_and_a_stateless_one_starts_anew() {
    let kinds: [(fn(&mut StateGraph<Notes>) -> &mut StateGraph<Notes>, usize); 2] =
        [(StateGraph::persistent, 1), (StateGraph::stateless, 2)];
    for (kind, first) in kinds {
        let (runs, saver) = (Runs::default(), MemorySaver::new());
        let app = around(kind(&mut child(&runs)).compile().unwrap(), &runs, &saver);
        assert!(app.invoke(input()).thread("t").await.unwrap_err().is_drained());
        let out = app.invoke(GoOn).thread("t").await.unwrap();
        assert_eq!((out.state.log.join(" ").as_str(), runs.get()), ("beside first second last", [1, first, 1, 1]));
    }
}

#[tokio::test]
async fn a_drain_from_outside_reaches_a_subgraph_that_runs() {
    let (runs, saver, control) = (Runs::default(), MemorySaver::new(), RunControl::new());
    let (inside, asked) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let first = {
        let (inside, asked) = (inside.clone(), asked.clone());
        move |_: Notes| {
            let (inside, asked) = (inside.clone(), asked.clone());
            async move {
                inside.wait().await;
                asked.wait().await;
                Notes::update().log(["first"])
            }
        }
    };
    let mut child = StateGraph::new();
    child
        .add_node("first", first)
        .add_node("second", counts("second", &runs.second))
        .add_sequence(["first", "second"])
        .output(["log"]);
    let app = around(child.compile().unwrap(), &runs, &saver);
    let run = tokio::spawn(app.invoke(input()).thread("t").control(control.clone()).into_future());
    inside.wait().await;
    control.request_drain("deploy");
    asked.wait().await;
    assert!(run.await.unwrap().unwrap_err().is_drained());
    assert_eq!(runs.second.get(), 0);
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!(out.state.log.join(" "), "beside first second last", "a new run is not asked to stop");
}

#[tokio::test]
async fn what_runs_beside_a_drained_subgraph_may_finish() {
    let (runs, saver, go) = (Runs::default(), MemorySaver::new(), Arc::new(Notify::new()));
    let (started, finished) = (Count::default(), Count::default());
    let slow = {
        let (go, started, finished) = (go.clone(), started.clone(), finished.clone());
        move |_: Notes| {
            let (go, finished) = (go.clone(), finished.clone());
            started.up();
            async move {
                go.notified().await;
                finished.up();
                Notes::update().log(["slow"])
            }
        }
    };
    let app = StateGraph::new()
        .add_node("child", child(&runs).compile().unwrap())
        .add_node("slow", slow)
        .add_node("last", counts("last", &runs.last))
        .add_edge(START, "child")
        .add_edge(START, "slow")
        .add_edge(["child", "slow"], "last")
        .checkpointer(saver)
        .compile()
        .unwrap();
    let run = tokio::spawn(app.invoke(input()).thread("t").into_future());
    // The child has stopped once nothing can go on by itself any more.
    while runs.first.get() == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    go.notify_one();
    assert!(run.await.unwrap().unwrap_err().is_drained());
    assert_eq!((started.get(), finished.get()), (1, 1), "the step ends, it is not broken off");
    assert_eq!(app.thread("t").state().await.unwrap().next, ["child"]);
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!((out.state.log.join(" ").as_str(), started.get()), ("first second slow last", 1));
}
