//! Runs that go on by themselves, and those who watch them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use superstep::{Context, ErrorKind, Event, Mode, RunHandle, RunOptions, RunStatus, START, StateGraph};
use tokio::sync::Notify;

use crate::support::{Notes, a_b_c, saved};

/// A graph of one node that shows so many numbers, and lets others work in between.
fn counting(numbers: u64) -> StateGraph<Notes> {
    let count = move |_: Notes, cx: Context| async move {
        for number in 0..numbers {
            cx.emit(number).await;
            tokio::task::yield_now().await;
        }
        Notes::update().log(["counted"])
    };
    let mut graph = StateGraph::new();
    graph.add_node("count", count).add_edge(START, "count");
    graph
}

/// A graph of one node that says when it has begun, and waits for ever.
fn waiting(begun: Arc<Notify>, ended: Arc<()>) -> StateGraph<Notes> {
    let wait = move |_: Notes| {
        let (begun, ended) = (begun.clone(), ended.clone());
        async move {
            begun.notify_one();
            std::future::pending::<()>().await;
            drop(ended);
            Notes::update()
        }
    };
    let mut graph = StateGraph::new();
    graph.add_node("wait", wait).add_edge(START, "wait");
    graph
}

async fn all(mut watch: superstep::Watch) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = watch.next().await {
        events.push(event);
    }
    events
}

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.sequence).collect()
}

#[tokio::test]
async fn a_detached_run_goes_on_when_nobody_watches_and_is_watched_from_anywhere() {
    let app = saved(&mut a_b_c());
    let run = app.stream(Notes::update().topic("tea")).thread("t").mode(Mode::Values).spawn();
    let out = run.join().await.unwrap();
    assert_eq!((out.state.log.join(" "), run.status()), ("a b c".to_owned(), RunStatus::Done));
    assert_eq!(numbers(&all(run.watch(0)).await), [1, 2, 3, 4]);
    assert_eq!(numbers(&all(run.watch(3)).await), [4]);
    assert!(all(run.watch(9)).await.is_empty(), "what never was is not waited for after the end");
    assert_eq!(run.join().await.unwrap().state, out.state, "the end is there for all who ask");
}

#[tokio::test]
async fn a_run_that_asks_is_interrupted_and_one_that_fails_says_why_to_all() {
    let ask = async |_: Notes, cx: Context| cx.interrupt::<String>("who?").map(|who| Notes::update().log([who]));
    let app = saved(StateGraph::new().add_node("ask", ask).add_edge(START, "ask"));
    let run = app.stream(Notes::update().topic("tea")).thread("t").spawn();
    assert_eq!(run.join().await.unwrap().interrupts[0].value, "who?");
    assert_eq!(run.status(), RunStatus::Interrupted);

    let fail = async |_: Notes| Err::<(), _>("no luck");
    let app = StateGraph::<Notes>::new().add_node("fail", fail).add_edge(START, "fail").compile().unwrap();
    let run = app.stream(Notes::update().topic("tea")).spawn();
    for handle in [run.clone(), run.clone()] {
        let error = handle.join().await.unwrap_err();
        assert_eq!((error.node(), error.kind()), (Some("fail"), ErrorKind::Node));
    }
    assert_eq!(run.status(), RunStatus::Failed);
    assert!(all(run.watch(0)).await.is_empty(), "a failed run has an end too");
}

