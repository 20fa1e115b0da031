//! State: a bundle of fields, each a channel with its own rule for merging writes.
//!
//! A [`State`] keeps the values; the engine keeps versions and decides when a rule applies.
//! Writes of one step reach a field together, in task order, so the result never depends
//! on which task finished first.

mod codec;
mod conversation;
mod describe;
pub(crate) mod difference;
pub(crate) mod erased;
mod field;
mod input;
mod reducer;
pub(crate) mod rules;
mod update;
pub(crate) mod written;

use std::borrow::Cow;

use crate::error::{CodecError, InvalidUpdate};
use crate::message::Message;
use crate::names::ROOT;
use crate::value::{Payload, decode, decode_json, encode, encode_into, json_of};

pub use codec::Codec;
pub(crate) use codec::Unsaved;
pub use codec::probe;
pub use conversation::{AgentState, AgentStateUpdate, Conversation, ConversationField};
pub use describe::{Describer, probe as schema_probe};
pub use field::Field;
pub(crate) use input::{Given, TaskInput};
pub use reducer::{AddMessages, Append, IntoItems, MaxReducer, Reducer, ReducerFn, Replace, Sum};
pub(crate) use rules::{ONE_OVERWRITE, ONE_PER_STEP};
pub use update::{IntoUpdate, Put, Update};
pub(crate) use update::{Origin, changes_to, merged};
pub use written::Written;

