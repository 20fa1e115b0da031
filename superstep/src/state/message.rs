//! Chat messages as data, and their merge by id.

use std::collections::HashMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use super::{Change, Field, FieldKind, FieldSpec, IntoUpdate, Persist, Put, Scratch, State, Update};
use crate::channel::typed;
use crate::error::InvalidUpdate;
use crate::plan::ROOT;
use crate::state::CodecError;

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
    /// Its arguments.
    pub args: serde_json::Value,
}

impl ToolCall {
    /// A call of a tool.
    pub fn new(id: impl Into<String>, name: impl Into<String>, args: serde_json::Value) -> Self {
        Self { id: id.into(), name: name.into(), args }
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

    /// Its text; empty for removals.
    pub fn text(&self) -> &str {
        match &self.kind {
            MessageKind::System(text)
            | MessageKind::User(text)
            | MessageKind::Assistant(text)
            | MessageKind::AssistantCalls { text, .. }
            | MessageKind::ToolResult { content: text, .. } => text,
            MessageKind::Remove | MessageKind::RemoveAll => "",
        }
    }
}

impl From<MessageKind> for Message {
    fn from(kind: MessageKind) -> Self {
        Self { id: None, kind }
    }
}

/// What the merge by id needs to know of a message.
///
/// ```
/// use superstep::{Message, MessageLike};
/// assert!(Message::remove("a").is_removal());
/// ```
pub trait MessageLike: Clone {
    /// The id, if it has one.
    fn id(&self) -> Option<&str>;
    /// Gives it an id.
    fn set_id(&mut self, id: String);
    /// Whether it removes messages instead of being one.
    fn is_removal(&self) -> bool;
    /// Whether it removes all messages before it.
    fn removes_all(&self) -> bool;
}

impl MessageLike for Message {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
    fn set_id(&mut self, id: String) {
        self.id = Some(id);
    }
    fn is_removal(&self) -> bool {
        matches!(self.kind, MessageKind::Remove | MessageKind::RemoveAll)
    }
    fn removes_all(&self) -> bool {
        matches!(self.kind, MessageKind::RemoveAll)
    }
}

/// Merges messages by id.
///
/// Messages without an id get one. A known id replaces its message in place, a new one is
/// appended; [`Message::remove`] takes a message out, [`Message::remove_all`] everything before it.
///
/// # Errors
/// If a removal names a message that is not there.
///
/// ```
/// use superstep::{add_messages, Message};
///
/// let merged = add_messages(
///     vec![Message::user("hi").with_id("1")],
///     vec![Message::assistant("hm").with_id("2"), Message::user("hello").with_id("1")],
/// )?;
/// assert_eq!(merged.iter().map(Message::text).collect::<Vec<_>>(), ["hello", "hm"]);
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
pub fn add_messages<M: MessageLike>(current: Vec<M>, update: Vec<M>) -> Result<Vec<M>, InvalidUpdate> {
    let mut merged = current;
    merge_messages("messages", &mut merged, update, &mut MessageIndex::default())?;
    Ok(merged)
}

/// Where each id stands in a list, kept from merge to merge so that long histories stay cheap.
#[derive(Debug, Default)]
pub(crate) struct MessageIndex {
    places: HashMap<u64, usize, std::hash::BuildHasherDefault<PassThrough>>,
    len: usize,
    last: u64,
}

/// The keys are hashes already.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PassThrough(u64);

impl std::hash::Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only u64 keys are hashed")
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

impl MessageIndex {
    /// Makes the index true for `list`; a no-op if nobody else changed the list.
    fn refresh<M: MessageLike>(&mut self, list: &[M]) {
        let last = list.last().map_or(0, hash_of);
        if self.len == list.len() && self.last == last {
            return;
        }
        self.places.clear();
        for (place, message) in list.iter().enumerate() {
            self.places.insert(hash_of(message), place);
        }
        self.note(list);
    }

    fn note<M: MessageLike>(&mut self, list: &[M]) {
        self.len = list.len();
        self.last = list.last().map_or(0, hash_of);
    }

