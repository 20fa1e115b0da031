//! Conversations as states: by themselves, and under a name.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{difference, rules};
use crate::error::{CodecError, InvalidUpdate};
use crate::message::{Message, add_messages, give_ids, messages_from_json};
use crate::names::ROOT;
#[cfg(feature = "schema")]
use crate::state::Describer;
use crate::state::{
    Change, Codec, Difference, Field, FieldKind, FieldSpec, IntoUpdate, Persist, Put, Scratch, State, Update,
};

/// A state that holds a conversation, which agents and tools read and add to.
///
/// `#[derive(State)]` writes it for states with one field `#[state(messages)]` of type `Vec<Message>`.
///
/// ```
/// use superstep::{Conversation, Message, State};
/// # use serde::{Deserialize, Serialize};
///
/// #[derive(State, Clone, Default, Serialize, Deserialize)]
/// struct Support {
///     #[state(messages)]
///     messages: Vec<Message>,
///     customer: Option<String>,
/// }
///
/// let state = Support { messages: vec![Message::user("help")], customer: None };
/// assert_eq!(state.conversation()[0].text(), "help");
/// assert_eq!(Support::say(vec![Message::assistant("gladly")]).get(Support::MESSAGES).map(Vec::len), Some(1));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no conversation",
    note = "give it one field `#[state(messages)] messages: Vec<superstep::Message>`, or implement `Conversation` by hand if it has several"
)]
pub trait Conversation: State<Schema = ()> {
    /// The messages so far.
    fn conversation(&self) -> &[Message];

    /// An update that merges messages into the conversation.
    fn say(messages: Vec<Message>) -> Update<Self>;
}

impl Conversation for AgentState {
    fn conversation(&self) -> &[Message] {
        &self.messages
    }

    fn say(messages: Vec<Message>) -> Update<Self> {
        Update::from_writes([messages])
    }
}

impl Conversation for Vec<Message> {
    fn conversation(&self) -> &[Message] {
        self
    }

    fn say(messages: Vec<Message>) -> Update<Self> {
        Update::from_writes([messages])
    }
}

/// The type of a field that is a conversation; the lifetime defers the check.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no conversation",
    note = "agents need a field `#[state(messages)]` of type `Vec<superstep::Message>`"
)]
pub trait ConversationField<'checked>: Sized {
    /// The messages in it.
    fn messages(&self) -> &[Message];
    /// As what is written to it.
    fn from_messages(messages: Vec<Message>) -> Self;
}

impl ConversationField<'_> for Vec<Message> {
    fn messages(&self) -> &[Message] {
        self
    }
    fn from_messages(messages: Vec<Message>) -> Self {
        messages
    }
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

    fn codec() -> Option<&'static Codec<Self>> {
        Some(Codec::of())
    }

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

    fn difference(&self, (): &(), write: Vec<Message>) -> Difference<Vec<Message>> {
        self.messages.difference(&(), write)
    }

    fn prepare((): &(), write: &mut Vec<Message>) {
        <Vec<Message> as State>::prepare(&(), write);
    }

    fn messages(write: &Vec<Message>) -> Vec<Message> {
        <Vec<Message> as State>::messages(write)
    }

    #[cfg(feature = "schema")]
    fn describe((): &(), _: usize, _: bool, describer: &mut Describer) -> Value {
        describer.of::<Vec<serde_json::Map<String, Value>>>()
    }

    fn message_write((): &(), _: usize, message: Message) -> Option<Vec<Message>> {
        Some(vec![message])
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

    fn write_from_json((): &(), _: usize, value: &Value, _: bool) -> Result<Vec<Message>, CodecError> {
        messages_from_json(value)
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

    fn codec() -> Option<&'static Codec<Self>> {
        Some(Codec::of())
    }

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
        rules::messages(self, "messages", writes, scratch)
    }

    fn read(&self, (): &(), _: usize) -> Option<Vec<Message>> {
        Some(self.clone())
    }

    fn reset(&mut self, (): &(), _: usize) {
        self.clear();
    }

    fn difference(&self, (): &(), write: Vec<Message>) -> Difference<Vec<Message>> {
        difference::messages(self, write, Message::eq)
    }

    fn prepare((): &(), write: &mut Vec<Message>) {
        give_ids(write);
    }

    fn messages(write: &Vec<Message>) -> Vec<Message> {
        write.clone()
    }

    #[cfg(feature = "schema")]
    fn describe((): &(), _: usize, _: bool, describer: &mut Describer) -> Value {
        describer.of::<Vec<serde_json::Map<String, Value>>>()
    }

    fn message_write((): &(), _: usize, message: Message) -> Option<Vec<Message>> {
        Some(vec![message])
    }

    fn message_ids(&self) -> Vec<String> {
        self.iter().filter_map(|m| m.id.clone()).collect()
    }
}

impl Persist for Vec<Message> {
    fn encode_write((): &(), write: &Vec<Message>, out: &mut Vec<u8>) -> Result<(), CodecError> {
        crate::value::encode_into(write, out)
    }

    fn decode_write((): &(), _: usize, bytes: &[u8]) -> Result<Vec<Message>, CodecError> {
        crate::value::decode(bytes)
    }

    fn write_from_json((): &(), _: usize, value: &Value, _: bool) -> Result<Vec<Message>, CodecError> {
        messages_from_json(value)
    }

    fn encode_field(&self, (): &(), _: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        crate::value::encode_into(self, out)
    }

    fn decode_field(&mut self, (): &(), _: usize, bytes: &[u8]) -> Result<(), CodecError> {
        *self = crate::value::decode(bytes)?;
        Ok(())
    }
}

/// One new message.
impl IntoUpdate<Vec<Message>> for Message {
    fn into_update(self) -> Update<Vec<Message>> {
        Update::from_writes([vec![self]])
    }
}
