//! Reducers: how a field merges a write into what it has.

use crate::message::{Message, MessageLike, add_messages};

/// Merges an update into the current value of a field.
///
/// Any `fn(&mut T, T)` is used with `#[state(reduce = f)]` as it is; a type that
/// implements this trait is used with `#[state(reducer = Type)]`.
///
/// ```
/// use superstep::{Append, Reducer};
/// assert_eq!(Append.merge(vec![1], vec![2]), vec![1, 2]);
/// ```
///
/// # Example: a reducer that adds to long values
///
/// What a field holds is saved whole whenever it changed, unless its reducer says that it is incremental: then a step saves
/// what was written, as it does for `#[state(append)]`, and the value is merged again out of that when it is read.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use superstep::{Reducer, State};
///
/// /// Notes in the order in which they came, each once.
/// struct Once;
/// impl Reducer<Vec<String>> for Once {
///     const INCREMENTAL: bool = true;
///     fn merge(&self, mut current: Vec<String>, update: Vec<String>) -> Vec<String> {
///         for note in update {
///             if !current.contains(&note) { current.push(note); }
///         }
///         current
///     }
/// }
///
/// #[derive(State, Clone, Default, Serialize, Deserialize)]
/// struct Notes { #[state(reducer = Once)] notes: Vec<String> }
/// ```
///
/// # Example: updates of another type
///
/// An update need not be a value of the field: a set of tasks is told which of them were done. What the nodes write, what is
/// saved of it and what JSON gives is then the update; only an overwrite and a whole state have the value itself.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use superstep::{Reducer, State};
///
/// #[derive(Clone, Serialize, Deserialize)]
/// enum Change { Add(String), Done(String) }
///
/// struct Apply;
/// impl Reducer<Vec<String>, Change> for Apply {
///     fn merge(&self, mut open: Vec<String>, change: Change) -> Vec<String> {
///         match change {
///             Change::Add(task) => open.push(task),
///             Change::Done(task) => open.retain(|one| *one != task),
///         }
///         open
///     }
/// }
///
/// #[derive(State, Clone, Default, Serialize, Deserialize)]
/// struct Plan { #[state(reducer = Apply, update = Change)] open: Vec<String> }
///
/// let plan = Plan { open: vec!["shop".into()] };
/// let plan = plan.merge(Plan::update().open(Change::Add("cook".into())))?;
/// let plan = plan.merge(Plan::update().open(Change::Done("shop".into())))?;
/// assert_eq!(plan.open, ["cook"]);
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
pub trait Reducer<T, U = T>: Send + Sync + 'static {
    /// Whether a value may be saved as the updates that were merged into it.
    ///
    /// Merging the same updates again, in the same order, into the same value must then always give the same: the reducer
    /// depends on nothing but its arguments. It pays for reducers that add to what is there; of those that keep little of
    /// what was written, the value is saved whole from time to time.
    const INCREMENTAL: bool = false;

    /// The value after `update` was merged into `current`.
    fn merge(&self, current: T, update: U) -> T;
}

/// A function as a reducer; also as a static.
///
/// ```
/// use superstep::{Reducer, ReducerFn};
///
/// static LONGER: ReducerFn<fn(String, String) -> String> =
///     ReducerFn(|a, b| if b.len() > a.len() { b } else { a });
/// assert_eq!(LONGER.merge("tea".into(), "coffee".into()), "coffee");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ReducerFn<F>(pub F);

impl<T, U, F> Reducer<T, U> for ReducerFn<F>
where
    F: Fn(T, U) -> T + Send + Sync + 'static,
{
    fn merge(&self, current: T, update: U) -> T {
        (self.0)(current, update)
    }
}

/// Takes the update, forgets what was there.
///
/// ```
/// use superstep::{Reducer, Replace};
/// assert_eq!(Replace.merge(1, 2), 2);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Replace;

impl<T> Reducer<T> for Replace {
    fn merge(&self, _current: T, update: T) -> T {
        update
    }
}

/// Puts the update's items after the current ones.
///
/// ```
/// use superstep::{Append, Reducer};
/// assert_eq!(Append.merge("ab".to_owned(), "c".to_owned()), "abc");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Append;

impl<T: IntoItems + Send + Sync + 'static> Reducer<T> for Append {
    fn merge(&self, mut current: T, update: T) -> T {
        current.append_items(update);
        current
    }
}

/// Collections that take the items of another: what `#[state(append)]` fields can be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an `append` field",
    note = "`#[state(append)]` takes lists, strings, sets and maps; use `#[state(reduce = f)]` for other types"
)]
#[doc(hidden)]
pub trait IntoItems: Sized {
    /// What it takes to compare two of them.
    type Item;

    fn append_items(&mut self, items: Self);

    /// What was appended to `before` to make this; itself if it was made in another way.
    fn tail_after(self, before: &Self, same: &dyn Fn(&Self::Item, &Self::Item) -> bool) -> Result<Self, Self>;

    fn has_no_items(&self) -> bool;

