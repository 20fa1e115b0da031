//! Saves beside a run: how far they may be behind, what a failure does, and what is left when merging fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use superstep::{
    AgentState, AgentStateUpdate, BoxError, CheckpointError, Context, Durability, END, Entrypoint, ErrorKind, GoOn,
    Lease, MemorySaver, Message, START, StateGraph, Task,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::support::hooked::{Call, Hook, Hooked, Serving};
use crate::support::{Count, Notes, saved, says};

/// Serves a call that saves only when it is let through.
#[derive(Clone)]
struct Gate {
    open: Arc<Semaphore>,
    begun: Count,
}

#[async_trait]
impl Hook for Gate {
    async fn around(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        if matches!(call, Call::Put(_) | Call::PutWrites { .. }) {
            self.begun.up();
            self.open.acquire().await.expect("nobody closes the gate").forget();
        }
        serving.await
    }
}

/// A node that counts its runs, in a loop of ten.
fn ten_rounds(runs: &Count) -> StateGraph<Notes> {
    let runs = runs.clone();
    let node = move |_: Notes| {
        runs.up();
        async { Notes::update().total(1) }
    };
    let mut graph = StateGraph::new();
    graph
        .add_node("n", node)
        .add_edge(START, "n")
        .add_conditional_edges("n", |notes: &Notes| if notes.total < 10 { "n" } else { END });
    graph
}

/// Whether each save was waited for.
#[derive(Clone, Default)]
struct Awaited(Arc<Mutex<Vec<bool>>>);

impl Hook for Awaited {
    fn saves(&self, lease: Lease<'_>) {
        self.0.lock().unwrap().push(lease.is_awaited);
    }
}

#[tokio::test]
async fn a_checkpointer_is_told_whether_the_run_waits() {
    for (durability, expected) in [(Durability::Async, false), (Durability::Sync, true), (Durability::Exit, true)] {
        let awaited = Awaited::default();
        let app = ten_rounds(&Count::default()).checkpointer(Hooked::new(awaited.clone())).compile().unwrap();
        app.invoke(Notes::update().log(["in"])).thread("t").durability(durability).await.unwrap();
        let awaited = awaited.0.lock().unwrap();
        assert!(!awaited.is_empty() && awaited.iter().all(|one| *one == expected), "{durability:?}: {awaited:?}");
    }
}

/// The queue of saves had no end: with a slow store a run was hundreds of steps ahead of what was saved.
#[tokio::test]
async fn a_run_is_at_most_one_save_ahead() {
    let (runs, gate) = (Count::default(), Gate { open: Arc::new(Semaphore::new(0)), begun: Count::default() });
    let app = ten_rounds(&runs).checkpointer(Hooked::new(gate.clone())).compile().unwrap();
    let run = tokio::spawn(async move { app.invoke(Notes::update().log(["in"])).thread("t").await });
    for served in 0..11 {
        while gate.begun.get() <= served {
            tokio::task::yield_now().await;
        }
        // As far as it gets by itself.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(gate.begun.get(), served + 1, "one save is on its way");
        assert!(runs.get() <= served + 1, "{} runs after {served} saves", runs.get());
        gate.open.add_permits(1);
    }
    gate.open.add_permits(100);
    assert_eq!(run.await.unwrap().unwrap().state.total, 10);
}

/// A gate that lets saves through in the order in which they came.
#[derive(Clone)]
struct Ordered(Gate);

#[async_trait]
impl Hook for Ordered {
    async fn around(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        self.0.around(call, serving).await
    }

