//! Streams: what a run shows while it runs.
//!
//! Nothing is built for a mode that nobody asked for. Buffers are bounded: a slow reader
//! slows the run down. An error ends the stream as an error.

mod event;
mod metadata;
mod shown;
mod tool;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Poller, Poll};

use futures_core::Stream;
use tokio::sync::{mpsc, oneshot};

use crate::error::Error;
use crate::graph_output::Output;
use crate::state::State;

pub(crate) use event::AnyEvent;
pub use event::{
    CheckpointEvent, DebugEvent, Event, EventData, ForeignEvent, MessageEvent, NodeUpdate, TaskEnd, TaskStart, Values,
};
pub use metadata::TaskMetadata;
pub use tool::ToolEvent;

pub(crate) use shown::{ShownInput, ShownState, ShownWrites, View, as_known, field_json, with_codec};

/// What a stream shows; several may be asked for at once.
///
/// ```
/// use superstep::{AgentState, EchoAgent, Message, Mode, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
/// let mut events = app.stream(AgentState { messages: vec![Message::user("hi")] }).modes([Mode::Updates, Mode::Values]).start();
/// while let Some(event) = events.next().await {
///     println!("{:?}", event?.mode());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// An event whose state type is not known.
pub(crate) struct RawEvent {
    pub(crate) namespace: Vec<String>,
    pub(crate) mode: Mode,
    pub(crate) data: Box<dyn AnyEvent>,
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

    /// Hands over what a task sent.
    pub(crate) async fn emit(&self, namespace: Vec<String>, mode: Mode, data: Box<dyn AnyEvent>) {
        self.send(RawEvent { namespace, mode, data }).await;
    }
}

type RunFuture<S> = Pin<Box<dyn Future<Output = Result<Output<S>, Error>> + Send>>;

/// The events of a run. Dropping it cancels the run, subgraphs included.
///
/// The run goes on as its events are read: the nodes of a step start when all that was shown before has been taken and
/// more is asked for, even if no node ever waits. What nodes send themselves comes while they work if they wait now and
/// then, and at the end of their step otherwise.
///
/// It is a [`Stream`]; [`next`](EventStream::next) reads it without further imports.
#[must_use = "a run goes on as its events are read"]
pub struct EventStream<S: State> {
    run: Option<RunFuture<S>>,
    events: mpsc::Receiver<Item>,
    end: Option<Error>,
    output: Option<Output<S>>,
}

impl<S: State> EventStream<S> {
    pub(crate) fn new(run: RunFuture<S>, events: mpsc::Receiver<Item>) -> Self {
        Self { run: Some(run), events, end: None, output: None }
    }

    /// The next event; `None` at the end of the run.
    ///
    /// # Errors
    /// An error is the last thing that a stream gives.
    pub async fn next(&mut self) -> Option<Result<Event<S>, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// An event that is there already. Those who wait for the reader's turn before it go on.
    fn take_event(&mut self) -> Option<Event<S>> {
        loop {
            match self.events.try_recv().ok()? {
                Item::Event(raw) => return Some(Event::from_raw(raw)),
                Item::Turn(turn) => pass(turn),
            }
        }
    }

    /// The run's result; there once the stream has ended well.
    pub fn output(&self) -> Option<&Output<S>> {
        self.output.as_ref()
    }
}

/// The state is behind a box, never pinned in place.
impl<S: State> Unpin for EventStream<S> {}

impl<S: State> Stream for EventStream<S> {
    type Item = Result<Event<S>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        if let Some(event) = self.take_event() {
            return Poll::Ready(Some(Ok(event)));
        }
        if let Some(run) = &mut self.run
            && let Poll::Ready(result) = run.as_mut().poll(cx)
        {
            self.run = None;
            match result {
                Ok(output) => self.output = Some(output),
                Err(error) => self.end = Some(error),
            }
        }
        loop {
            match self.events.poll_recv(cx) {
                Poll::Ready(Some(Item::Event(raw))) => return Poll::Ready(Some(Ok(Event::from_raw(raw)))),
                // Who waits for it wakes this task; until then others have the thread.
                Poll::Ready(Some(Item::Turn(turn))) => pass(turn),
                Poll::Ready(None) => return Poll::Ready(self.end.take().map(Err)),
                // The runtime may hold back what is there: without a run, nothing else will come.
                Poll::Pending if self.run.is_none() => {
                    let event = self.take_event().map(Ok);
                    return Poll::Ready(event.or_else(|| self.end.take().map(Err)));
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
