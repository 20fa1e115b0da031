//! Durability, by dying at every call of the checkpointer.
//!
//! A whole run is counted call by call, then repeated with a fault at each call, and gone on with over the
//! same storage. What must hold: the thread comes to the same end with the same history, and no task whose
//! writes were saved runs again.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use superstep::{
    CheckpointError, CheckpointId, CheckpointRecord, Checkpointer, CompiledStateGraph, Context, Durability, Error,
    ErrorKind, GoOn, Interrupted, ListQuery, MemorySaver, Output, Resume, SavedCheckpoint, Send, Sent, START, State,
    StateGraph, END, TaskRecord,
};
use tokio::sync::Notify;

use crate::support::trace;

/// How a call of the checkpointer goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// Nothing was done, and the caller is told.
    Refused,
    /// It was done, but the caller is told that it was not.
    Unacknowledged,
    /// The process is gone before it is done.
    Death,
}

/// What happened outside the graph, in order; nothing is ever taken back.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Ran(String),
    Saved(String),
}

type Audit = Arc<Mutex<Vec<Seen>>>;

fn note(audit: &Audit, seen: Seen) {
    audit.lock().expect("nobody panics with the audit").push(seen);
}

/// A checkpointer over [`MemorySaver`] with a fault at one of its calls.
#[derive(Clone)]
struct Faulty {
    inner: MemorySaver,
    audit: Audit,
    calls: Arc<AtomicUsize>,
    fault: Option<(usize, Fault)>,
    /// Whether calls wait before they are served, so that they overlap with the run.
    slow: bool,
    died: Arc<Notify>,
    is_dead: Arc<AtomicBool>,
}

impl Faulty {
    fn new(fault: Option<(usize, Fault)>, slow: bool) -> Self {
        Self {
            inner: MemorySaver::new(),
            audit: Audit::default(),
            calls: Arc::default(),
            fault,
            slow,
            died: Arc::default(),
            is_dead: Arc::default(),
        }
    }

    async fn serve<T>(&self, call: impl Future<Output = Result<T, CheckpointError>>) -> Result<T, CheckpointError> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        if self.slow {
            tokio::task::yield_now().await;
        }
        let lost = || CheckpointError::backend(format!("the disk failed at call {number}"));
        match self.fault.filter(|(at, _)| *at == number) {
            None if self.is_dead.load(Ordering::SeqCst) => std::future::pending().await,
            None => call.await,
            Some((_, Fault::Refused)) => Err(lost()),
            Some((_, Fault::Unacknowledged)) => call.await.and_then(|_| Err(lost())),
            Some((_, Fault::Death)) => {
                self.is_dead.store(true, Ordering::SeqCst);
                self.died.notify_one();
                std::future::pending().await
            }
        }
    }
}

#[async_trait]
impl Checkpointer for Faulty {
    async fn put(&self, thread: &str, namespace: &str, checkpoint: CheckpointRecord) -> Result<(), CheckpointError> {
        self.serve(self.inner.put(thread, namespace, checkpoint)).await
    }

    async fn put_writes(&self, thread: &str, ns: &str, at: CheckpointId, task: TaskRecord) -> Result<(), CheckpointError> {
        let saves = async {
            let (id, finished) = (task.task.to_string(), task.is_finished());
            self.inner.put_writes(thread, ns, at, task).await?;
            if finished {
                note(&self.audit, Seen::Saved(id));
            }
            Ok(())
        };
        self.serve(saves).await
    }

    async fn get(&self, thread: &str, ns: &str, at: Option<CheckpointId>) -> Result<Option<SavedCheckpoint>, CheckpointError> {
        self.serve(self.inner.get(thread, ns, at)).await
    }

    async fn list(&self, thread: &str, ns: &str, query: &ListQuery) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        self.serve(self.inner.list(thread, ns, query)).await
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        self.inner.namespaces(thread).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError> {
        self.inner.delete_thread(thread).await
    }
}

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Board {
    #[state(append)]
    log: Vec<String>,
    #[state(sum)]
    total: i64,
    round: Option<u32>,
    approved: Option<bool>,
}

