//! Chat messages as data, and their merge by id.

mod chunk;
mod json;
mod merge;
mod rich;

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

pub use chunk::{Delta, DeltaPart, MessageAssembler, MessageChunk};
pub use json::normal_message;
pub(crate) use json::{
    each_message, json_from_message, kind_of, message_from_json, messages_from_json, messages_in, texts_to_messages,
};
pub(crate) use merge::{MessageIndex, give_ids, merge_messages};
pub use merge::{MessageLike, add_messages};
pub use rich::{Block, Media, MediaSource, RichMessage, Role, ToolAnswer, Usage};

/// JSON fields by name.
pub type JsonMap = serde_json::Map<String, serde_json::Value>;

/// One message of a conversation.
///
/// The id decides how it merges: the same id replaces in place, a new one is appended.
///
/// ```
/// use superstep::{Message, MessageKind};
///
/// let message = Message { id: None, kind: MessageKind::User("hello".into()) };
/// assert_eq!(message, Message::user("hello"));
/// assert_eq!(message.text(), "hello");
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Message {
    /// The id; given at the end of the step if missing.
    #[serde(default)]
    pub id: Option<String>,
    /// Who says what.
    #[serde(flatten)]
    pub kind: MessageKind,
}

/// What its parts would be derived to, but with the number of entries known ahead: nothing is written twice.
impl Serialize for Message {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let has_content = !matches!(self.kind, MessageKind::Remove | MessageKind::RemoveAll);
        let entries = 1 + usize::from(self.id.is_some()) + usize::from(has_content);
        let mut map = serializer.serialize_map(Some(entries))?;
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        let mut write = |kind: &str, content: Option<&str>| {
            map.serialize_entry("type", kind)?;
            content.map_or(Ok(()), |text| map.serialize_entry("content", text))
        };
        match &self.kind {
            MessageKind::System(text) => write("system", Some(text))?,
            MessageKind::User(text) => write("user", Some(text))?,
            MessageKind::Assistant(text) => write("assistant", Some(text))?,
            MessageKind::Remove => write("remove", None)?,
            MessageKind::RemoveAll => write("remove_all", None)?,
            MessageKind::AssistantCalls { text, calls } => {
                write("assistant_calls", None)?;
                map.serialize_entry("content", &Calls { text, calls })?;
            }
            MessageKind::ToolResult { call, content } => {
                write("tool_result", None)?;
                map.serialize_entry("content", &Answer { call, content })?;
            }
            MessageKind::Rich(rich) => {
                write("rich", None)?;
                map.serialize_entry("content", rich)?;
            }
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Calls<'a> {
    text: &'a str,
    calls: &'a [ToolCall],
}

#[derive(Serialize)]
struct Answer<'a> {
    call: &'a str,
    content: &'a str,
}

/// Who says a [`Message`], and what.
///
/// ```
/// use superstep::MessageKind;
/// assert!(matches!(MessageKind::System("be brief".into()), MessageKind::System(_)));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "content", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageKind {
    /// Instructions.
    System(String),
    /// A human's words.
    User(String),
    /// The model's words.
    Assistant(String),
    /// The model's words, with calls of tools.
    AssistantCalls {
        /// What it says beside them.
        text: String,
        /// The calls.
        calls: Vec<ToolCall>,
    },
    /// What a tool gave back.
    ToolResult {
        /// The id of the call.
        call: String,
        /// The result.
        content: String,
    },
    /// Anything more than text: parts of several kinds, a name, usage, what a provider wants back.
    Rich(Box<RichMessage>),
    /// Removes the message with this message's id.
    Remove,
    /// Removes all messages before it.
    RemoveAll,
}

/// A model's wish to call a tool.
///
/// ```
/// let call = superstep::ToolCall::new("call-1", "search", serde_json::json!({"q": "tea"}));
/// assert_eq!(call.name, "search");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// Names the call; the result carries it too.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments; a text if the model wrote something that is no JSON.
    pub args: serde_json::Value,
    /// What its provider wants back with it, as it came.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub extra: JsonMap,
}

impl ToolCall {
    /// A call of a tool.
    pub fn new(id: impl Into<String>, name: impl Into<String>, args: serde_json::Value) -> Self {
        Self { id: id.into(), name: name.into(), args, extra: JsonMap::new() }
    }
}

impl Message {
    /// A system message.
    pub fn system(text: impl Into<String>) -> Self {
        MessageKind::System(text.into()).into()
    }

    /// A human's message.
    pub fn user(text: impl Into<String>) -> Self {
        MessageKind::User(text.into()).into()
    }

    /// A model's message.
    pub fn assistant(text: impl Into<String>) -> Self {
        MessageKind::Assistant(text.into()).into()
    }

    /// A model's message that calls tools.
    pub fn calls(text: impl Into<String>, calls: impl IntoIterator<Item = ToolCall>) -> Self {
        MessageKind::AssistantCalls { text: text.into(), calls: calls.into_iter().collect() }.into()
    }

    /// A tool's result.
    pub fn tool_result(call: impl Into<String>, content: impl Into<String>) -> Self {
        MessageKind::ToolResult { call: call.into(), content: content.into() }.into()
    }