#[tokio::test]
async fn a_run_is_cancelled_from_another_task_and_what_it_held_is_dropped() {
    let (begun, held) = (Arc::new(Notify::new()), Arc::new(()));
    let app = waiting(begun.clone(), held.clone()).compile().unwrap();
    let run = app.stream(Notes::update().topic("tea")).spawn();
    begun.notified().await;
    assert_eq!(run.status(), RunStatus::Running);
    let (watcher, joiner) = (tokio::spawn(all(run.watch(0))), run.clone());
    let joined = tokio::spawn(async move { joiner.join().await.map(drop) });
    run.cancel();
    assert_eq!(joined.await.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(watcher.await.unwrap().is_empty());
    assert_eq!(run.status(), RunStatus::Cancelled);
    drop(app);
    assert_eq!(Arc::strong_count(&held), 1, "the node and its future are gone");
}

#[test]
fn a_detached_run_without_a_runtime_fails_in_words() {
    let run = counting(1).compile().unwrap().stream(Notes::update().topic("tea")).spawn();
    assert_eq!(run.status(), RunStatus::Failed);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = runtime.block_on(run.join()).unwrap_err();
    assert!(error.to_string().contains("needs a runtime of tokio"), "{error}");
}

/// Its task went with the runtime: nobody waits for it for ever.
#[test]
fn a_run_whose_runtime_is_shut_down_is_cancelled() {
    let (begun, held) = (Arc::new(Notify::new()), Arc::new(()));
    let app = waiting(begun.clone(), held).compile().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let run = runtime.block_on(async {
        let run = app.stream(Notes::update().topic("tea")).spawn();
        begun.notified().await;
        run
    });
    runtime.shutdown_timeout(Duration::from_mins(1));
    assert_eq!(run.status(), RunStatus::Cancelled);
}

#[tokio::test]
async fn name_tags_metadata_and_id_reach_the_nodes() {
    let node = async |_: Notes, run: superstep::RunConfig| {
        let told = json!([run.run_name, run.run_id, run.tags, run.metadata, run.thread]);
        Notes::update().log([told.to_string()])
    };
    let app = saved(StateGraph::new().add_node("n", node).add_edge(START, "n"));
    let options = RunOptions::new().thread("t").run_name("nightly").run_id("r1").tag("x").metadata("who", "ada");
    let written = serde_json::to_value(&options).unwrap();
    let read: RunOptions = serde_json::from_value(written).unwrap();
    assert_eq!(read, options, "options can be kept and sent");
    let out = app.invoke(Notes::update().topic("tea")).options(read).await.unwrap();
    assert_eq!(out.state.log, [r#"["nightly","r1",["x"],{"who":"ada"},"t"]"#]);
    let refused = serde_json::from_value::<RunOptions>(json!({ "tread": "t" })).unwrap_err();
    assert!(refused.to_string().contains("unknown field `tread`"), "{refused}");
}

/// Numbers as if by chance, the same in every run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Watches a run in pieces: takes some events, leaves, comes back where it was, or earlier.
async fn come_and_go(run: RunHandle<Notes>, mut dice: Dice) {
    let mut seen: Vec<u64> = Vec::new();
    loop {
        // Whoever comes back may have forgotten the last ones.
        let from = (seen.len() as u64).saturating_sub(dice.below(3));
        seen.truncate(from as usize);
        let mut watch = run.watch(from);
        let mut left = dice.below(8) + 1;
        while left > 0 {
            let Some(event) = watch.next().await else {
                assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>(), "each once, and in order");
                assert_eq!(seen.len(), all(run.watch(0)).await.len(), "and all");
                return;
            };
            seen.push(event.sequence);
            left -= 1;
        }
        drop(watch);
        if dice.below(2) == 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_runs_with_five_watchers_each_that_come_and_go_lose_and_double_nothing() {
    let held = Arc::new(());
    let app = {
        let held = held.clone();
        let mut graph = counting(12);
        graph.add_node("hold", move |_: Notes| {
            let held = held.clone();
            async move { drop(held) }
        });
        graph.add_edge("count", "hold").compile().unwrap()
    };
    let mut tasks = Vec::new();
    for seed in 0..1_000 {
        let modes = [Mode::Custom, Mode::Values];
        let run = app.stream(Notes::update().topic("tea")).modes(modes).spawn();
        for watcher in 0..5 {
            tasks.push(tokio::spawn(come_and_go(run.clone(), Dice(seed * 5 + watcher))));
        }
        // Some are cancelled from outside, some are waited for, and of some nobody knows any more but who watches.
        match seed % 3 {
            0 => tasks.push(tokio::spawn(async move {
                tokio::task::yield_now().await;
                run.cancel();
                let ended = run.join().await.map_err(|error| error.kind());
                assert!(matches!(ended, Ok(_) | Err(ErrorKind::Cancelled)), "{:?}", ended.err());
            })),
            1 => tasks.push(tokio::spawn(async move { assert_eq!(run.join().await.unwrap().state.log, ["counted"]) })),
            _ => drop(run),
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    drop(app);
    assert_eq!(Arc::strong_count(&held), 1, "no run holds anything of the graph");
}

/// A run that nobody can ask any more goes on for what it does, without keeping what it shows.
#[tokio::test]
async fn a_run_whose_handle_is_dropped_comes_to_its_end() {
    let done = Arc::new(Notify::new());
    let mut graph = a_b_c();
    let tell = done.clone();
    graph.add_node("last", move |_: Notes| {
        let tell = tell.clone();
        async move { tell.notify_one() }
    });
    let app = graph.add_edge("c", "last").compile().unwrap();
    drop(app.stream(Notes::update().topic("tea")).mode(Mode::Values).spawn());
    done.notified().await;
}
