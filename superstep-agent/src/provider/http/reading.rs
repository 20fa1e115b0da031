//! An answer as it comes over the wire: bytes, events, pieces.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use reqwest::Response;
use serde_json::Value;
use superstep::MessageChunk;

use super::retry::Attempts;
use super::{Fault, Teller, broken_off, silent};
use crate::model::{ChunkStream, ModelError};
use crate::provider::sse::{Event, EventReader};

/// Makes pieces of what a provider sends. One decoder reads one answer, and comes to the same message whether it is
/// given the whole or its events.
pub(crate) trait Decode: Send + 'static {
    /// Takes a whole answer.
    fn whole(&mut self, answer: Value) -> Result<MessageChunk, Fault>;

    /// Takes an event; not every one has something to say.
    fn event(&mut self, event: &Event) -> Result<Option<MessageChunk>, Fault>;

    /// Whether nothing comes any more, though the connection may stay open.
    fn has_ended(&self) -> bool;

    /// The last piece. It is an error if the answer is not at its end, or if it is a refusal.
    fn finish(&mut self) -> Result<MessageChunk, Fault>;
}

/// An answer that is being read.
pub(super) struct Reading<D> {
    response: Option<Response>,
    events: EventReader,
    waiting: VecDeque<Event>,
    decoder: D,
    silence: Duration,
    over: bool,
}

impl<D: Decode> Reading<D> {
    pub(super) fn new(response: Response, decoder: D, silence: Duration) -> Self {
        let events = EventReader::default();
        Self { response: Some(response), events, waiting: VecDeque::new(), decoder, silence, over: false }
    }

    /// One that is at its end.
    pub(super) fn over(decoder: D) -> Self {
        let (events, waiting) = (EventReader::default(), VecDeque::new());
        Self { response: None, events, waiting, decoder, silence: Duration::ZERO, over: true }
    }

    /// The next piece that is not empty.
    pub(super) async fn next(&mut self) -> Result<Option<MessageChunk>, Fault> {
        while !self.over {
            let event = if self.decoder.has_ended() { None } else { self.waiting.pop_front() };
            let piece = match event {
                Some(event) => self.decoder.event(&event)?,
                None if self.decoder.has_ended() || !self.receive().await? => {
                    self.over = true;
                    Some(self.decoder.finish()?)
                }
                None => None,
            };
            if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// Waits for bytes; `false` if there are no more.
    async fn receive(&mut self) -> Result<bool, Fault> {
        let Some(response) = &mut self.response else { return Ok(false) };
        let bytes = tokio::time::timeout(self.silence, response.chunk()).await;
        let bytes = bytes.map_err(|_| silent(self.silence))?.map_err(broken_off)?;
        let Some(bytes) = bytes else { return Ok(false) };
        self.events.push(&bytes, &mut self.waiting);
        Ok(true)
    }
}

/// The pieces of an answer, for the program.
pub(super) struct Saying<D> {
    ready: VecDeque<MessageChunk>,
    reading: Reading<D>,
    attempts: Attempts,
    teller: Teller,
    over: bool,
}

impl<D: Decode> Saying<D> {
    pub(super) fn new(ready: VecDeque<MessageChunk>, reading: Reading<D>, attempts: Attempts, teller: Teller) -> Self {
        Self { ready, reading, attempts, teller, over: false }
    }

    pub(super) fn into_stream(self) -> ChunkStream {
        Box::pin(Steps { step: Some(Box::pin(self.step())) })
    }

    /// The next piece, and what comes after it.
    async fn step(mut self) -> Option<(Result<MessageChunk, ModelError>, Self)> {
        if let Some(piece) = self.ready.pop_front() {
            return Some((Ok(piece), self));
        }
        if self.over {
            return None;
        }
        match self.attempts.in_time(self.reading.next()).await {
            Ok(piece) => piece.map(|piece| (Ok(piece), self)),
            Err(fault) => {
                self.over = true;
                Some((Err(self.teller.error(fault)), self))
            }
        }
    }
}

type Step<D> = Pin<Box<dyn Future<Output = Option<(Result<MessageChunk, ModelError>, Saying<D>)>> + Send>>;

/// A stream of steps, of which each knows the next.
struct Steps<D> {
    step: Option<Step<D>>,
}

impl<D: Decode> Stream for Steps<D> {
    type Item = Result<MessageChunk, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(step) = &mut self.step else { return Poll::Ready(None) };
        let done = ready!(step.as_mut().poll(cx));
        let (piece, rest) = done.unzip();
        self.step = rest.map(|rest| Box::pin(rest.step()) as Step<D>);
        Poll::Ready(piece)
    }
}
