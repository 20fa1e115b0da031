//! Whose words a model says.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_core::Stream;
use superstep::{Message, MessageChunk};

use crate::model::{ChatModel, ChatRequest, ChunkStream, ModelError};

/// A model that speaks for an agent: its message carries the agent's name, and so does every piece of it.
pub(super) struct Speaker {
    model: Arc<dyn ChatModel>,
    name: String,
}

impl Speaker {
    pub(super) fn new(model: Arc<dyn ChatModel>, name: &str) -> Self {
        Self { model, name: name.to_owned() }
    }
}

#[async_trait]
impl ChatModel for Speaker {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn generate(&self, request: ChatRequest) -> Result<Message, ModelError> {
        Ok(self.model.generate(request).await?.with_name(&*self.name))
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream, ModelError> {
        let pieces = self.model.stream(request).await?;
        Ok(Box::pin(Named { pieces, name: self.name.clone() }))
    }
}

struct Named {
    pieces: ChunkStream,
    name: String,
}

impl Stream for Named {
    type Item = Result<MessageChunk, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.pieces.as_mut().poll_next(cx);
        polled.map_ok(|mut piece| {
            piece.name = Some(self.name.clone());
            piece
        })
    }
}