/// Two rounds of: plan, two nodes side by side, a join, three sends, a collector. Then a question
/// beside a node that does not wait, and an end.
fn graph(saver: Faulty) -> CompiledStateGraph<Board> {
    let audit = saver.audit.clone();
    let says = move |name: &'static str| {
        let audit = audit.clone();
        move |_: Board, cx: Context| {
            let audit = audit.clone();
            async move {
                note(&audit, Seen::Ran(cx.task_id().to_string()));
                tokio::task::yield_now().await;
                Board::update().log([name.to_owned()])
            }
        }
    };
    let audit = saver.audit.clone();
    let plan = move |board: Board, cx: Context| {
        note(&audit, Seen::Ran(cx.task_id().to_string()));
        async move { Board::update().round(board.round.unwrap_or(0) + 1).log([format!("plan after {}", board.total)]) }
    };
    let audit = saver.audit.clone();
    let work = move |Sent(part): Sent<i64>, cx: Context| {
        note(&audit, Seen::Ran(cx.task_id().to_string()));
        async move { Board::update().total(part).log([format!("work {part}")]) }
    };
    let audit = saver.audit.clone();
    let ask = move |_: Board, cx: Context| {
        note(&audit, Seen::Ran(cx.task_id().to_string()));
        async move {
            let approved: bool = cx.interrupt("go on?")?;
            Ok::<_, Interrupted>(Board::update().approved(approved).log(["asked"]))
        }
    };
    StateGraph::<Board>::new()
        .add_node("plan", plan)
        .add_node("left", says("left"))
        .add_node("right", says("right"))
        .add_node("join", says("join"))
        .add_node("work", work)
        .add_node("collect", says("collect"))
        .add_node("ask", ask)
        .add_node("beside", says("beside"))
        .add_node("last", says("last"))
        .add_edge(START, "plan")
        .add_edge("plan", "left")
        .add_edge("plan", "right")
        .add_edge(["left", "right"], "join")
        .add_conditional_edges("join", |_: &Board| (1..=3).map(|part| Send::new("work", part)).collect::<Vec<_>>())
        .add_edge("work", "collect")
        .add_conditional_edges("collect", |board: &Board| match board.round {
            Some(2) => vec!["ask", "beside"],
            _ => vec!["plan"],
        })
        .add_edge(["ask", "beside"], "last")
        .add_edge("last", END)
        .checkpointer(saver)
        .compile()
        .expect("the graph has no mistakes")
}

/// What a caller does who knows nothing but the thread: start it, answer it, or go on with it.
async fn go_on(app: &CompiledStateGraph<Board>, durability: Durability) -> Result<Option<Output<Board>>, Error> {
    let seen = app.thread("t").state().await?;
    // A step whose tasks have all finished has nothing next, but it is not committed yet.
    let run = match (&seen.checkpoint, seen.tasks.is_empty(), seen.interrupts.is_empty()) {
        (None, ..) => app.invoke(Board::update().log(["start"])),
        (Some(_), true, _) => return Ok(None),
        (_, _, false) => app.invoke(Resume::value(true)),
        (_, _, true) => app.invoke(GoOn),
    };
    run.thread("t").durability(durability).await.map(Some)
}

async fn to_the_end(app: &CompiledStateGraph<Board>, durability: Durability) -> Result<String, Error> {
    for _ in 0..4 {
        if go_on(app, durability).await?.is_none() {
            return Ok(trace(&app.thread("t")).await);
        }
    }
    panic!("the thread comes to no end: {:?}", app.thread("t").state().await);
}

/// No task runs after its writes were saved.
fn check_audit(audit: &Audit, story: &str) {
    let mut saved = HashSet::new();
    for seen in audit.lock().expect("nobody panics with the audit").iter() {
        match seen {
            Seen::Saved(task) => drop(saved.insert(task.clone())),
            Seen::Ran(task) => assert!(!saved.contains(task), "{story}: task {task} ran again after its writes were saved"),
        }
    }
}

async fn dies_at_every_call(durability: Durability, fault: Fault, slow: bool) {
    let whole = Faulty::new(None, slow);
    let expected = to_the_end(&graph(whole.clone()), durability).await.expect("nothing goes wrong");
    check_audit(&whole.audit, "undisturbed");
    let calls = whole.calls.load(Ordering::SeqCst);
    assert!(calls > 40, "the run is long enough to be worth it: {calls} calls");

    for call in 0..calls {
        let story = format!("{durability:?}, {fault:?} at call {call}");eprintln!("{story} slow {slow}");
        let saver = Faulty::new(Some((call, fault)), slow);
        let broken = graph(saver.clone());
        tokio::select! {
            biased;
            () = saver.died.notified() => {}
            result = to_the_end(&broken, durability) => {
                // The last calls of the whole run are the look at its end: there the run itself was well.
                let error = result.expect_err(&story);
                assert_eq!(error.kind(), ErrorKind::Checkpoint, "{story}: {error}");
                assert!(error.to_string().contains("the disk failed"), "{story}: {error}");
            }
        }
        let mended = Faulty { fault: None, is_dead: Arc::default(), ..saver };
        let found = to_the_end(&graph(mended.clone()), durability).await.expect(&story);
        assert!(found == expected, "{story}, the history is\n{found}\ninstead of\n{expected}");
        check_audit(&mended.audit, &story);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_loses_nothing_when_steps_are_saved_at_once() {
    dies_at_every_call(Durability::Sync, Fault::Refused, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_loses_nothing_when_steps_are_saved_in_the_background() {
    dies_at_every_call(Durability::Async, Fault::Refused, false).await;
    dies_at_every_call(Durability::Async, Fault::Refused, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_served_but_not_acknowledged_does_nothing_twice() {
    dies_at_every_call(Durability::Sync, Fault::Unacknowledged, false).await;
    dies_at_every_call(Durability::Async, Fault::Unacknowledged, false).await;
    dies_at_every_call(Durability::Async, Fault::Unacknowledged, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_in_a_call_loses_nothing_that_was_saved() {
    dies_at_every_call(Durability::Sync, Fault::Death, false).await;
    dies_at_every_call(Durability::Async, Fault::Death, false).await;
    dies_at_every_call(Durability::Async, Fault::Death, true).await;
}
