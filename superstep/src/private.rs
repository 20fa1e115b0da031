//! What derived code calls. Not part of the public API: it changes without notice.

use std::any::{Any, TypeId};

pub use serde_json::Value as Json;

pub use crate::error::BoxError;
pub use crate::error::CodecError;
pub use crate::error::InvalidUpdate;
pub use crate::message::{Message, MessageLike};
pub use crate::node::{FromContext, FromInput, IntoOutcome, OutcomeResult, update_outcome};
pub use crate::state::{
    Change, Codec, Conversation, ConversationField, Describer, Difference, Field, FieldKind, FieldSpec, IntoItems,
    IntoUpdate, Persist, Put, Scratch, State, Storable, Update, Written,
};

pub use crate::state::written::{decode_written, encode_written, written_json};

pub use crate::__schema as schema;
#[cfg(feature = "schema")]
pub use crate::schema::{Describe, Described, StateSchema};

pub use crate::state::{probe, schema_probe};

/// The merge rules.
pub mod typed {
    pub use crate::state::rules::*;
}

/// What a node changed, by the merge rules.
pub mod difference {
    pub use crate::state::difference::*;
}

/// A type whose values can be shown. Implemented for everything that is `Debug`; the lifetime defers the check.
#[diagnostic::on_unimplemented(
    message = "an update that holds `{Self}` cannot be shown",
    label = "not `Debug`",
    note = "derive `Debug` for it"
)]
pub trait Shown<'checked> {
    /// The value as what can be shown.
    fn shown(&self) -> &dyn std::fmt::Debug;
}

#[diagnostic::do_not_recommend]
impl<T: std::fmt::Debug> Shown<'_> for T {
    fn shown(&self) -> &dyn std::fmt::Debug {
        self
    }
}

/// What is written, as what can be shown.
pub fn shown_written<'c, T: Shown<'c>, U: Shown<'c>>(written: &Written<T, U>) -> &dyn std::fmt::Debug {
    match written {
        Written::Update(update) => update.shown(),
        Written::Value(value) => value.shown(),
    }
}

/// A type that can be the error of a node. Implemented for everything that can become a [`BoxError`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a node",
    label = "not an error that can be sent",
    note = "an error of a node is `Send + Sync`, as it may be told in another thread: return `superstep::BoxError`, or an error type of your own"
)]
pub trait NodeFailure {}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> NodeFailure for E {}

/// Takes the future of a node, which must be `Send`: tasks are run on every thread.
pub fn is_sent<F: Future + Send + 'static>(_: F) {}

/// Gives every message an id that has none.
pub fn give_ids<M: MessageLike>(messages: &mut [M]) {
    crate::message::give_ids(messages);
}

/// The writes of one field, out of the writes of a state.
pub fn writes_to<'a, W, T>(
    writes: &'a mut dyn Iterator<Item = Put<W>>,
    pick: fn(W) -> Option<T>,
) -> impl Iterator<Item = Put<T>> + 'a
where
    W: 'a,
    T: 'a,
{
    writes.map(move |put| put.map(|write| pick(write).expect("the engine sends a field its own writes")))
}

/// Adds a write to an update, if there is a value to write.
///
/// It takes the value out of its place: moving hundreds of fields out of a struct one by one is slow to compile.
pub fn push<S: State, T>(update: &mut Update<S>, value: &mut Option<T>, write: fn(T) -> S::Write) {
    if let Some(value) = value.take() {
        update.puts.push(Put::merge(write(value)));
    }
}

/// Adds items to what an update already gives to a field.
pub fn add_items<T: IntoItems>(slot: &mut Option<T>, items: T) {
    match slot {
        Some(current) => current.append_items(items),
        None => *slot = Some(items),
    }
}

/// The messages in a value, if it is a list of [`Message`] and not of another type that merges by id.
pub fn messages_of<T: Any>(value: &T) -> &[Message] {
    (value as &dyn Any).downcast_ref::<Vec<Message>>().map_or(&[], Vec::as_slice)
}

/// A message as a value of a field, if the field is a list of [`Message`] and not of another type that merges by id.
pub fn list_of<T: Any>(message: Message) -> Option<T> {
    let mut list = Some(vec![message]);
    (&mut list as &mut dyn Any).downcast_mut::<Option<T>>()?.take()
}

/// Adds the ids of the messages in a value.
pub fn collect_ids<T: Any>(value: &T, ids: &mut Vec<String>) {
    ids.extend(messages_of(value).iter().filter_map(|message| message.id.clone()));
}

/// Encodes a field's value. Who asks for it names the field in its error.
pub fn encode_value<'c, T: Storable<'c>>(value: &T, out: &mut Vec<u8>) -> Result<(), CodecError> {
    value.encode_into(out)
}

/// A field's value as JSON. Who asks for it names the field in its error.
pub fn json_value<'c, T: Storable<'c>>(value: &T) -> Result<Option<Json>, CodecError> {
    value.to_json().map(Some)
}

/// A field's value out of JSON. Who asks for it names the field in its error.
pub fn from_json<'c, T: Storable<'c> + Any>(value: &Json) -> Result<T, CodecError> {
    let is_messages = TypeId::of::<T>() == TypeId::of::<Vec<Message>>();
    if !is_messages {
        return T::from_json(value);
    }
    let mut messages = Some(crate::message::messages_from_json(value)?);
    let messages = (&mut messages as &mut dyn Any).downcast_mut::<Option<T>>().and_then(Option::take);
    Ok(messages.expect("the type was just asked for"))
}

/// A write out of JSON to a field whose reducer takes another type: what it merges, or a value that overwrites.
pub fn written_from_json<'c, T: Storable<'c> + Any, U: Storable<'c> + Any>(
    value: &Json,
    overwrite: bool,
) -> Result<Written<T, U>, CodecError> {
    if overwrite { from_json(value).map(Written::Value) } else { from_json(value).map(Written::Update) }
}

/// The answer to JSON for a field that is never saved.
pub fn takes_no_json<T>() -> Result<T, CodecError> {
    Err(CodecError::new("it is never saved, and takes no JSON"))
}

/// Decodes a field's value. Who asks for it names the field in its error.
pub fn decode_value<'c, T: Storable<'c>>(bytes: &[u8]) -> Result<T, CodecError> {
    T::decode_from(bytes)
}

/// The answer to an update of a field number that the state does not have.
pub fn no_such_field<T>(field: usize) -> Result<T, InvalidUpdate> {
    Err(InvalidUpdate::new(field.to_string(), "the state has no field of this number"))
}

/// The answer to saved bytes for a field number that the state does not have.
pub fn no_such_saved_field<T>(field: usize) -> Result<T, CodecError> {
    Err(CodecError::new(format!("the state has no field number {field}")))
}
