//! A model whose words are looked at before anybody hears them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_core::Stream;
use superstep::{Delta, DeltaPart, Message, MessageChunk};

use super::Redact;
use crate::model::{ChatModel, ChatRequest, ChunkStream, ModelError, ModelErrorKind};

pub(super) struct RedactingModel {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) redact: Redact,
}

#[async_trait]
impl ChatModel for RedactingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn generate(&self, request: ChatRequest) -> Result<Message, ModelError> {
        let answer = self.model.generate(request).await?;
        match self.redact.message(&answer) {
            Ok(changed) => Ok(changed.unwrap_or(answer)),
            Err(blocked) => {
                let words = format!("its answer is not given: {blocked}");
                Err(ModelError::new(ModelErrorKind::Refused, self.name(), words).caused_by(blocked))
            }
        }
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
