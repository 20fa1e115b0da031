//! Reducers: how a field merges a write into what it has.

use super::message::{Message, MessageLike, add_messages};

/// Merges an update into the current value of a field.
///
/// Any `Fn(&mut T, T)` is used with `#[state(reduce = f)]` as it is; a type that
/// implements this trait is used with `#[state(reducer = Type)]`.
///
/// ```
/// use superstep::{Append, Reducer};
/// assert_eq!(Append.merge(vec![1], vec![2]), vec![1, 2]);
/// ```
pub trait Reducer<T>: Send + Sync + 'static {
    /// The value after `update` was merged into `current`.
    fn merge(&self, current: T, update: T) -> T;
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

impl<T, F> Reducer<T> for ReducerFn<F>
where
    F: Fn(T, T) -> T + Send + Sync + 'static,
{
    fn merge(&self, current: T, update: T) -> T {
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
pub trait IntoItems {
    fn append_items(&mut self, items: Self);
}

macro_rules! extend_with {
    ($([$($generics:tt)*] $collection:ty),* $(,)?) => {$(
        impl<$($generics)*> IntoItems for $collection {
            fn append_items(&mut self, items: Self) {
                self.extend(items);
            }
        }
    )*};
}

extend_with! {
    [T] Vec<T>,
    [T] std::collections::VecDeque<T>,
    [T: Ord] std::collections::BTreeSet<T>,
    [K: Ord, V] std::collections::BTreeMap<K, V>,
    [T: std::hash::Hash + Eq, H: std::hash::BuildHasher] std::collections::HashSet<T, H>,
    [K: std::hash::Hash + Eq, V, H: std::hash::BuildHasher] std::collections::HashMap<K, V, H>,
}

impl IntoItems for String {
    fn append_items(&mut self, items: Self) {
        self.push_str(&items);
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
    /// As [`add_messages`], but a removal of a message that is not there is passed over.
    fn merge(&self, current: Vec<Message>, update: Vec<Message>) -> Vec<Message> {
        let known: std::collections::HashSet<String> =
            current.iter().chain(&update).filter(|m| !m.is_removal()).filter_map(|m| m.id.clone()).collect();
        let fits =
            |m: &Message| !m.is_removal() || m.removes_all() || m.id.as_ref().is_some_and(|id| known.contains(id));
        add_messages(current, update.into_iter().filter(fits).collect()).expect("every removal names a known message")
    }
}
