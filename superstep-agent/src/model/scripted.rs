//! A model that says what it was told to say: for tests, examples and demonstrations.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use superstep::{Block, Delta, DeltaPart, Message, MessageChunk};

use super::{ChatModel, ChatRequest, ChunkStream, ModelError, ModelErrorKind};

/// What a [`ScriptedModel`] does when it is asked.
///
/// ```
/// use superstep_agent::Reply;
/// let reply = Reply::from("hello");
/// # let _ = reply;
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum Reply {
    /// It says this.
    Say(Message),
    /// It fails.
    Fail(ModelError),
    /// It says some words and fails in the middle of the next.
    BreakOff(String),
    /// It thinks about the question.
    Think(Arc<dyn Fn(&ChatRequest) -> Message + Send + Sync>),
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Reply::Say(Message::assistant(text))
    }
}

impl From<Message> for Reply {
    fn from(message: Message) -> Self {
        Reply::Say(message)
    }
}

impl From<ModelError> for Reply {
    fn from(error: ModelError) -> Self {
        Reply::Fail(error)
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Say(message) => f.debug_tuple("Say").field(message).finish(),
            Reply::Fail(error) => f.debug_tuple("Fail").field(error).finish(),
            Reply::BreakOff(text) => f.debug_tuple("BreakOff").field(text).finish(),
            Reply::Think(_) => f.write_str("Think"),
        }
    }
}

/// Gives the answers of a script, one per request, and remembers what it was asked. Clones share the script.
///
/// Streamed, it says its text word by word.
///
/// ```
/// use superstep::{Message, ToolCall};
/// use superstep_agent::{ChatModelExt, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), superstep_agent::ModelError> {
/// let call = ToolCall::new("c1", "weather", serde_json::json!({"city": "Oslo"}));
/// let model = ScriptedModel::new([Message::calls("", [call]), Message::assistant("It snows.")]);
/// assert_eq!(model.ask("How is the weather in Oslo?").await?.tool_calls().count(), 1);
/// assert_eq!(model.ask("And?").await?.text(), "It snows.");
/// assert_eq!(model.requests().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ScriptedModel {
    script: Arc<Mutex<Script>>,
}

#[derive(Debug, Default)]
struct Script {
    replies: VecDeque<Reply>,
    always: Option<Reply>,
    asked: Vec<ChatRequest>,
}

impl ScriptedModel {
    /// A model that gives these answers in turn; asked once more, it fails.
    pub fn new<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> Self {
        let replies = replies.into_iter().map(Into::into).collect();
        Self { script: Arc::new(Mutex::new(Script { replies, ..Script::default() })) }
    }

    /// A model that thinks about every question.
    ///
    /// ```
    /// use superstep::Message;
    /// use superstep_agent::{ChatModelExt, ScriptedModel};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), superstep_agent::ModelError> {
    /// let model = ScriptedModel::thinking(|request| Message::assistant(request.messages.len().to_string()));
    /// assert_eq!(model.ask("hi").await?.text(), "1");
    /// # Ok(())
    /// # }
    /// ```
    pub fn thinking(think: impl Fn(&ChatRequest) -> Message + Send + Sync + 'static) -> Self {
        let always = Some(Reply::Think(Arc::new(think)));
        Self { script: Arc::new(Mutex::new(Script { always, ..Script::default() })) }
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.lock().asked.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next answer, or how it breaks off.
    fn reply(&self, request: &ChatRequest) -> Result<Result<Message, String>, ModelError> {
        let mut script = self.lock();
        let reply = script.replies.pop_front().or_else(|| script.always.clone());
        script.asked.push(request.clone());
        drop(script);
        match reply {
            Some(Reply::Say(message)) => Ok(Ok(message)),
            Some(Reply::Think(think)) => Ok(Ok(think(request))),
            Some(Reply::BreakOff(words)) => Ok(Err(words)),
            Some(Reply::Fail(error)) => Err(error),
            None => Err(ModelError::new(ModelErrorKind::Unexpected, self.name(), "its script has no further answer")),
        }
    }

    fn broken(&self) -> ModelError {
        ModelError::new(ModelErrorKind::BrokenStream, self.name(), "its answer broke off")
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn generate(&self, request: ChatRequest) -> Result<Message, ModelError> {
        self.reply(&request)?.map_err(|_| self.broken())
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream, ModelError> {
        let (message, broken) = match self.reply(&request)? {
            Ok(message) => (message, None),
            Err(words) => (Message::assistant(words), Some(self.broken())),
        };
        Ok(Box::pin(Listed::new(pieces(message).into_iter().map(Ok).chain(broken.map(Err)))))
    }
}

/// Pieces that are all there.
pub(super) struct Listed(VecDeque<Result<MessageChunk, ModelError>>);

impl Listed {
    pub(super) fn new(pieces: impl IntoIterator<Item = Result<MessageChunk, ModelError>>) -> Self {
        Self(pieces.into_iter().collect())
    }
}

impl futures_core::Stream for Listed {
    type Item = Result<MessageChunk, ModelError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.pop_front())
    }
}

/// A message word by word.
pub(super) fn pieces(message: Message) -> Vec<MessageChunk> {
    let id = message.id.clone().unwrap_or_else(Message::new_id);
    let Ok(rich) = message.into_rich() else { return Vec::new() };
    let piece = |place: usize, part| MessageChunk::new(&*id).with(Delta::new(place as u32, part));
    let mut pieces = Vec::new();
    for (place, block) in rich.blocks.into_iter().enumerate() {
        match block {
            Block::Text { text, extra } if extra.is_empty() => {
                let words = text.split_inclusive(' ').map(|word| DeltaPart::Text { text: word.to_owned() });
                pieces.extend(words.map(|word| piece(place, word)));
            }
            Block::ToolCall(call) if call.extra.is_empty() => {
                let begin = DeltaPart::ToolCall { id: Some(call.id), name: Some(call.name), args: String::new() };
                let args = DeltaPart::ToolCall { id: None, name: None, args: call.args.to_string() };
                pieces.extend([begin, args].map(|part| piece(place, part)));
            }
            value => pieces.push(piece(place, DeltaPart::Block { value })),
        }
    }
    let mut last = MessageChunk::new(id);
    (last.name, last.usage, last.response, last.extra) = (rich.name, rich.usage, rich.response, rich.extra);
    pieces.push(last);
    pieces
}
