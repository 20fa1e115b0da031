//! The events of a run, as who reads them holds them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll, ready};

use futures_core::Stream;
use serde_json::Value;

use super::Output;
use crate::error::Error;
use crate::id::RunId;
use crate::stream::{Event, RunEvents};
use crate::view::Form;
use crate::wall::caught;

/// The events of a run. Dropping it cancels the run, subgraphs included.
///
/// The run goes on as its events are read: the nodes of a step start when all that was shown before has been taken and
/// more is asked for, even if no node ever waits. What nodes send themselves comes while they work if they wait now and
/// then, and at the end of their step otherwise.
///
/// It is a [`Stream`]; [`next`](EventStream::next) reads it without further imports.
#[must_use = "a run goes on as its events are read"]
pub struct EventStream<S = Value> {
    events: RunEvents,
    /// The name of the graph.
    graph: Arc<str>,
    output: Option<Output<S>>,
}

impl<S: Form> EventStream<S> {
    pub(super) fn new(events: RunEvents, graph: Arc<str>) -> Self {
        Self { events, graph, output: None }
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        self.events.id()
    }

    /// The next event; `None` at the end of the run.
    ///
    /// # Errors
    /// An error is the last thing that a stream gives.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// The run's result; there once the stream has ended well.
    pub fn output(&self) -> Option<&Output<S>> {
        self.output.as_ref()
    }
}

/// Nothing in it is pinned in place.
impl<S> Unpin for EventStream<S> {}

impl<S> std::fmt::Debug for EventStream<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("run", self.events.id()).finish_non_exhaustive()
    }
}

impl<S: Form> Stream for EventStream<S> {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(self.events.poll_next(cx));
        if event.is_none()
            && let Some(end) = self.events.take_end()
        {
            // The state is copied for the reader if somebody else holds it.
            match caught(|| Output::new(end)) {
                Ok(output) => self.output = Some(output),
                Err(panicked) => return Poll::Ready(Some(Err(Error::run_panicked(&self.graph, "the run", &panicked)))),
            }
        }
        Poll::Ready(event)
    }
}
