//! Updates: the partial states that nodes return, as a list of writes to fields.
//!
//! The list is sparse, so an update costs what it changes and not what the state weighs.

use smallvec::SmallVec;

use super::{Difference, Field, Scratch, State};
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
    pub(crate) origin: Origin,
}

/// Where a write comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From an update.
    Update,
    /// From a whole state that was not compared yet with what the node was given: it is the field's value there.
    WholeState,
    /// It is what a node changed in a whole state. If it overwrites, nobody else may write the field in the same step.
    Change,
}

impl<W> Put<W> {
    /// A write that goes through the field's rule.
    pub fn merge(write: W) -> Self {
        Self { write, overwrite: false, origin: Origin::Update }
    }

    /// A write that replaces the field's value.
    pub fn overwrite(write: W) -> Self {
        Self { write, overwrite: true, origin: Origin::Update }
    }

    /// The value of a field in a whole state.
    fn of_whole(write: W) -> Self {
        Self { write, overwrite: false, origin: Origin::WholeState }
    }

    /// Whether it is what a node changed in a whole state.
    pub(crate) fn is_change(&self) -> bool {
        self.origin == Origin::Change
    }

    /// Whether it is the only write of its field that a step can have.
    pub(crate) fn stands_alone(&self) -> bool {
        self.is_change() && self.overwrite
    }

    /// The same put with another view of its write.
    pub fn map<V>(self, f: impl FnOnce(W) -> V) -> Put<V> {
        Put { write: f(self.write), overwrite: self.overwrite, origin: self.origin }
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
    pub fn set<T, U>(mut self, field: Field<S, T, U>, update: impl Into<U>) -> Self {
        self.puts.push(Put::merge((field.update)(update.into())));
        self
    }

    /// Adds a write that replaces the field's value past its reducer.
    ///
    /// Two of them for one field in one step are an error.
    pub fn overwrite<T, U>(mut self, field: Field<S, T, U>, value: impl Into<T>) -> Self {
        self.puts.push(Put::overwrite((field.value)(value.into())));
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
    pub fn get<T, U>(&self, field: Field<S, T, U>) -> Option<&U> {
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

    /// Whether it is not even an empty update, so that a run on it resumes what is left to do.
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

/// The whole state. As an input it writes every field that has a value; given back by a node, it counts for what the node
/// [changed](State::difference).
impl<S: State<Schema = ()>> IntoUpdate<S> for S {
    fn into_update(self) -> Update<S> {
        whole(&self, &())
    }
}

/// Reads all fields as writes.
pub(crate) fn whole<S: State>(state: &S, schema: &S::Schema) -> Update<S> {
    let fields = 0..S::fields(schema).len();
    Update::from_puts(fields.filter_map(|ix| state.read(schema, ix)).map(Put::of_whole).collect())
}

/// The puts with whole states reduced to what they change in `given`.
pub(crate) fn changes_to<S: State>(given: &S, schema: &S::Schema, puts: Puts<S>) -> Puts<S> {
    if !puts.iter().any(|put| put.origin == Origin::WholeState) {
        return puts;
    }
    let changed = puts.into_iter().filter_map(|put| {
        if put.origin != Origin::WholeState {
            return Some(put);
        }
        let (write, overwrite) = match given.difference(schema, put.write) {
            Difference::None => return None,
            Difference::Merge(write) => (write, false),
            Difference::Replace(write) => (write, true),
        };
        Some(Put { write, overwrite, origin: Origin::Change })
    });
    changed.collect()
}

/// The writes that bring a state to an update: see [`State::merge`].
pub(crate) fn merged<S: State<Schema = ()>>(mut state: S, update: Update<S>) -> Result<S, InvalidUpdate> {
    let mut puts: Vec<_> = update.into_puts()?.into_vec();
    puts.iter_mut().for_each(|put| S::prepare(&(), &mut put.write));
    let field_of = |put: &Put<S::Write>| S::field_of(&(), &put.write);
    puts.retain(|put| field_of(put).is_some());
    puts.sort_by_key(field_of);
    let mut rest = puts.into_iter().peekable();
    while let Some(field) = rest.peek().and_then(field_of) {
        let mut writes = std::iter::from_fn(|| rest.next_if(|put| field_of(put) == Some(field)));
        state.update(&(), field, &mut writes, &mut Scratch::default())?;
        writes.for_each(drop);
    }
    Ok(state)
}
