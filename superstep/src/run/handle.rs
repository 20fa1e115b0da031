//! Detached runs: they go on when nobody watches, and any number may.

use std::collections::HashMap;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context as Poller, Poll, Waker};

use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Output;
use crate::call::lock;
use crate::error::{Error, ErrorKind};
use crate::id::RunId;
use crate::stream::{Event, RunEvents};
use crate::view::{Form, RunEnd};
use crate::wall::caught;

/// A run that goes on by itself: to watch it from any point, cancel it, and wait for its end.
///
/// It is cheap to clone. Dropping it does not end the run. The events of the run are kept as long as anybody holds a handle
/// or watches; nobody who watches slows the run down.
///
/// ```
/// use superstep::{AgentState, EchoAgent, Message, RunStatus, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
/// let run = app.stream(AgentState { messages: vec![Message::user("hi")] }).spawn();
/// let mut events = run.watch(0);
/// while let Some(event) = events.next().await { println!("{} {event:?}", event.sequence); }
/// assert_eq!(run.join().await?.state.messages.len(), 2);
/// assert_eq!(run.status(), RunStatus::Done);
/// # Ok(())
/// # }
/// ```
pub struct RunHandle<S = Value> {
    run: Arc<Detached>,
    state: PhantomData<fn() -> S>,
}

/// How far a detached run is.
///
/// ```
/// use superstep::RunStatus;
/// assert_eq!(serde_json::to_value(RunStatus::Interrupted).unwrap(), "interrupted");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// It is under way.
    Running,
    /// It came to its end.
    Done,
    /// It waits: for answers, or because it was told to stop.
    Interrupted,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// What a detached run and those who hold it share.
struct Detached {
    id: RunId,
    /// The name of the graph.
    graph: Arc<str>,
    cancel: CancellationToken,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    /// The events so far; an event's number is its place, counted from 1.
    events: Vec<Event>,
    end: Option<Result<RunEnd, Error>>,
    /// Who waits for more, by the number of their watch.
    waiting: HashMap<u64, Waker>,
    watches: u64,
}

impl Detached {
    fn add(&self, event: Event) {
        let mut log = lock(&self.log);
        log.events.push(event);
        let waiting = std::mem::take(&mut log.waiting);
        drop(log);
        waiting.into_values().for_each(Waker::wake);
    }

    /// Notes the end; the first one stays.
    fn end(&self, end: Result<RunEnd, Error>) {
        let mut log = lock(&self.log);
        log.end.get_or_insert(end);
        let waiting = std::mem::take(&mut log.waiting);
        drop(log);
        waiting.into_values().for_each(Waker::wake);
    }

    /// A place among those who wait, given up when it is dropped.
    fn seat(self: &Arc<Self>) -> Seat {
        let mut log = lock(&self.log);
        log.watches += 1;
        Seat { run: self.clone(), number: log.watches }
    }
}

struct Seat {
    run: Arc<Detached>,
    number: u64,
}

impl Seat {
    /// What `look` finds in the log; until it finds something, whoever asks is woken when there is more.
    fn poll<T>(&self, cx: &Poller<'_>, look: impl FnOnce(&Log) -> Option<T>) -> Poll<T> {
        let mut log = lock(&self.run.log);
        if let Some(found) = look(&log) {
            return Poll::Ready(found);
        }
        log.waiting.insert(self.number, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let waker = lock(&self.run.log).waiting.remove(&self.number);
        drop(waker);
    }
}

/// Tells those who wait if the task of a run ends before the run does: its runtime was shut down.
struct Pump {
    run: Weak<Detached>,
    events: RunEvents,
}

impl Pump {
    async fn run(mut self) {
        while let Some(event) = std::future::poll_fn(|cx| self.events.poll_next(cx)).await {
            match (event, self.run.upgrade()) {
                (Ok(event), Some(run)) => run.add(event),
                (Err(error), Some(run)) => return run.end(Err(error)),
                // Nobody will ever ask: the run goes on for what it does.
                (_, None) => {}
            }
        }
        if let (Some(end), Some(run)) = (self.events.take_end(), self.run.upgrade()) {
            run.end(Ok(end));
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if let Some(run) = self.run.upgrade() {
            run.end(Err(Error::cancelled()));
        }
    }
}

impl<S> RunHandle<S> {
    pub(super) fn spawn(events: RunEvents, cancel: CancellationToken, graph: Arc<str>) -> Self {
        let run = Arc::new(Detached { id: events.id().clone(), graph, cancel, log: Mutex::default() });
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(Pump { run: Arc::downgrade(&run), events }.run())),
            Err(why) => run.end(Err(Error::invalid("a detached run needs a runtime of tokio").caused_by(why))),
        }
        Self { run, state: PhantomData }
    }

