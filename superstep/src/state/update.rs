//! Updates: the partial states that nodes return, as a list of writes to fields.
//!
//! The list is sparse, so an update costs what it changes and not what the state weighs.

use smallvec::SmallVec;

use super::{Field, State};
use crate::error::InvalidUpdate;

/// One write to one field, merged or set.
///
/// ```
/// let put = superstep::Put::merge(3);
/// assert!(!put.overwrite);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put<W> {
    /// The write.
    pub write: W,
    /// Whether it replaces the value past the field's reducer.
    pub overwrite: bool,
}

impl<W> Put<W> {
    /// A write that goes through the field's rule.
    pub fn merge(write: W) -> Self {
        Self { write, overwrite: false }
    }

    /// A write that replaces the field's value.
    pub fn overwrite(write: W) -> Self {
        Self { write, overwrite: true }
    }

    /// The same put with another view of its write.
    pub fn map<V>(self, f: impl FnOnce(W) -> V) -> Put<V> {
        Put { write: f(self.write), overwrite: self.overwrite }
    }
}

/// A partial state: the writes that a node makes.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use superstep::{State, Update};
///
/// #[derive(State, Clone, Default, Serialize, Deserialize)]
/// struct Chat {
///     #[state(append)]
///     log: Vec<String>,
///     topic: Option<String>,
/// }
///
/// let update: Update<Chat> = Update::new().set(Chat::TOPIC, Some("tea".to_owned())).overwrite(Chat::LOG, vec![]);
/// assert_eq!(update.get(Chat::TOPIC), Some(&Some("tea".to_owned())));
/// ```
pub struct Update<S: State> {
    pub(crate) puts: Puts<S>,
    /// Why it cannot be one; said when it is used.
    refused: Option<Box<InvalidUpdate>>,
}

pub(crate) type Puts<S> = SmallVec<[Put<<S as State>::Write>; 1]>;

impl<S: State> Update<S> {
    /// An update that writes nothing.
    pub fn new() -> Self {
        Self::from_puts(SmallVec::new())
    }

    /// An update of raw writes.
    pub fn from_writes(writes: impl IntoIterator<Item = S::Write>) -> Self {
        Self::from_puts(writes.into_iter().map(Put::merge).collect())
    }

    pub(crate) fn from_puts(puts: Puts<S>) -> Self {
        Self { puts, refused: None }
    }

    /// Something that is no update.
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self { puts: SmallVec::new(), refused: Some(Box::new(InvalidUpdate::new("", why))) }
    }

    /// The writes, unless it was made of something that is no update.
    pub(crate) fn into_puts(self) -> Result<Puts<S>, InvalidUpdate> {
        match self.refused {
            None => Ok(self.puts),
            Some(refused) => Err(*refused),
        }
    }

    /// Adds a write that goes through the field's reducer.
    pub fn set<T>(mut self, field: Field<S, T>, value: impl Into<T>) -> Self {
        self.puts.push(Put::merge((field.write)(value.into())));
        self
    }

    /// Adds a write that replaces the field's value past its reducer.
    ///
    /// Two of them for one field in one step are an error.
    pub fn overwrite<T>(mut self, field: Field<S, T>, value: impl Into<T>) -> Self {
        self.puts.push(Put::overwrite((field.write)(value.into())));
        self
    }

    /// Adds a put as it is.
    pub fn put(mut self, put: Put<S::Write>) -> Self {
        self.puts.push(put);
        self
    }

    /// Adds all writes of another update.
    pub fn and(mut self, other: impl IntoUpdate<S>) -> Self {
        let other = other.into_update();
        self.puts.extend(other.puts);
        self.refused = self.refused.or(other.refused);
        self
    }

    /// What the update writes to a field; the last write if there are several.
    pub fn get<T>(&self, field: Field<S, T>) -> Option<&T> {
        self.puts.iter().rev().find_map(|p| (field.peek)(&p.write))
    }

    /// The writes, in order.
    pub fn puts(&self) -> &[Put<S::Write>] {
        &self.puts
    }

    /// Whether it writes nothing.
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty()
    }
}

impl<S: State> Default for Update<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: State> Clone for Update<S> {
    fn clone(&self) -> Self {
        Self { puts: self.puts.clone(), refused: self.refused.clone() }
    }
}

impl<S: State> std::fmt::Debug for Update<S>
where
    S::Write: std::fmt::Debug,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.puts).finish()
    }
}

/// What can be turned into an update of `S`: the derived `…Update` types, [`Update`] itself, the whole state.
///
/// ```
/// use superstep::{AgentState, AgentStateUpdate, IntoUpdate, Message};
///
/// let update = AgentStateUpdate { messages: Some(vec![Message::user("hi")]) }.into_update();
/// assert_eq!(update.puts().len(), 1);
/// let nothing = IntoUpdate::<AgentState>::into_update(());
/// assert!(nothing.is_empty());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an update of `{S}`",
    note = "an update is the derived `…Update` struct, `Update<{S}>`, the whole state, or `()` for no change"
)]
pub trait IntoUpdate<S: State> {
    /// Turns it into an update.
    fn into_update(self) -> Update<S>;

    /// Whether it is not even an empty update, so that a run on it goes on with what is left to do.
    #[doc(hidden)]
    fn is_nothing(&self) -> bool {
        false
    }
}

impl<S: State> IntoUpdate<S> for Update<S> {
    fn into_update(self) -> Update<S> {
        self
    }
}

impl<S: State> IntoUpdate<S> for () {
    fn into_update(self) -> Update<S> {
        Update::new()
    }
}

/// The whole state, as one write per field that has a value.
impl<S: State<Schema = ()>> IntoUpdate<S> for S {
    fn into_update(self) -> Update<S> {
        whole(&self, &())
    }
}

/// Reads all fields as writes.
pub(crate) fn whole<S: State>(state: &S, schema: &S::Schema) -> Update<S> {
    let fields = 0..S::fields(schema).len();
    Update::from_writes(fields.filter_map(|ix| state.read(schema, ix)))
}

/// A whole state as writes that replace what was there.
pub(crate) fn replacing<S: State<Schema = ()>>(state: &S) -> Puts<S> {
    let fields = S::fields(&()).iter().enumerate();
    let puts = fields.filter_map(|(ix, spec)| {
        let write = state.read(&(), ix)?;
        let merges = spec.kind.starts_available() || spec.kind == super::FieldKind::TopicAccumulate;
        Some(if merges { Put::overwrite(write) } else { Put::merge(write) })
    });
    puts.collect()
}
