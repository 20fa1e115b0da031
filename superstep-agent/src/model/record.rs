//! Exchanges with a model, written down once and played again without it.

mod difference;
mod replay;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use superstep::{Message, MessageChunk};

use super::{ChatModel, ChatRequest, ChunkStream, ModelError, ModelErrorKind};

pub use replay::ReplayModel;

/// Asks a model, and appends each exchange to a file of JSON lines, for a [`ReplayModel`] to play.
///
/// An exchange is written when it has ended, well or not. Streams that are dropped before are not written.
///
/// ```
/// use superstep_agent::{ChatModelExt, RecordingModel, ReplayModel, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let file = std::env::temp_dir().join(format!("superstep-record-{}.jsonl", std::process::id()));
/// let model = RecordingModel::new(ScriptedModel::new(["Blue."]), &file)?;
/// model.ask("Which colour has the sky?").await?;
///
/// let replay = ReplayModel::open(&file)?;
/// assert_eq!(replay.ask("Which colour has the sky?").await?.text(), "Blue.");
/// # std::fs::remove_file(file)?;
/// # Ok(())
/// # }
/// ```
pub struct RecordingModel<M> {
    model: M,
    file: Arc<Mutex<File>>,
}

impl<M: ChatModel> RecordingModel<M> {
    /// Writes down what is said to and by a model; what the file has is kept.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn new(model: M, file: impl AsRef<Path>) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(file)?;
        Ok(Self { model, file: Arc::new(Mutex::new(file)) })
    }
}

impl<M: fmt::Debug> fmt::Debug for RecordingModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingModel").field("model", &self.model).finish_non_exhaustive()
    }
}

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Exchange {
    model: String,
    request: ChatRequest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Message>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pieces: Vec<MessageChunk>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

/// An error as it is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Failure {
    kind: ModelErrorKind,
    words: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pause_ms: Option<u64>,
}

impl From<&ModelError> for Failure {
    fn from(error: &ModelError) -> Self {
        let pause_ms = error.pause().map(|pause| pause.as_millis() as u64);
        Self { kind: error.kind(), words: error.words().to_owned(), status: error.status(), pause_ms }
    }
}

impl Exchange {
    fn new(model: &str, request: ChatRequest) -> Self {
        Self { model: model.to_owned(), request, answer: None, pieces: Vec::new(), error: None }
    }

    /// Appends it to the file: a short line to a local file, as a log would write it.
    fn write(&self, file: &Mutex<File>) -> Result<(), ModelError> {
        let fail = |error: io::Error| {
            ModelError::new(ModelErrorKind::Unexpected, &self.model, "its answer cannot be recorded").caused_by(error)
        };
        let mut line = serde_json::to_vec(self).map_err(|error| fail(error.into()))?;
        line.push(b'\n');
        file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line).map_err(fail)
    }
}

#[async_trait]
impl<M: ChatModel> ChatModel for RecordingModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn generate(&self, request: ChatRequest) -> Result<Message, ModelError> {
        let mut exchange = Exchange::new(self.name(), request.clone());
        let answer = self.model.generate(request).await;
        match &answer {
            Ok(message) => exchange.answer = Some(message.clone()),
            Err(error) => exchange.error = Some(error.into()),
        }
        exchange.write(&self.file)?;
        answer
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream, ModelError> {
        let mut exchange = Exchange::new(self.name(), request.clone());
        match self.model.stream(request).await {
            Ok(pieces) => Ok(Box::pin(Recorded { pieces, exchange: Some(exchange), file: self.file.clone() })),
            Err(error) => {
                exchange.error = Some((&error).into());
                exchange.write(&self.file)?;
                Err(error)
            }
        }
    }
}

/// Pieces that are written down when they have all come.
struct Recorded {
    pieces: ChunkStream,
    exchange: Option<Exchange>,
    file: Arc<Mutex<File>>,
}

impl Stream for Recorded {
    type Item = Result<MessageChunk, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let piece = ready!(this.pieces.as_mut().poll_next(cx));
        match (&piece, &mut this.exchange) {
            (Some(Ok(piece)), Some(exchange)) => exchange.pieces.push(piece.clone()),
            (Some(Err(error)), Some(exchange)) => exchange.error = Some(error.into()),
            _ => {}
        }
        if !matches!(piece, Some(Ok(_)))
            && let Some(exchange) = this.exchange.take()
            && let Err(error) = exchange.write(&this.file)
        {
            return Poll::Ready(Some(Err(error)));
        }
        Poll::Ready(piece)
    }
}