/// The state of a graph: what its nodes read and write.
///
/// `#[derive(State)]` writes this for a struct. Written by hand it is the same contract:
/// fields are numbered, a [`Write`](State::Write) knows its field, and `update` merges all
/// writes of one step into one field.
///
/// # Example: a state written by hand
///
/// ```
/// use superstep::{Change, FieldKind, FieldSpec, InvalidUpdate, Put, Scratch, State, StateGraph, Update, IntoUpdate, START};
///
/// #[derive(Clone, Default)]
/// struct Total(i64);
///
/// impl State for Total {
///     type Schema = ();
///     type Write = i64;
///
///     fn fields(_: &()) -> &[FieldSpec] {
///         const FIELDS: &[FieldSpec] = &[FieldSpec::new("total", FieldKind::Reducer)];
///         FIELDS
///     }
///     fn empty(_: &()) -> Self { Total(0) }
///     fn field_of(_: &(), _: &i64) -> Option<usize> { Some(0) }
///     fn update(&mut self, _: &(), _: usize, writes: &mut dyn Iterator<Item = Put<i64>>, _: &mut Scratch) -> Result<Change, InvalidUpdate> {
///         for put in writes { self.0 += put.write; }
///         Ok(Change::Set)
///     }
///     fn read(&self, _: &(), _: usize) -> Option<i64> { Some(self.0) }
///     fn reset(&mut self, _: &(), _: usize) { self.0 = 0; }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<Total>::new()
///     .add_node("add", async |_: Total| Update::<Total>::from_writes([2]))
///     .add_edge(START, "add")
///     .compile()?;
/// assert_eq!(app.invoke(Update::from_writes([40])).await?.state.0, 42);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the state of a graph",
    label = "not a state",
    note = "derive it for a struct with named fields: `#[derive(State, Clone, Default, Serialize, Deserialize)]`"
)]
pub trait State: Clone + Send + Sync + 'static {
    /// What is known of the fields only at run time: `()` for typed states.
    type Schema: Send + Sync + 'static;
    /// A write to one field.
    type Write: Clone + Send + Sync + 'static;

    /// The fields, in order; their place is their number.
    fn fields(schema: &Self::Schema) -> &[FieldSpec];

    /// The version of what is saved of it; to be raised when a change of its fields needs a
    /// [migration](crate::StateGraph::migrate).
    fn version(_schema: &Self::Schema) -> u32 {
        1
    }

    /// The state before anything was written.
    fn empty(schema: &Self::Schema) -> Self;

    /// The number of the field that a write is for; `None` if there is no such field.
    fn field_of(schema: &Self::Schema, write: &Self::Write) -> Option<usize>;

    /// The name that a write gives its field, if it names it; for messages about fields that do not exist.
    #[doc(hidden)]
    fn name_of(_: &Self::Write) -> Option<&str> {
        None
    }

    /// Merges all writes of one step into a field, in order.
    ///
    /// # Errors
    /// If the field's rule refuses them, for instance two writers of a last-value field.
    fn update(
        &mut self,
        schema: &Self::Schema,
        field: usize,
        writes: &mut dyn Iterator<Item = Put<Self::Write>>,
        scratch: &mut Scratch,
    ) -> Result<Change, InvalidUpdate>;

    /// Reads a field as the write that would give it its value.
    fn read(&self, schema: &Self::Schema, field: usize) -> Option<Self::Write>;

    /// Puts a field back to what it is in [`empty`](State::empty).
    fn reset(&mut self, schema: &Self::Schema, field: usize);

    /// Tells a field that its readers have run.
    fn consume(&mut self, _schema: &Self::Schema, _field: usize) -> Change {
        Change::None
    }

    /// Tells a field that nothing else is left to run.
    fn finish(&mut self, _schema: &Self::Schema, _field: usize) -> Change {
        Change::None
    }

    /// What a node changed that was given this state and gave back another: `write` is the value of one field there.
    ///
    /// Derived states compare it with their own, by `PartialEq` or by the identity of an `Arc`, and answer through the field's
    /// rule: a list that grew gives its tail, a sum what was added to it, messages those that are new, changed or removed.
    /// A value that cannot be compared counts as changed. States written by hand answer here for themselves; unless they do,
    /// every field that they give back counts as changed.
    fn difference(&self, schema: &Self::Schema, write: Self::Write) -> Difference<Self::Write> {
        let kind = Self::field_of(schema, &write).map(|field| Self::fields(schema)[field].kind);
        match kind {
            Some(kind) if kind.starts_available() || kind == FieldKind::TopicAccumulate => Difference::Replace(write),
            _ => Difference::Merge(write),
        }
    }

    /// Merges an update through the rules of the fields, outside of any graph.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use superstep::State;
    ///
    /// #[derive(State, Clone, Default, Serialize, Deserialize)]
    /// struct Chat { #[state(append)] log: Vec<String>, topic: String }
    ///
    /// let chat = Chat { log: vec!["one".into()], topic: "tea".into() };
    /// let chat = chat.merge(Chat::update().log(["two"]))?;
    /// assert_eq!(chat.log, ["one", "two"]);
    /// assert_eq!(chat.topic, "tea");
    /// # Ok::<(), superstep::InvalidUpdate>(())
    /// ```
    ///
    /// # Errors
    /// If a field's rule refuses what is written to it.
    fn merge(self, update: impl IntoUpdate<Self>) -> Result<Self, InvalidUpdate>
    where
        Self: State<Schema = ()>,
    {
        update::merged(self, update.into_update())
    }

    /// How it is saved and shown as JSON, if it can be. Derived states whose fields serde can write and read answer by
    /// themselves; one that is written by hand and implements [`Persist`] says `Some(Codec::of())`.
    ///
    /// A graph that is given a checkpointer when it is built does without it. It is asked for what is shown of graphs that
    /// save nothing, and for graphs that are given a checkpointer later.
    fn codec() -> Option<&'static Codec<Self>> {
        None
    }

    /// What a field holds as JSON, as a JSON schema, or what it takes, if its reducer takes another type: `true` if nobody
    /// knows. Derived states know it of the fields whose types
    /// implement schemars' `JsonSchema`, if superstep is built with its feature `schema`.
    #[doc(hidden)]
    fn describe(_schema: &Self::Schema, _field: usize, _takes: bool, _describer: &mut Describer) -> serde_json::Value {
        serde_json::Value::Bool(true)
    }

    /// The write that adds one chat message to a field; `None` if the field holds none of this type.
    fn message_write(_schema: &Self::Schema, _field: usize, _message: Message) -> Option<Self::Write> {
        None
    }

    /// Completes a write before it is saved, shown or applied: messages get their ids here.
    fn prepare(_schema: &Self::Schema, _write: &mut Self::Write) {}

    /// The chat messages that a write carries, for the `messages` stream.
    fn messages(_write: &Self::Write) -> Vec<Message> {
        Vec::new()
    }

    /// The same messages as JSON, in the same order, if they hold more than a [`Message`] can: a name, content in parts.
    fn whole_messages(_write: &Self::Write) -> Vec<serde_json::Value> {
        Vec::new()
    }

    /// The ids of the messages that the state holds, for the `messages` stream.
    fn message_ids(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A state that can be saved and shown as JSON: its fields can be turned into bytes and back.
///
/// `#[derive(State)]` implements it if every field but the untracked ones implements
/// serde's `Serialize` and `DeserializeOwned`.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use superstep::{Persist, State};
///
/// #[derive(State, Clone, Default, Serialize, Deserialize)]
/// struct Chat { topic: Option<String> }
///
/// let mut bytes = Vec::new();
/// Chat { topic: Some("tea".into()) }.encode_field(&(), 0, &mut bytes)?;
/// let mut read = Chat::default();
/// read.decode_field(&(), 0, &bytes)?;
/// assert_eq!(read.topic.as_deref(), Some("tea"));
/// # Ok::<(), superstep::CodecError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be saved in a checkpoint or shown as JSON",
    note = "derive `State` on it and make every field `Serialize + DeserializeOwned`, or mark the field `#[state(untracked)]`"
)]
pub trait Persist: State {
    /// Encodes the value of a write.
    fn encode_write(schema: &Self::Schema, write: &Self::Write, out: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Decodes a write to `field`.
    fn decode_write(schema: &Self::Schema, field: usize, bytes: &[u8]) -> Result<Self::Write, CodecError>;

    /// Encodes the whole value of a field.
    fn encode_field(&self, schema: &Self::Schema, field: usize, out: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Sets a field from what [`encode_field`](Persist::encode_field) gave.
    fn decode_field(&mut self, schema: &Self::Schema, field: usize, bytes: &[u8]) -> Result<(), CodecError>;

    /// An update from what was sent to a graph over this state: something with some of its fields.
    #[doc(hidden)]
    fn from_payload(schema: &Self::Schema, payload: &Payload) -> Result<Update<Self>, CodecError> {
        let bytes = payload.encoded()?;
        let fields = Self::fields(schema);
        if matches!(fields, [only] if only.name() == ROOT) {
            return Ok(Update::from_writes([Self::decode_write(schema, 0, &bytes)?]));
        }
        let sent: std::collections::BTreeMap<String, serde_json::Value> = decode(&bytes)?;
        let mut writes = Vec::new();
        for (field, spec) in fields.iter().enumerate() {
            if let Some(value) = sent.get(spec.name()) {
                let write = Self::decode_write(schema, field, &encode(value)?);
                writes.push(write.map_err(|e| CodecError::new(format!("field `{}`: {e}", spec.name())))?);
            }
        }
        if writes.is_empty() {
            return Err(CodecError::new("it has no field of the graph's state"));
        }
        Ok(Update::from_writes(writes))
    }

    /// A write as JSON, for people and other programs to read; `None` if it is never saved and so has no such form.
    fn write_to_json(schema: &Self::Schema, write: &Self::Write) -> Result<Option<serde_json::Value>, CodecError> {
        let mut bytes = Vec::new();
        Self::encode_write(schema, write, &mut bytes)?;
        // What is never saved has no bytes.
        if bytes.is_empty() { Ok(None) } else { decode_json(&bytes).map(Some) }
    }

    /// A write to a field out of JSON, as other programs give it; `overwrite` says that it will overwrite what is there.
    fn write_from_json(
        schema: &Self::Schema,
        field: usize,
        value: &serde_json::Value,
        _overwrite: bool,
    ) -> Result<Self::Write, CodecError> {
        Self::decode_write(schema, field, &encode(value)?)
    }
}

/// What a field is called and how it merges.
///
/// ```
/// use superstep::{FieldKind, FieldSpec};
/// assert_eq!(FieldSpec::new("log", FieldKind::Append).name(), "log");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSpec {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: FieldKind,
    internal: bool,
}

impl FieldSpec {
    /// A field with a name known at compile time.
    pub const fn new(name: &'static str, kind: FieldKind) -> Self {
        Self { name: Cow::Borrowed(name), kind, internal: false }
    }

