//! Streams: what a run shows while it runs.
//!
//! Nothing is built for a mode that nobody asked for. Buffers are bounded: a slow reader
//! slows the run down. An error ends the stream as an error.

mod event;
mod metadata;
mod tool;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Poller, Poll};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::error::Error;
use crate::id::RunId;
use crate::view::RunEnd;

pub use event::{DebugEvent, Event, EventData, MessageEvent, NodeUpdate, TaskEnd, TaskStart, Values};
pub use metadata::TaskMetadata;
pub use tool::ToolEvent;

/// What a stream shows; several may be asked for at once.
///
/// ```
/// use superstep::{AgentState, EchoAgent, Message, Mode, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
/// let mut events = app.stream(AgentState { messages: vec![Message::user("hi")] }).modes([Mode::Updates, Mode::Values]).start();
/// while let Some(event) = events.next().await {
///     println!("{:?}", event?.mode);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// The whole state after every step.
    Values,
    /// What each node wrote, as it finishes.
    Updates,
    /// Chat messages and pieces of them, as they come.
    Messages,
    /// What nodes send with [`Context::emit`](crate::Context::emit).
    Custom,
    /// Tasks as they start and end.
    Tasks,
    /// Checkpoints as they are made.
    Checkpoints,
    /// Tasks and checkpoints with their steps and times.
    Debug,
    /// Calls of tools: that they start, pieces of their results, and how they end. Agents and tool nodes send them.
    Tools,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Modes(u8);

impl Modes {
    pub(crate) fn with(self, mode: Mode) -> Self {
        Self(self.0 | 1 << mode as u8)
    }

    pub(crate) fn has(self, mode: Mode) -> bool {
        self.0 & 1 << mode as u8 != 0
    }
}

/// An event on its way to the reader, who numbers it.
pub(crate) struct RawEvent {
    pub(crate) namespace: Vec<String>,
    pub(crate) mode: Mode,
    pub(crate) step: i64,
    at: SystemTime,
    data: EventData,
}

impl RawEvent {
    /// One that happens now.
    pub(crate) fn new(namespace: Vec<String>, mode: Mode, step: i64, data: EventData) -> Self {
        Self { namespace, mode, step, at: SystemTime::now(), data }
    }
}

/// What goes from a run to its reader.
pub(crate) enum Item {
    Event(RawEvent),
    /// The reader has taken what came before. Whoever sent this waits until it is taken too, or dropped.
    Turn(oneshot::Sender<()>),
}

/// Where a run's events go.
#[derive(Clone)]
pub(crate) struct Sink {
    sender: mpsc::Sender<Item>,
    modes: Modes,
    pub(crate) subgraphs: bool,
}

impl Sink {
    pub(crate) fn new(modes: Modes, subgraphs: bool, capacity: usize) -> (Self, mpsc::Receiver<Item>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (Self { sender, modes, subgraphs }, receiver)
    }

    pub(crate) fn wants(&self, mode: Mode) -> bool {
        self.modes.has(mode)
    }

    /// Hands an event over; a reader that went away has cancelled the run already.
    pub(crate) async fn send(&self, event: RawEvent) {
        if self.sender.send(Item::Event(event)).await.is_err() {
            tracing::debug!("nobody reads the stream any more");
        }
    }

    /// Waits until the reader has taken all that was shown before, and asks for more. Nodes may never wait: without this,
    /// they would all run before the reader sees anything.
    pub(crate) async fn give_reader_its_turn(&self) {
        let (turn, taken) = oneshot::channel();
        if self.sender.send(Item::Turn(turn)).await.is_ok() {
            // A reader that went away needs no turn; it has cancelled the run.
            let _gone = taken.await;
        }
    }
}

type RunFuture = Pin<Box<dyn Future<Output = Result<RunEnd, Error>> + Send>>;

/// The events of a run that goes on as they are read, and its end.
pub(crate) struct RunEvents {
    id: RunId,
    sequence: u64,
    run: Option<RunFuture>,
    events: mpsc::Receiver<Item>,
    error: Option<Error>,
    end: Option<RunEnd>,
}

impl RunEvents {
    pub(crate) fn new(id: RunId, run: RunFuture, events: mpsc::Receiver<Item>) -> Self {
        Self { id, sequence: 0, run: Some(run), events, error: None, end: None }
    }

    pub(crate) fn id(&self) -> &RunId {
        &self.id
    }

    /// How the run ended, once its events have; there once.
    pub(crate) fn take_end(&mut self) -> Option<RunEnd> {
        self.end.take()
    }

    fn numbered(&mut self, raw: RawEvent) -> Event {
        self.sequence += 1;
        let RawEvent { namespace, mode, step, at, data } = raw;
        Event { run: self.id.clone(), sequence: self.sequence, at, mode, namespace, step, data }
    }

    /// An event that is there already. Those who wait for the reader's turn before it go on.
    fn take_event(&mut self) -> Option<Event> {
        loop {
            match self.events.try_recv().ok()? {
                Item::Event(raw) => return Some(self.numbered(raw)),
                Item::Turn(turn) => pass(turn),
            }
        }
    }

    /// The next event; an error is the last that it gives.
    pub(crate) fn poll_next(&mut self, cx: &mut Poller<'_>) -> Poll<Option<Result<Event, Error>>> {
        if let Some(event) = self.take_event() {
            return Poll::Ready(Some(Ok(event)));
        }
        if let Some(run) = &mut self.run
            && let Poll::Ready(result) = run.as_mut().poll(cx)
        {
            self.run = None;
            match result {
                Ok(end) => self.end = Some(end),
                Err(error) => self.error = Some(error),
            }
        }
        loop {
            match self.events.poll_recv(cx) {
                Poll::Ready(Some(Item::Event(raw))) => return Poll::Ready(Some(Ok(self.numbered(raw)))),
                // Who waits for it wakes this task; until then others have the thread.
                Poll::Ready(Some(Item::Turn(turn))) => pass(turn),
                Poll::Ready(None) => return Poll::Ready(self.error.take().map(Err)),
                // The runtime may hold back what is there: without a run, nothing else will come.
                Poll::Pending if self.run.is_none() => {
                    let event = self.take_event().map(Ok);
                    return Poll::Ready(event.or_else(|| self.error.take().map(Err)));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// Lets whoever waits for the reader's turn go on, if it still does.
fn pass(turn: oneshot::Sender<()>) {
    let _gone = turn.send(());
}