    /// Whether both cannot be appended without one of them losing something.
    fn overwrites(&self, _other: &Self) -> bool {
        false
    }
}

macro_rules! extend_with {
    ($([$($generics:tt)*] $collection:ty, $item:ty, $tail:expr $(, $overwrites:expr)?);* $(;)?) => {$(
        impl<$($generics)*> IntoItems for $collection {
            type Item = $item;

            fn append_items(&mut self, items: Self) {
                self.extend(items);
            }

            fn tail_after(self, before: &Self, same: &dyn Fn(&$item, &$item) -> bool) -> Result<Self, Self> {
                $tail(self, before, same)
            }

            fn has_no_items(&self) -> bool {
                self.is_empty()
            }

            $(fn overwrites(&self, other: &Self) -> bool {
                $overwrites(self, other)
            })?
        }
    )*};
}

/// Whether two maps have a key in common.
macro_rules! share_a_key {
    () => {
        |one: &Self, other: &Self| one.keys().any(|key| other.contains_key(key))
    };
}

/// The tail of a list that begins with another one.
macro_rules! tail_of_list {
    () => {
        |mut list: Self, before: &Self, same: &dyn Fn(&T, &T) -> bool| {
            let begins_so = list.len() >= before.len() && list.iter().zip(before).all(|(one, other)| same(one, other));
            if begins_so { Ok(list.split_off(before.len())) } else { Err(list) }
        }
    };
}

/// The items of a set that holds another one.
macro_rules! rest_of_set {
    () => {
        |mut set: Self, before: &Self, _: &dyn Fn(&T, &T) -> bool| {
            if !before.iter().all(|item| set.contains(item)) {
                return Err(set);
            }
            set.retain(|item| !before.contains(item));
            Ok(set)
        }
    };
}

/// The entries of a map that are new or changed, if none is gone.
macro_rules! rest_of_map {
    () => {
        |mut map: Self, before: &Self, same: &dyn Fn(&V, &V) -> bool| {
            if !before.keys().all(|key| map.contains_key(key)) {
                return Err(map);
            }
            map.retain(|key, value| !before.get(key).is_some_and(|known| same(known, value)));
            Ok(map)
        }
    };
}

extend_with! {
    [T] Vec<T>, T, tail_of_list!();
    [T] std::collections::VecDeque<T>, T, tail_of_list!();
    [T: Ord] std::collections::BTreeSet<T>, T, rest_of_set!();
    [K: Ord, V] std::collections::BTreeMap<K, V>, V, rest_of_map!(), share_a_key!();
    [T: std::hash::Hash + Eq, H: std::hash::BuildHasher] std::collections::HashSet<T, H>, T, rest_of_set!();
    [K: std::hash::Hash + Eq, V, H: std::hash::BuildHasher] std::collections::HashMap<K, V, H>, V, rest_of_map!(), share_a_key!();
}

impl IntoItems for String {
    type Item = char;

    fn append_items(&mut self, items: Self) {
        self.push_str(&items);
    }

    fn tail_after(mut self, before: &Self, _: &dyn Fn(&char, &char) -> bool) -> Result<Self, Self> {
        if self.starts_with(before.as_str()) { Ok(self.split_off(before.len())) } else { Err(self) }
    }

    fn has_no_items(&self) -> bool {
        self.is_empty()
    }
}

/// Adds numbers.
///
/// ```
/// use superstep::{Reducer, Sum};
/// assert_eq!(Sum.merge(2, 3), 5);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum;

impl<T: std::ops::Add<Output = T>> Reducer<T> for Sum {
    fn merge(&self, current: T, update: T) -> T {
        current + update
    }
}

/// Keeps the greater value.
///
/// ```
/// use superstep::{MaxReducer, Reducer};
/// assert_eq!(MaxReducer.merge(2, 3), 3);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct MaxReducer;

impl<T: PartialOrd> Reducer<T> for MaxReducer {
    fn merge(&self, current: T, update: T) -> T {
        if update > current { update } else { current }
    }
}

/// Merges chat messages by id; see [`add_messages`].
///
/// ```
/// use superstep::{AddMessages, Message, Reducer};
/// let merged = AddMessages.merge(vec![Message::user("hi").with_id("1")], vec![Message::user("hello").with_id("1")]);
/// assert_eq!(merged.len(), 1);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct AddMessages;

impl Reducer<Vec<Message>> for AddMessages {
    /// As [`add_messages`], but a removal of a message that is not there is ignored.
    fn merge(&self, current: Vec<Message>, update: Vec<Message>) -> Vec<Message> {
        let known: std::collections::HashSet<String> =
            current.iter().chain(&update).filter(|m| !m.is_removal()).filter_map(|m| m.id.clone()).collect();
        let fits =
            |m: &Message| !m.is_removal() || m.removes_all() || m.id.as_ref().is_some_and(|id| known.contains(id));
        add_messages(current, update.into_iter().filter(fits).collect()).expect("every removal names a known message")
    }
}