    /// Removes the message with this id.
    pub fn remove(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), kind: MessageKind::Remove }
    }

    /// Removes everything before it.
    pub fn remove_all() -> Self {
        MessageKind::RemoveAll.into()
    }

    /// The same message with an id.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// A random id for a message.
    ///
    /// ```
    /// assert_ne!(superstep::Message::new_id(), superstep::Message::new_id());
    /// ```
    pub fn new_id() -> String {
        crate::id::random_uuid()
    }

    /// Its text, all parts of it one after the other; empty for removals.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.kind {
            MessageKind::System(text)
            | MessageKind::User(text)
            | MessageKind::Assistant(text)
            | MessageKind::AssistantCalls { text, .. }
            | MessageKind::ToolResult { content: text, .. } => Cow::Borrowed(text),
            MessageKind::Rich(rich) => rich.text(),
            MessageKind::Remove | MessageKind::RemoveAll => Cow::Borrowed(""),
        }
    }

    /// Who says it; nobody says removals.
    pub fn role(&self) -> Option<Role> {
        Some(match &self.kind {
            MessageKind::System(_) => Role::System,
            MessageKind::User(_) => Role::User,
            MessageKind::Assistant(_) | MessageKind::AssistantCalls { .. } => Role::Assistant,
            MessageKind::ToolResult { .. } => Role::Tool,
            MessageKind::Rich(rich) => rich.role,
            MessageKind::Remove | MessageKind::RemoveAll => return None,
        })
    }

    /// The tools that the model wants to call, in order.
    ///
    /// ```
    /// use superstep::{Message, ToolCall};
    /// let message = Message::calls("one moment", [ToolCall::new("c1", "search", serde_json::json!({"q": "tea"}))]);
    /// assert_eq!(message.tool_calls().next().unwrap().name, "search");
    /// ```
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let (plain, rich) = match &self.kind {
            MessageKind::AssistantCalls { calls, .. } => (calls.as_slice(), None),
            MessageKind::Rich(rich) => (&[][..], Some(rich)),
            _ => (&[][..], None),
        };
        plain.iter().chain(rich.into_iter().flat_map(|rich| rich.tool_calls()))
    }

    /// The id of the call that it answers, if it is a tool's result.
    pub fn answers(&self) -> Option<&str> {
        match &self.kind {
            MessageKind::ToolResult { call, .. } => Some(call),
            MessageKind::Rich(rich) => rich.answer.as_ref().map(|answer| &*answer.call),
            _ => None,
        }
    }

    /// Whether it is a tool's result that tells of an error.
    pub fn is_error(&self) -> bool {
        self.rich_parts().and_then(|rich| rich.answer.as_ref()).is_some_and(|answer| answer.is_error)
    }

    /// The name of who says it: one of several agents, a tool.
    pub fn name(&self) -> Option<&str> {
        self.rich_parts()?.name.as_deref()
    }

    /// What the model took to say it.
    pub fn usage(&self) -> Option<&Usage> {
        self.rich_parts()?.usage.as_ref()
    }

    /// Its parts in order; of plain messages, the text and the calls.
    ///
    /// ```
    /// use superstep::{Block, Message};
    /// assert_eq!(*Message::user("hello").blocks(), [Block::text("hello")]);
    /// ```
    pub fn blocks(&self) -> Cow<'_, [Block]> {
        match &self.kind {
            MessageKind::Rich(rich) => Cow::Borrowed(&rich.blocks),
            _ => Cow::Owned(self.clone().into_rich().map(|rich| rich.blocks).unwrap_or_default()),
        }
    }

    /// The same message with the name of who says it.
    ///
    /// ```
    /// use superstep::Message;
    /// assert_eq!(Message::assistant("done").with_name("writer").name(), Some("writer"));
    /// ```
    pub fn with_name(self, name: impl Into<String>) -> Self {
        self.with_rich(|rich| rich.name = Some(name.into()))
    }

    /// The same message, changed where it is more than text.
    ///
    /// ```
    /// use superstep::{Block, Media, Message};
    /// let message = Message::user("what is this?").with_rich(|m| m.blocks.push(Block::Image(Media::url("https://example.org/a.png"))));
    /// assert_eq!(message.text(), "what is this?");
    /// assert_eq!(message.blocks().len(), 2);
    /// ```
    pub fn with_rich(self, change: impl FnOnce(&mut RichMessage)) -> Self {
        let id = self.id.clone();
        match self.into_rich() {
            Ok(mut rich) => {
                change(&mut rich);
                Self { id, ..rich.into() }
            }
            Err(removal) => removal,
        }
    }

    /// All that it says, in the form that can say anything.
    ///
    /// # Errors
    /// A removal says nothing and is given back.
    pub fn into_rich(self) -> Result<RichMessage, Message> {
        let (role, text, calls, answer) = match self.kind {
            MessageKind::Rich(rich) => return Ok(*rich),
            MessageKind::Remove | MessageKind::RemoveAll => return Err(self),
            MessageKind::System(text) => (Role::System, text, vec![], None),
            MessageKind::User(text) => (Role::User, text, vec![], None),
            MessageKind::Assistant(text) => (Role::Assistant, text, vec![], None),
            MessageKind::AssistantCalls { text, calls } => (Role::Assistant, text, calls, None),
            MessageKind::ToolResult { call, content } => (Role::Tool, content, vec![], Some(ToolAnswer::new(call))),
        };
        let said = (!text.is_empty()).then_some(Block::text(text));
        let blocks = said.into_iter().chain(calls.into_iter().map(Block::ToolCall)).collect();
        Ok(RichMessage { answer, ..RichMessage::new(role, blocks) })
    }

    fn rich_parts(&self) -> Option<&RichMessage> {
        match &self.kind {
            MessageKind::Rich(rich) => Some(rich),
            _ => None,
        }
    }
}

impl From<MessageKind> for Message {
    fn from(kind: MessageKind) -> Self {
        Self { id: None, kind }
    }
}
