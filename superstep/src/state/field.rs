//! Handles to the fields of a typed state.

use std::fmt;

use super::State;

/// A field of `S` with values of type `T`; `#[derive(State)]` makes one constant per field.
///
/// ```
/// use superstep::{AgentState, Message, Update};
///
/// let update = Update::new().set(AgentState::MESSAGES, vec![Message::user("hi")]);
/// assert_eq!(update.get(AgentState::MESSAGES).map(Vec::len), Some(1));
/// assert_eq!(AgentState::MESSAGES.name(), "messages");
/// ```
pub struct Field<S: State, T> {
    pub(crate) name: &'static str,
    pub(crate) write: fn(T) -> S::Write,
    pub(crate) peek: fn(&S::Write) -> Option<&T>,
}

impl<S: State, T> Field<S, T> {
    /// A handle made by hand: how to write the field, and how to read it out of a write.
    pub const fn new(name: &'static str, write: fn(T) -> S::Write, peek: fn(&S::Write) -> Option<&T>) -> Self {
        Self { name, write, peek }
    }

    /// The field's name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl<S: State, T> Clone for Field<S, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: State, T> Copy for Field<S, T> {}

impl<S: State, T> fmt::Debug for Field<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field({})", self.name)
    }
}

impl<S: State, T> From<Field<S, T>> for String {
    fn from(field: Field<S, T>) -> Self {
        field.name.to_owned()
    }
}