    /// The run.
    pub fn id(&self) -> &RunId {
        &self.run.id
    }

    /// How far it is.
    pub fn status(&self) -> RunStatus {
        match &lock(&self.run.log).end {
            None => RunStatus::Running,
            Some(Ok(end)) if end.paused => RunStatus::Interrupted,
            Some(Ok(_)) => RunStatus::Done,
            Some(Err(error)) if error.kind() == ErrorKind::Cancelled => RunStatus::Cancelled,
            Some(Err(_)) => RunStatus::Failed,
        }
    }

    /// The events after the one with this number, those that were and those that come; 0 gives all. It ends with the run.
    pub fn watch(&self, after: u64) -> Watch {
        Watch { seat: self.run.seat(), next: usize::try_from(after).unwrap_or(usize::MAX) }
    }

    /// Cancels the run, subgraphs included; it ends at its last checkpoint. [`join`](RunHandle::join) waits until it has.
    pub fn cancel(&self) {
        self.run.cancel.cancel();
    }
}

impl<S: Form> RunHandle<S> {
    /// Waits for the end of the run; any number may, as often as they like.
    ///
    /// # Errors
    /// The error of the run.
    ///
    /// # Cancellation
    /// Who stops waiting does not stop the run.
    pub async fn join(&self) -> Result<Output<S>, Error> {
        let end = self.ended().await?;
        let output = caught(|| Output::new(end));
        output.map_err(|panicked| Error::run_panicked(&self.run.graph, "the run", &panicked))
    }
}

impl<S> RunHandle<S> {
    fn ended(&self) -> Pin<Box<dyn Future<Output = Result<RunEnd, Error>> + Send>> {
        let seat = self.run.seat();
        Box::pin(std::future::poll_fn(move |cx| seat.poll(cx, |log| log.end.clone())))
    }
}

impl<S> Clone for RunHandle<S> {
    fn clone(&self) -> Self {
        Self { run: self.run.clone(), state: PhantomData }
    }
}

impl<S> std::fmt::Debug for RunHandle<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunHandle").field("id", self.id()).field("status", &self.status()).finish()
    }
}

/// The events of a detached run, from [`RunHandle::watch`]: each once and in order. It is a [`Stream`].
///
/// ```
/// # async fn f(run: superstep::RunHandle) {
/// let mut rest = run.watch(3);
/// while let Some(event) = rest.next().await { println!("{}: {event:?}", event.sequence); }
/// # }
/// ```
#[must_use = "a watch shows nothing until it is read"]
pub struct Watch {
    seat: Seat,
    next: usize,
}

impl Watch {
    /// The next event; `None` at the end of the run.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Watch {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Option<Event>> {
        let next = self.next;
        let found = self.seat.poll(cx, |log| match log.events.get(next) {
            Some(event) => Some(Some(event.clone())),
            None => log.end.is_some().then_some(None),
        });
        if let Poll::Ready(Some(_)) = &found {
            self.next += 1;
        }
        found
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("run", &self.seat.run.id).field("after", &self.next).finish()
    }
}