    /// A field with a name made at run time.
    pub fn named(name: String, kind: FieldKind) -> Self {
        Self { name: Cow::Owned(name), kind, internal: false }
    }

    /// The same field, kept to the graph's nodes: it is saved with the thread, but no input writes it, and no output, event,
    /// snapshot or schema shows it.
    ///
    /// ```
    /// use superstep::{FieldKind, FieldSpec};
    /// assert!(FieldSpec::new("calls", FieldKind::Reducer).internal().is_internal());
    /// ```
    pub const fn internal(mut self) -> Self {
        self.internal = true;
        self
    }

    /// Whether it is kept to the graph's nodes.
    pub fn is_internal(&self) -> bool {
        self.internal
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The merge rule.
    pub fn kind(&self) -> FieldKind {
        self.kind
    }
}

/// How a field merges its writes and how long it keeps them.
///
/// ```
/// use superstep::FieldKind;
/// assert_ne!(FieldKind::LastValue, FieldKind::AnyValue);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldKind {
    /// Keeps the last value; two writers in one step are an error.
    LastValue,
    /// Keeps the last of a step's values; empty again after a step without a write.
    AnyValue,
    /// Keeps a value for one step only.
    Ephemeral,
    /// Lives in the run, never in a checkpoint.
    Untracked,
    /// Collects a step's values; empty again after a step without a write.
    Topic,
    /// Collects values for good.
    TopicAccumulate,
    /// Merges through a reducer that needs the whole value.
    Reducer,
    /// Merges through a reducer whose writes can be replayed: saved as its tail only.
    Append,
    /// Like [`Append`](FieldKind::Append), but empty from the start instead of absent.
    Delta,
    /// Chat messages, merged by id: saved as its tail only.
    Messages,
    /// Whether this is the last step that the recursion limit allows; computed, never written.
    IsLastStep,
    /// How many steps the recursion limit leaves; computed, never written.
    RemainingSteps,
    /// A reducer without an initial value: the first write is the value.
    ReducerWithoutInitial,
    /// A rule of the state's own, asked at every end of a step, by [`State::consume`] and by [`State::finish`].
    Custom,
}

impl FieldKind {
    /// Whether the value is computed by the engine.
    pub(crate) fn is_managed(self) -> bool {
        matches!(self, FieldKind::IsLastStep | FieldKind::RemainingSteps)
    }

