//! What a message can hold besides plain text.

use std::borrow::Cow;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{JsonMap, Message, MessageKind, ToolCall};

/// Who says a message.
///
/// ```
/// assert_eq!(superstep::Message::user("hi").role(), Some(superstep::Role::User));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// Instructions.
    System,
    /// A human.
    User,
    /// A model.
    Assistant,
    /// A tool that was called.
    Tool,
}

/// A message with all that it can have. Turned into a [`Message`] it becomes as plain as it can be, so that equal
/// messages are equal whichever way they were made.
///
/// ```
/// use superstep::{Block, Message, RichMessage, Role};
/// let rich = RichMessage::new(Role::User, vec![Block::text("hello")]);
/// assert_eq!(Message::from(rich), Message::user("hello"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RichMessage {
    /// Who says it.
    pub role: Role,
    /// What it says, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// The name of who says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it answers, if a tool says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ToolAnswer>,
    /// What the model took to say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What the provider told about its answer: the model, why it ended.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub response: JsonMap,
    /// What the provider wants back with it, as it came.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub extra: JsonMap,
}

impl RichMessage {
    /// A message of these parts.
    pub fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self { role, blocks, name: None, answer: None, usage: None, response: JsonMap::new(), extra: JsonMap::new() }
    }

    /// Its text, all parts of it one after the other.
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts = self.blocks.iter().filter_map(Block::as_text);
        match (texts.next(), texts.next()) {
            (None, _) => Cow::Borrowed(""),
            (Some(only), None) => Cow::Borrowed(only),
            (Some(first), Some(second)) => {
                let mut text = [first, second].concat();
                texts.for_each(|more| text.push_str(more));
                Cow::Owned(text)
            }
        }
    }

    /// The tools that it calls.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Whether a plain message says all of it.
    fn is_plain(&self) -> bool {
        let annotated = self.name.is_some()
            || self.usage.is_some()
            || !self.response.is_empty()
            || !self.extra.is_empty()
            || self.answer.as_ref().is_some_and(|answer| answer.is_error || answer.artifact.is_some());
        let calls = self.tool_calls().next().is_some();
        !annotated
            && self.answer.is_some() == (self.role == Role::Tool)
            && is_text_then_calls(&self.blocks)
            && (!calls || self.role == Role::Assistant)
    }

    /// What is left of it as a plain message.
    fn into_plain(self) -> MessageKind {
        let (mut text, mut calls) = (String::new(), Vec::new());
        for block in self.blocks {
            match block {
                Block::ToolCall(call) => calls.push(call),
                Block::Text { text: said, .. } => text = said,
                _ => {}
            }
        }
        match (self.role, self.answer) {
            (_, Some(answer)) => MessageKind::ToolResult { call: answer.call, content: text },
            (Role::System, _) => MessageKind::System(text),
            (Role::User, _) => MessageKind::User(text),
            _ if calls.is_empty() => MessageKind::Assistant(text),
            _ => MessageKind::AssistantCalls { text, calls },
        }
    }
}

/// Whether there is at most one text, nothing is known about it, and only calls come after it.
fn is_text_then_calls(blocks: &[Block]) -> bool {
    let rest = match blocks {
        [Block::Text { text, extra }, rest @ ..] if extra.is_empty() && !text.is_empty() => rest,
        all => all,
    };
    rest.iter().all(|block| matches!(block, Block::ToolCall(_)))
}

impl From<RichMessage> for Message {
    fn from(rich: RichMessage) -> Self {
        if rich.is_plain() { rich.into_plain().into() } else { MessageKind::Rich(Box::new(rich)).into() }
    }
}

/// A part of a message.
///
/// ```
/// use superstep::Block;
/// assert_eq!(Block::text("hi").as_text(), Some("hi"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block {
    /// Words.
    Text {
        /// The words.
        text: String,
        /// What the provider says about them, as it came: citations, for one.
        #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
        extra: JsonMap,
    },
    /// What the model thought before it spoke.
    Reasoning {
        /// The thoughts, or a summary of them; may be empty if the provider hides them.
        text: String,
        /// Proves to the provider that the thoughts are the model's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// What the provider wants back with them, as it came.
        #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
        extra: JsonMap,
    },
    /// A picture.
    Image(Media),
    /// Sound.
    Audio(Media),
    /// A document.
    File(Media),
    /// A wish to call a tool.
    ToolCall(ToolCall),
    /// Something that only its provider understands; it is given back as it came.
    Opaque {
        /// Who understands it.
        provider: String,
        /// What came.
        value: Value,
    },
}

impl Block {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Block::Text { text: text.into(), extra: JsonMap::new() }
    }

    /// Thoughts.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Block::Reasoning { text: text.into(), signature: None, extra: JsonMap::new() }
    }

    /// The words, if it is words.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Block::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// A picture, sound or document: where it is, and what it is.
///
/// ```
/// use superstep::Media;
/// let media = Media::base64("image/png", "iVBORw0KGgo=");
/// assert_eq!(media.mime.as_deref(), Some("image/png"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Media {
    /// Where it is.
    pub source: MediaSource,
    /// Its type, like `image/png`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the provider wants to know, as it came.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub extra: JsonMap,
}

/// Where the bytes of a [`Media`] are.
///
/// ```
/// assert!(matches!(superstep::Media::url("https://example.org/a.png").source, superstep::MediaSource::Url(_)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaSource {
    /// There.
    Url(String),
    /// Here, in base64.
    Base64(String),
    /// At the provider, under this name.
    Id(String),
}

impl Media {
    /// What is at an address.
    pub fn url(url: impl Into<String>) -> Self {
        Self { source: MediaSource::Url(url.into()), mime: None, name: None, extra: JsonMap::new() }
    }

    /// What these bytes in base64 are.
    pub fn base64(mime: impl Into<String>, data: impl Into<String>) -> Self {
        let source = MediaSource::Base64(data.into());
        Self { source, mime: Some(mime.into()), name: None, extra: JsonMap::new() }
    }

    /// What the provider keeps under a name.
    pub fn id(id: impl Into<String>) -> Self {
        Self { source: MediaSource::Id(id.into()), mime: None, name: None, extra: JsonMap::new() }
    }
}

/// What a tool's message answers.
///
/// ```
/// assert_eq!(superstep::ToolAnswer::new("c1").call, "c1");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolAnswer {
    /// The id of the call.
    pub call: String,
    /// Whether the tool failed, and the message says how.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// What the tool made that is not for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Value>,
}

impl ToolAnswer {
    /// The answer to a call.
    pub fn new(call: impl Into<String>) -> Self {
        Self { call: call.into(), is_error: false, artifact: None }
    }
}

/// The tokens that a model took.
///
/// ```
/// use superstep::Usage;
/// let mut all = Usage::new(10, 5);
/// all += Usage::new(20, 7);
/// assert_eq!((all.input, all.output, all.total()), (30, 12, 42));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens that it read, all of them.
    pub input: u64,
    /// Tokens that it wrote, thoughts included.
    pub output: u64,
    /// Of those read: known from an earlier call.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Of those read: kept for a later call.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Of those written: thoughts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

impl Usage {
    /// So many read, and so many written.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// All tokens.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
