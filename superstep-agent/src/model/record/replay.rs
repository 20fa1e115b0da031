//! A model that says again what was recorded.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use superstep::{Message, MessageAssembler};

use super::difference::difference;
use super::{Exchange, Failure};
use crate::model::scripted::{Listed, pieces};
use crate::model::{ChatModel, ChatRequest, ChunkStream, ModelError, ModelErrorKind};

/// Answers from a file that a [`RecordingModel`](super::RecordingModel) wrote. Clones share what is left of it.
///
/// Each exchange is played once, to the request that it was recorded for; ids of messages may differ. A request that
/// was not recorded is an error that shows how it differs from the next one that was.
///
/// ```
/// use superstep_agent::{ChatModelExt, ReplayModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let exchange = r#"{"model": "m", "request": {"messages": [{"type": "user", "content": "hi"}]},
///                    "answer": {"type": "assistant", "content": "hello"}}"#.replace('\n', " ");
/// let model = ReplayModel::read(&exchange)?;
/// let error = model.ask("ho").await.unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"model `m`: the request was not recorded; `messages[0].content` was "hi" and is "ho""#,
/// );
/// assert_eq!(model.ask("hi").await?.text(), "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ReplayModel {
    name: String,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

impl ReplayModel {
    /// Plays a file.
    ///
    /// # Errors
    /// If it cannot be read, or has something else in it.
    pub fn open(file: impl AsRef<Path>) -> io::Result<Self> {
        let file = file.as_ref();
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
        Self::read(&fs::read_to_string(file).map_err(told)?).map_err(told)
    }

    /// Plays the lines of a file.
    ///
    /// # Errors
    /// If one is no exchange.
    pub fn read(lines: &str) -> io::Result<Self> {
        let lines = lines.lines().filter(|line| !line.trim().is_empty()).enumerate();
        let read = lines.map(|(number, line)| {
            let wrong = |error| io::Error::other(format!("line {} is no recorded exchange: {error}", number + 1));
            serde_json::from_str(line).map_err(wrong)
        });
        let exchanges = read.collect::<io::Result<Vec<Exchange>>>()?;
        let name = exchanges.first().map_or_else(|| "replay".to_owned(), |exchange| exchange.model.clone());
        Ok(Self { name, exchanges: Arc::new(Mutex::new(exchanges)) })
    }

    /// How many exchanges were not played yet.
    pub fn left(&self) -> usize {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The exchange that was recorded for a request. Requests made at the same time may come in any order.
    fn find(&self, request: &ChatRequest) -> Result<Exchange, ModelError> {
        let asked = comparable(request);
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = exchanges.iter().position(|exchange| comparable(&exchange.request) == asked) {
            return Ok(exchanges.remove(place));
        }
        let words = match exchanges.first() {
            Some(next) => {
                let difference = difference(&comparable(&next.request), &asked);
                format!("the request was not recorded; {difference}")
            }
            None => "the request was not recorded; the recording is at its end".to_owned(),
        };
        Err(ModelError::new(ModelErrorKind::InvalidRequest, &self.name, words))
    }

    fn failure(&self, failure: Failure) -> ModelError {
        let mut error = ModelError::new(failure.kind, &self.name, failure.words);
        if let Some(status) = failure.status {
            error = error.status_code(status);
        }
        match failure.pause_ms {
            Some(pause) => error.retry_after(Duration::from_millis(pause)),
            None => error,
        }
    }
}

#[async_trait]
impl ChatModel for ReplayModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn generate(&self, request: ChatRequest) -> Result<Message, ModelError> {
        let exchange = self.find(&request)?;
        if let Some(failure) = exchange.error {
            return Err(self.failure(failure));
        }
        Ok(exchange.answer.unwrap_or_else(|| {
            let mut whole = MessageAssembler::new();
            exchange.pieces.into_iter().for_each(|piece| whole.push(piece));
            whole.finish()
        }))
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream, ModelError> {
        let exchange = self.find(&request)?;
        let said = exchange.answer.map_or(exchange.pieces, pieces);
        match exchange.error.map(|failure| self.failure(failure)) {
            Some(error) if said.is_empty() => Err(error),
            error => Ok(Box::pin(Listed::new(said.into_iter().map(Ok).chain(error.map(Err))))),
        }
    }
}

/// A request without the ids of its messages, which are made anew each time.
fn comparable(request: &ChatRequest) -> Value {
    let mut value = serde_json::to_value(request).unwrap_or_default();
    for message in value["messages"].as_array_mut().into_iter().flatten() {
        message.as_object_mut().map(|fields| fields.remove("id"));
    }
    value
}