    fn find<M: MessageLike>(&self, list: &[M], message: &M) -> Option<usize> {
        let place = *self.places.get(&hash_of(message))?;
        if list[place].id() == message.id() {
            return Some(place);
        }
        // Two ids share a hash: look at all of them.
        list.iter().rposition(|m| m.id() == message.id())
    }
}

fn hash_of<M: MessageLike>(message: &M) -> u64 {
    xxh3_64(message.id().unwrap_or_default().as_bytes())
}

/// Gives every message an id that has none.
pub(crate) fn give_ids<M: MessageLike>(messages: &mut [M]) {
    for message in messages.iter_mut().filter(|m| m.id().is_none() && !m.removes_all()) {
        message.set_id(crate::id::random_uuid());
    }
}

/// The merge itself, in place; see [`add_messages`].
pub(crate) fn merge_messages<M: MessageLike>(
    field: &str,
    list: &mut Vec<M>,
    mut update: Vec<M>,
    index: &mut MessageIndex,
) -> Result<(), InvalidUpdate> {
    give_ids(&mut update);
    if let Some(cut) = update.iter().rposition(MessageLike::removes_all) {
        *list = update.split_off(cut + 1);
        index.len = usize::MAX;
        return Ok(());
    }
    index.refresh(list);
    let mut removed: Vec<usize> = Vec::new();
    for message in update {
        match index.find(list, &message) {
            Some(place) if message.is_removal() => removed.push(place),
            Some(place) => {
                removed.retain(|r| *r != place);
                list[place] = message;
            }
            None if message.is_removal() => {
                let id = message.id().unwrap_or_default();
                return Err(InvalidUpdate::refused(field, format!("there is no message with id `{id}` to remove")));
            }
            None => {
                index.places.insert(hash_of(&message), list.len());
                list.push(message);
            }
        }
    }
    index.note(list);
    if !removed.is_empty() {
        let mut place = 0;
        list.retain(|_| {
            place += 1;
            !removed.contains(&(place - 1))
        });
        index.len = usize::MAX;
    }
    Ok(())
}

/// The simplest state of a conversation: its messages.
///
/// ```
/// use superstep::{AgentState, AgentStateUpdate, Message};
///
/// let state = AgentState { messages: vec![Message::user("hi")] };
/// let state = state.merge(AgentStateUpdate { messages: Some(vec![Message::assistant("hello")]) })?;
/// assert_eq!(state.messages.len(), 2);
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// The conversation.
    pub messages: Vec<Message>,
}

/// A partial [`AgentState`]: what is `None` stays as it is.
///
/// ```
/// assert!(superstep::AgentStateUpdate::default().messages.is_none());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentStateUpdate {
    /// Messages to merge by id.
    pub messages: Option<Vec<Message>>,
}

impl AgentState {
    /// The handle of the field `messages`.
    pub const MESSAGES: Field<AgentState, Vec<Message>> = Field::new("messages", |v| v, |w| Some(w));

    /// Merges an update, outside of any graph.
    ///
    /// # Errors
    /// If it removes a message that is not there.
    pub fn merge(self, update: AgentStateUpdate) -> Result<Self, InvalidUpdate> {
        let messages = match update.messages {
            Some(new) => add_messages(self.messages, new)?,
            None => self.messages,
        };
        Ok(Self { messages })
    }
}

/// As the state of a [`MessageGraph`](crate::MessageGraph), under a name.
impl State for AgentState {
    type Schema = ();
    type Write = Vec<Message>;

    fn fields((): &()) -> &[FieldSpec] {
        const FIELDS: &[FieldSpec] = &[FieldSpec::new("messages", FieldKind::Messages)];
        FIELDS
    }

    fn empty((): &()) -> Self {
        Self::default()
    }

    fn field_of((): &(), _: &Vec<Message>) -> Option<usize> {
        Some(0)
    }

