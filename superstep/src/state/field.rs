//! Handles to the fields of a typed state.

use std::fmt;

use super::State;

/// A field of `S` with values of type `T`, to which updates of type `U` are written; `#[derive(State)]` makes one constant per
/// field.
///
/// ```
/// use superstep::{AgentState, Message, Update};
///
/// let update = Update::new().set(AgentState::MESSAGES, vec![Message::user("hi")]);
/// assert_eq!(update.get(AgentState::MESSAGES).map(Vec::len), Some(1));
/// assert_eq!(AgentState::MESSAGES.name(), "messages");
/// ```
pub struct Field<S: State, T, U = T> {
    pub(crate) name: &'static str,
    pub(crate) update: fn(U) -> S::Write,
    pub(crate) value: fn(T) -> S::Write,
    pub(crate) peek: fn(&S::Write) -> Option<&U>,
}

impl<S: State, T> Field<S, T> {
    /// A handle made by hand: how to write the field, and how to read it out of a write.
    pub const fn new(name: &'static str, write: fn(T) -> S::Write, peek: fn(&S::Write) -> Option<&T>) -> Self {
        Self { name, update: write, value: write, peek }
    }
}

impl<S: State, T, U> Field<S, T, U> {
    /// A handle made by hand of a field whose reducer takes updates of another type: how to write an update and a value, and
    /// how to read an update out of a write.
    pub const fn reduced(
        name: &'static str,
        update: fn(U) -> S::Write,
        value: fn(T) -> S::Write,
        peek: fn(&S::Write) -> Option<&U>,
    ) -> Self {
        Self { name, update, value, peek }
    }

    /// The field's name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl<S: State, T, U> Clone for Field<S, T, U> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: State, T, U> Copy for Field<S, T, U> {}

impl<S: State, T, U> fmt::Debug for Field<S, T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field({})", self.name)
    }
}

impl<S: State, T, U> From<Field<S, T, U>> for String {
    fn from(field: Field<S, T, U>) -> Self {
        field.name.to_owned()
    }
}