    fn keeps_order(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_run_goes_on_beside_many_saves_if_the_checkpointer_keeps_their_order() {
    let (runs, gate) = (Count::default(), Gate { open: Arc::new(Semaphore::new(0)), begun: Count::default() });
    let saver = Hooked::new(Ordered(gate.clone()));
    let app = ten_rounds(&runs).checkpointer(saver.clone()).compile().unwrap();
    let run = tokio::spawn(app.invoke(Notes::update().log(["in"])).thread("t").into_future());
    while runs.get() < 10 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(gate.begun.get() >= 11, "{} saves are on their way", gate.begun.get());
    assert!(!run.is_finished(), "a run ends when all is saved");
    gate.open.add_permits(100);
    assert_eq!(run.await.unwrap().unwrap().state.total, 10);
    let app = ten_rounds(&runs).checkpointer(saver.inner).compile().unwrap();
    assert_eq!(app.thread("t").history().await.unwrap().len(), 12);
}

/// Saves that are not done at once: each is waited for, also between steps that go on in one poll.
#[tokio::test]
async fn with_durability_sync_no_node_runs_before_the_step_before_it_is_saved() {
    async fn check<H: Hook + Clone>(gate: Gate, hook: H) {
        let runs = Count::default();
        let app = ten_rounds(&runs).checkpointer(Hooked::new(hook)).compile().unwrap();
        let run = app.invoke(Notes::update().log(["in"])).thread("t").durability(Durability::Sync);
        let run = tokio::spawn(run.into_future());
        // The input, the start, and ten rounds.
        for served in 0..12 {
            while gate.begun.get() <= served {
                tokio::task::yield_now().await;
            }
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!((gate.begun.get(), runs.get()), (served + 1, served.saturating_sub(1)));
            gate.open.add_permits(1);
        }
        assert_eq!(run.await.unwrap().unwrap().state.total, 10);
    }
    let gate = || Gate { open: Arc::new(Semaphore::new(0)), begun: Count::default() };
    let (one, other) = (gate(), gate());
    check(one.clone(), one).await;
    check(other.clone(), Ordered(other)).await;
}

/// A disk that stands still must not fill the memory.
#[tokio::test]
async fn the_saves_beside_a_run_are_bounded() {
    let (runs, gate) = (Count::default(), Gate { open: Arc::new(Semaphore::new(0)), begun: Count::default() });
    let (counted, hook) = (runs.clone(), Ordered(gate.clone()));
    let endless = move |_: Notes| {
        counted.up();
        async { Notes::update().total(1) }
    };
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("n", endless).add_edge(START, "n").add_edge("n", "n");
    let app = graph.checkpointer(Hooked::new(hook)).compile().unwrap();
    let run = tokio::spawn(app.invoke(()).thread("t").recursion_limit(1000).into_future());
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    assert!(runs.get() > 10 && runs.get() < 100, "{}", runs.get());
    run.abort();
}

/// What was on its way when a run was dropped was sometimes stopped in the middle, and sometimes went on for seconds.
#[tokio::test]
async fn a_dropped_run_leaves_one_save_that_ends() {
    let (runs, gate) = (Count::default(), Gate { open: Arc::new(Semaphore::new(2)), begun: Count::default() });
    let saver = Hooked::new(gate.clone());
    let app = ten_rounds(&runs).checkpointer(saver.clone()).compile().unwrap();
    let run = tokio::spawn(app.invoke(Notes::update().log(["in"])).thread("t").into_future());
    while gate.begun.get() < 3 {
        tokio::task::yield_now().await;
    }
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    gate.open.add_permits(100);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(gate.begun.get(), 3, "nothing is begun after the run is gone");
    let app = ten_rounds(&runs).checkpointer(saver.inner.clone()).compile().unwrap();
    assert_eq!(app.thread("t").history().await.unwrap().len(), 3, "what was begun came to its end");
    assert_eq!(app.invoke(GoOn).thread("t").await.unwrap().state.total, 10);
}

/// Fails the first save of what a task wrote, after a while.
#[derive(Clone, Default)]
struct LoseOne(Arc<AtomicBool>);

#[async_trait]
impl Hook for LoseOne {
    async fn around(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        tokio::task::yield_now().await;
        match call {
            Call::PutWrites { .. } if !self.0.swap(true, Ordering::SeqCst) => {
                Err(CheckpointError::backend("the disk is full"))
            }
            _ => serving.await,
        }
    }
}

/// Fails its third save after a while, and all later ones at once, because that one is missing.
#[derive(Clone, Default)]
struct FailsSlowly(Count);

#[async_trait]
impl Hook for FailsSlowly {
    async fn around(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        if !matches!(call, Call::Put(_)) {
            return serving.await;
        }
        self.0.up();
        match self.0.get() {
            0..3 => serving.await,
            3 => {
                tokio::task::yield_now().await;
                Err(CheckpointError::backend("the disk is full"))
            }
            _ => Err(CheckpointError::backend("the checkpoint before is missing")),
        }
    }

    fn keeps_order(&self) -> bool {
        true
    }
}

/// The run said that its thread had moved on, when a full disk had kept the step before from being saved.
#[tokio::test]
async fn the_error_of_a_run_is_that_of_the_save_that_failed_first() {
    let app = ten_rounds(&Count::default()).checkpointer(Hooked::new(FailsSlowly::default())).compile().unwrap();
    let run = app.invoke(Notes::update().log(["in"])).thread("t").durability(Durability::Async);
    let error = run.await.unwrap_err();
    assert!(error.to_string().contains("the disk is full"), "{error}");
}

/// The failure of one save was given to whoever saved next. That may be a call of user code, which may swallow it:
/// the run ended well, with a result that was never saved.
#[tokio::test]
async fn a_failed_save_fails_the_run_even_if_user_code_swallows_it() {
    let double = Task::new("double", async |n: i64| Ok::<_, BoxError>(2 * n));
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let double = double.clone();
        async move {
            let mut sum = 0;
            for i in 0..n {
                sum += double.call(&cx, i).await.unwrap_or(-1);
            }
            Ok::<_, BoxError>(sum)
        }
    });
    let flow = flow.checkpointer(Hooked::new(LoseOne::default())).compile();
    let error = flow.invoke(3).thread("t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Checkpoint, "{error}");
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert!(error.is_retryable(), "there may be room the next time");
}

/// A loop whose nodes never wait had the thread for itself: nobody could even cancel it.
#[tokio::test]
async fn a_loop_that_never_waits_lets_others_have_the_thread() {
    for checkpointer in [None, Some(MemorySaver::new())] {
        let mut graph = StateGraph::<Notes>::new();
        graph
            .add_node("n", async |_: Notes| Notes::update().total(1))
            .add_edge(START, "n")
            .add_conditional_edges("n", |notes: &Notes| if notes.total < 1_000_000 { "n" } else { END });
        let app = match checkpointer {
            Some(saver) => graph.checkpointer(saver).compile().unwrap(),
            None => graph.compile().unwrap(),
        };
        let token = CancellationToken::new();
        let cancel = token.clone();
        tokio::spawn(async move { cancel.cancel() });
        let run = app.invoke(Notes::update().log(["in"])).thread("t").recursion_limit(2_000_000).cancellation(token);
        assert_eq!(run.await.unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

/// A disk that takes a millisecond, on the thread of the run.
#[derive(Clone)]
struct OnTheSpot;

impl Hook for OnTheSpot {
    fn saves(&self, _: Lease<'_>) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A step that is on the disk takes its time: others waited for thousands of them.
#[tokio::test]
async fn steps_that_are_saved_on_the_spot_let_others_have_the_thread_in_time() {
    let (runs, seen) = (Count::default(), Arc::new(Mutex::new(None)));
    let counted = runs.clone();
    let node = move |_: Notes| {
        counted.up();
        async { Notes::update().total(1) }
    };
    let mut graph = StateGraph::new();
    graph
        .add_node("n", node)
        .add_edge(START, "n")
        .add_conditional_edges("n", |notes: &Notes| if notes.total < 300 { "n" } else { END });
    let app = graph.checkpointer(Hooked::new(OnTheSpot)).compile().unwrap();
    let first_look = seen.clone();
    tokio::spawn(async move { *first_look.lock().unwrap() = Some(runs.get()) });
    app.invoke(()).thread("t").recursion_limit(400).durability(Durability::Sync).await.unwrap();
    let seen = seen.lock().unwrap().expect("others had the thread");
    assert!(seen <= 100, "after {seen} steps");
}

/// One save at a time, as a pool of one connection has it: what has begun must go on.
#[derive(Clone)]
struct OneAtATime(Arc<Semaphore>);

#[async_trait]
impl Hook for OneAtATime {
    async fn around(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        if matches!(call, Call::Put(_) | Call::PutWrites { .. }) {
            let _connection = self.0.acquire().await.expect("nobody closes it");
            tokio::task::yield_now().await;
            return serving.await;
        }
        serving.await
    }
}

/// A step's save had begun and was not asked again before the task that a node had left behind had saved too, which waited
/// for it: the run hung.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_save_goes_on_while_a_task_that_outlives_its_node_saves_too() {
    let audit: Task<i64, i64> = Task::new("audit", async |number: i64| Ok::<_, BoxError>(number));
    for _ in 0..200 {
        let audit = audit.clone();
        let node = move |notes: Notes, cx: Context| {
            tokio::spawn(audit.call(&cx, notes.total).into_future());
            async { Notes::update().total(1) }
        };
        let mut graph = StateGraph::new();
        graph
            .add_node("n", node)
            .add_edge(START, "n")
            .add_conditional_edges("n", |notes: &Notes| if notes.total < 10 { "n" } else { END });
        let app = graph.checkpointer(Hooked::new(OneAtATime(Arc::new(Semaphore::new(1))))).compile().unwrap();
        let run = app.invoke(()).thread("t").durability(Durability::Sync);
        let ended = tokio::time::timeout(Duration::from_secs(20), run.into_future()).await;
        assert_eq!(ended.expect("it comes to its end").unwrap().state.total, 10);
    }
}

/// The third checkpoint has a connection, and is never saved.
#[derive(Clone)]
struct NeverDone(Arc<Semaphore>, Count);

#[async_trait]
impl Hook for NeverDone {
    async fn around(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        if matches!(call, Call::Put(_)) && self.1.up() == 2 {
            let _connection = self.0.acquire().await.expect("nobody closes it");
            std::future::pending::<()>().await;
        }
        serving.await
    }
}

/// A save that had begun was kept by a task that a node had left behind, and nobody asked it to go on: its connection was
/// gone as long as the task lived.
#[tokio::test]
async fn a_dropped_run_drops_the_save_that_it_waited_for() {
    let connection = Arc::new(Semaphore::new(1));
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let node = move |_: Notes, cx: Context| {
        *keep.lock().unwrap() = Some(cx);
        async { Notes::update().total(1) }
    };
    let mut graph = StateGraph::new();
    graph.add_node("n", node).add_edge(START, "n");
    let saver = Hooked::new(NeverDone(connection.clone(), Count::default()));
    let app = graph.checkpointer(saver).compile().unwrap();
    let run = tokio::spawn(app.invoke(()).thread("t").durability(Durability::Sync).into_future());
    while connection.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    assert!(kept.lock().unwrap().is_some(), "someone still has the context");
    assert_eq!(connection.available_permits(), 1);
}

/// With durability `exit`, a step that could not be merged took the whole run with it, even its input.
#[tokio::test]
async fn a_merge_that_fails_at_exit_keeps_what_was_before_it() {
    let topic = |name: &'static str| move |_: Notes| async move { Notes::update().topic(name) };
    let mut side_by_side = StateGraph::new();
    side_by_side
        .add_node("a", says("a"))
        .add_node("b", topic("b"))
        .add_node("c", topic("c"))
        .add_edge(START, "a")
        .add_edge("a", "b")
        .add_edge("a", "c");
    let app = saved(&mut side_by_side);
    let run = app.invoke(Notes::update().log(["in"])).thread("t").durability(Durability::Exit);
    assert_eq!(run.await.unwrap_err().kind(), ErrorKind::InvalidUpdate);
    let kept = app.thread("t").state().await.unwrap();
    assert_eq!((kept.state.log.join(" "), kept.next.join(" ")), ("in a".to_owned(), "b c".to_owned()));
}

#[tokio::test]
async fn a_reducer_that_refuses_at_exit_leaves_the_input_to_try_again() {
    let tries = Count::default();
    let seen = tries.clone();
    let forget = move |_: AgentState| {
        let what = if seen.up() == 0 { Message::remove("nobody") } else { Message::assistant("done") };
        async move { AgentStateUpdate { messages: Some(vec![what]) } }
    };
    let app = StateGraph::<AgentState>::new()
        .add_node("forget", forget)
        .add_edge(START, "forget")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let input = AgentState { messages: vec![Message::user("hi")] };
    let error = app.invoke(input).thread("t").durability(Durability::Exit).await.unwrap_err();
    assert!(error.to_string().contains("`nobody`"), "{error}");
    assert_eq!(app.thread("t").state().await.unwrap().next, [START]);
    let out = app.invoke(GoOn).thread("t").durability(Durability::Exit).await.unwrap();
    assert_eq!(out.state.messages.iter().map(Message::text).collect::<Vec<_>>(), ["hi", "done"]);
}

/// Says when it has failed to save the first step.
#[derive(Clone, Default)]
struct FailsBeside(Arc<AtomicBool>);

#[async_trait]
impl Hook for FailsBeside {
    async fn around(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        if !matches!(call, Call::Put(tasks) if !tasks.is_empty()) {
            return serving.await;
        }
        tokio::task::yield_now().await;
        self.0.store(true, Ordering::SeqCst);
        Err(CheckpointError::backend("the disk is full"))
    }
}

/// A save that had failed by the time of the next one was asked for its result once more at the end of the run, and
/// the run panicked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_save_that_failed_beside_a_step_is_one_error() {
    for round in 0..300 {
        let hook = FailsBeside::default();
        let failed = hook.0.clone();
        let node = move |_: Notes| {
            // Works until the save of the step before has failed.
            while !failed.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            (0..round * 100).for_each(|_| std::hint::spin_loop());
            async { Notes::update().total(1) }
        };
        let app = StateGraph::new()
            .add_node("n", node)
            .add_edge(START, "n")
            .checkpointer(Hooked::new(hook))
            .compile()
            .unwrap();
        // Driven by this thread, so that the workers are free to save beside it.
        let error = app.invoke(Notes::update().log(["in"])).thread("t").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Checkpoint, "{error}");
    }
}