    /// Whether a step without a write empties the field.
    pub(crate) fn is_transient(self) -> bool {
        matches!(self, FieldKind::AnyValue | FieldKind::Ephemeral | FieldKind::Topic)
    }

    /// Whether a checkpoint may hold just the writes since the last whole value.
    pub(crate) fn is_incremental(self) -> bool {
        matches!(self, FieldKind::Append | FieldKind::Delta | FieldKind::Messages)
    }

    /// Whether the field has a value before anything was written.
    pub(crate) fn starts_available(self) -> bool {
        matches!(self, FieldKind::Reducer | FieldKind::Append | FieldKind::Delta | FieldKind::Messages)
    }
}

/// What a node changed in a field of a state that it gave back as a whole; see [`State::difference`].
///
/// ```
/// use superstep::Difference;
/// assert_ne!(Difference::Merge(1), Difference::Replace(1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference<W> {
    /// Nothing.
    None,
    /// What this write does when it goes through the field's rule.
    Merge(W),
    /// The value became this one, in a way that no write through the rule could have brought about. If anybody else writes
    /// the field in the same step, that is an error.
    Replace(W),
}

impl<W> Difference<W> {
    /// The same with another view of the write.
    pub fn map<V>(self, f: impl FnOnce(W) -> V) -> Difference<V> {
        match self {
            Difference::None => Difference::None,
            Difference::Merge(write) => Difference::Merge(f(write)),
            Difference::Replace(write) => Difference::Replace(f(write)),
        }
    }
}

/// What an update did to a field.
///
/// ```
/// use superstep::Change;
/// assert!(Change::Set.happened() && !Change::None.happened());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing changed.
    None,
    /// It has a new value.
    Set,
    /// It has no value any more.
    Cleared,
}

impl Change {
    /// Whether anything changed.
    pub fn happened(self) -> bool {
        self != Change::None
    }
}

/// Working memory that the engine keeps beside a field from step to step.
///
/// Reducers use it to stay fast on long values; it can be dropped at any time.
///
/// ```
/// let mut scratch = superstep::Scratch::default();
/// *scratch.get::<usize>() += 1;
/// assert_eq!(*scratch.get::<usize>(), 1);
/// ```
#[derive(Default)]
pub struct Scratch(Option<Box<dyn std::any::Any + Send + Sync>>);

impl Scratch {
    /// The memory as a `T`, made anew if it held something else.
    pub fn get<T: Default + Send + Sync + 'static>(&mut self) -> &mut T {
        if !self.0.as_ref().is_some_and(|b| b.is::<T>()) {
            self.0 = Some(Box::new(T::default()));
        }
        self.0.as_mut().and_then(|b| b.downcast_mut()).expect("the line above put a T there")
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scratch")
    }
}

/// A type whose values can be saved. Implemented for everything that serde can write and read back.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be saved in a checkpoint",
    label = "not `Serialize + DeserializeOwned`",
    note = "derive serde's `Serialize` and `Deserialize`, or mark the field `#[state(untracked)]` to keep it out of checkpoints"
)]
#[doc(hidden)]
pub trait Storable<'checked>: Sized {
    fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), CodecError>;
    fn decode_from(bytes: &[u8]) -> Result<Self, CodecError>;
    fn to_json(&self) -> Result<serde_json::Value, CodecError>;
    fn from_json(value: &serde_json::Value) -> Result<Self, CodecError>;
}

#[diagnostic::do_not_recommend]
impl<T: serde::Serialize + serde::de::DeserializeOwned + std::marker::Send> Storable<'_> for T {
    fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        encode_into(self, out)
    }

    fn decode_from(bytes: &[u8]) -> Result<Self, CodecError> {
        decode(bytes)
    }

    fn to_json(&self) -> Result<serde_json::Value, CodecError> {
        json_of(self)
    }

    fn from_json(value: &serde_json::Value) -> Result<Self, CodecError> {
        T::deserialize(value).map_err(|why| CodecError::new(why.to_string()))
    }
}