    fn update(
        &mut self,
        (): &(),
        field: usize,
        writes: &mut dyn Iterator<Item = Put<Vec<Message>>>,
        scratch: &mut Scratch,
    ) -> Result<Change, InvalidUpdate> {
        State::update(&mut self.messages, &(), field, writes, scratch)
    }

    fn read(&self, (): &(), field: usize) -> Option<Vec<Message>> {
        self.messages.read(&(), field)
    }

    fn reset(&mut self, (): &(), field: usize) {
        self.messages.reset(&(), field);
    }

    fn prepare((): &(), write: &mut Vec<Message>) {
        <Vec<Message> as State>::prepare(&(), write);
    }

    fn messages(write: &Vec<Message>) -> Vec<Message> {
        <Vec<Message> as State>::messages(write)
    }

    fn message_ids(&self) -> Vec<String> {
        self.messages.message_ids()
    }
}

impl Persist for AgentState {
    fn encode_write((): &(), write: &Vec<Message>, out: &mut Vec<u8>) -> Result<(), CodecError> {
        <Vec<Message> as Persist>::encode_write(&(), write, out)
    }

    fn decode_write((): &(), field: usize, bytes: &[u8]) -> Result<Vec<Message>, CodecError> {
        <Vec<Message> as Persist>::decode_write(&(), field, bytes)
    }

    fn encode_field(&self, (): &(), field: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        self.messages.encode_field(&(), field, out)
    }

    fn decode_field(&mut self, (): &(), field: usize, bytes: &[u8]) -> Result<(), CodecError> {
        self.messages.decode_field(&(), field, bytes)
    }
}

impl IntoUpdate<AgentState> for AgentStateUpdate {
    fn into_update(self) -> Update<AgentState> {
        Update::from_writes(self.messages)
    }
}

/// The conversation itself is a state, of [`MessageGraph`](crate::MessageGraph): one field, shown without a name.
impl State for Vec<Message> {
    type Schema = ();
    type Write = Vec<Message>;

    fn fields((): &()) -> &[FieldSpec] {
        const FIELDS: &[FieldSpec] = &[FieldSpec::new(ROOT, FieldKind::Messages)];
        FIELDS
    }

    fn empty((): &()) -> Self {
        Vec::new()
    }

    fn field_of((): &(), _: &Vec<Message>) -> Option<usize> {
        Some(0)
    }

    fn update(
        &mut self,
        (): &(),
        _: usize,
        writes: &mut dyn Iterator<Item = Put<Vec<Message>>>,
        scratch: &mut Scratch,
    ) -> Result<Change, InvalidUpdate> {
        typed::messages(self, "messages", writes, scratch)
    }

    fn read(&self, (): &(), _: usize) -> Option<Vec<Message>> {
        Some(self.clone())
    }

    fn reset(&mut self, (): &(), _: usize) {
        self.clear();
    }

    fn prepare((): &(), write: &mut Vec<Message>) {
        give_ids(write);
    }

    fn messages(write: &Vec<Message>) -> Vec<Message> {
        write.clone()
    }

    fn message_ids(&self) -> Vec<String> {
        self.iter().filter_map(|m| m.id.clone()).collect()
    }
}

impl Persist for Vec<Message> {
    fn encode_write((): &(), write: &Vec<Message>, out: &mut Vec<u8>) -> Result<(), CodecError> {
        super::encode_into(write, out)
    }

    fn decode_write((): &(), _: usize, bytes: &[u8]) -> Result<Vec<Message>, CodecError> {
        super::decode(bytes)
    }

    fn encode_field(&self, (): &(), _: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        super::encode_into(self, out)
    }

    fn decode_field(&mut self, (): &(), _: usize, bytes: &[u8]) -> Result<(), CodecError> {
        *self = super::decode(bytes)?;
        Ok(())
    }
}

/// One new message.
impl IntoUpdate<Vec<Message>> for Message {
    fn into_update(self) -> Update<Vec<Message>> {
        Update::from_writes([vec![self]])
    }
}
