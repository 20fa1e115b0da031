//! A model whose words are looked at before anybody hears them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_core::Stream;
use superstep::{Block, Delta, DeltaPart, Message, MessageChunk};

use super::Redact;
use crate::model::{ChatModel, ChatRequest, ChunkStream, ModelError};

pub(super) struct RedactingModel {
    model: Arc<dyn ChatModel>,
    redact: Redact,
    said: Said,
}

/// What the model said last, after it was looked at.
#[derive(Clone, Default)]
pub(super) struct Said(Arc<Mutex<Vec<Block>>>);

impl Said {
    /// Whether these are its words.
    pub(super) fn is(&self, message: &Message) -> bool {
        *self.blocks() == *message.blocks()
    }

    fn blocks(&self) -> MutexGuard<'_, Vec<Block>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RedactingModel {
    pub(super) fn new(model: Arc<dyn ChatModel>, redact: Redact, said: Said) -> Self {
        Self { model, redact, said }
    }
}

#[async_trait]
impl ChatModel for RedactingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn generate(&self, request: ChatRequest) -> Result<Message, ModelError> {
        let in_form = request.output.is_some();
        let answer = self.redact.answer(self.model.generate(request).await?, in_form, self.name())?;
        *self.said.blocks() = answer.blocks().into_owned();
        Ok(answer)
    }

    /// What is to be found may be spread over pieces, so there is only one.
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream, ModelError> {
        Ok(Box::pin(Once(Some(whole(self.generate(request).await?)))))
    }
}

/// A message as one piece.
fn whole(message: Message) -> MessageChunk {
    let mut piece = MessageChunk::new(message.id.clone().unwrap_or_else(Message::new_id));
    if let Ok(rich) = message.into_rich() {
        (piece.name, piece.usage, piece.response, piece.extra) = (rich.name, rich.usage, rich.response, rich.extra);
        let deltas = (0..).zip(rich.blocks).map(|(place, value)| Delta::new(place, DeltaPart::Block { value }));
        piece.deltas = deltas.collect();
    }
    piece
}

struct Once(Option<MessageChunk>);

impl Stream for Once {
    type Item = Result<MessageChunk, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}
