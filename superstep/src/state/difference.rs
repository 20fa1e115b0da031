//! What became of a field in a whole state that a node gave back, in the terms of the field's rule; derived code calls it.
//!
//! Values are compared by `PartialEq`, or by identity where they are shared pointers. A type that has neither counts as
//! changed whenever it is given back: what serde writes of it may leave out what changed.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::message::{MessageLike, add_messages, give_ids};
use crate::state::{Difference, IntoItems, Written};

/// Two values to compare. The trait that fits best is found by taking references: derived code calls `same` on
/// `&&&Same(..)`, and the compiler goes down from [`ByEq`] to [`Never`].
#[derive(Debug)]
pub struct Same<'a, T>(pub &'a T, pub &'a T);

/// Values that can be compared.
pub trait ByEq {
    /// Whether they are equal.
    fn same(&self) -> bool;
}

impl<T: PartialEq> ByEq for &&Same<'_, T> {
    fn same(&self) -> bool {
        self.0 == self.1
    }
}

/// Shared pointers: the same one is the same value.
pub trait ByPointer {
    /// Whether they point to the same value.
    fn same(&self) -> bool;
}

impl<T: Pointer> ByPointer for &Same<'_, T> {
    fn same(&self) -> bool {
        self.0.same_pointer(self.1)
    }
}

/// A shared pointer, or a few of them.
pub trait Pointer {
    /// Whether both point to the same.
    fn same_pointer(&self, other: &Self) -> bool;
}

impl<T: ?Sized> Pointer for Arc<T> {
    fn same_pointer(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

impl<P: Pointer> Pointer for Option<P> {
    fn same_pointer(&self, other: &Self) -> bool {
        match (self, other) {
            (None, None) => true,
            (Some(one), Some(other)) => one.same_pointer(other),
            _ => false,
        }
    }
}

impl<P: Pointer> Pointer for Vec<P> {
    fn same_pointer(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| one.same_pointer(other))
    }
}

/// Values that nobody can compare.
pub trait Never {
    /// They count as different.
    fn same(&self) -> bool;
}

impl<T> Never for Same<'_, T> {
    fn same(&self) -> bool {
        false
    }
}

/// Of a field that keeps what is written.
pub fn kept<T>(same: bool, after: T) -> Difference<T> {
    if same { Difference::None } else { Difference::Merge(after) }
}

/// Of a collection that is added to.
pub fn appended<T: IntoItems>(before: &T, after: T, same: impl Fn(&T::Item, &T::Item) -> bool) -> Difference<T> {
    match after.tail_after(before, &same) {
        Ok(tail) if tail.has_no_items() => Difference::None,
        Ok(tail) => Difference::Merge(tail),
        Err(other) => Difference::Replace(other),
    }
}

/// Of a list that is added to.
pub fn listed<T>(before: &Vec<T>, after: Vec<T>, same: impl Fn(&T, &T) -> bool) -> Difference<Vec<T>> {
    appended(before, after, same)
}

/// Of the values of a step: those before are gone anyway.
pub fn collected<T>(before: &Vec<T>, after: Vec<T>, same: impl Fn(&T, &T) -> bool) -> Difference<Vec<T>> {
    match appended(before, after, same) {
        Difference::Replace(others) => Difference::Merge(others),
        difference => difference,
    }
}

/// Of a sum: what was added to it, if that can be told exactly.
pub fn summed<T: 'static>(before: &T, after: T, same: impl Fn(&T, &T) -> bool) -> Difference<T> {
    if same(before, &after) {
        return Difference::None;
    }
    minus(&after, before).map_or_else(|| Difference::Replace(after), Difference::Merge)
}

/// The number that makes one of the other when it is added, if they are numbers and there is exactly one.
fn minus<T: 'static>(after: &T, before: &T) -> Option<T> {
    let (after, before) = (after as &dyn Any, before as &dyn Any);
    macro_rules! numbers {
        ($($number:ty => $minus:expr),* $(,)?) => {$(
            if let (Some(after), Some(before)) = (after.downcast_ref::<$number>(), before.downcast_ref::<$number>()) {
                let minus: fn(&$number, &$number) -> Option<$number> = $minus;
                let difference: Box<dyn Any> = Box::new(minus(after, before)?);
                return difference.downcast::<T>().ok().map(|difference| *difference);
            }
        )*};
        (whole $($number:ty)*) => { numbers!($($number => |after, before| after.checked_sub(*before)),*) };
    }
    numbers!(whole u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize std::time::Duration);
    numbers! {
        f32 => |after, before| Some(after - before).filter(|more| (before + more).to_bits() == after.to_bits()),
        f64 => |after, before| Some(after - before).filter(|more| (before + more).to_bits() == after.to_bits()),
    }
    None
}

/// Of a field with a reducer of its own: through the reducer if the new value has the old one in it, as the greatest, the
/// longest or the union has. Then it can be merged with others in any order, and as often as one likes.
pub fn reduced<T: Clone>(
    before: &T,
    after: T,
    merge: impl Fn(T, T) -> Option<T>,
    same: impl Fn(&T, &T) -> bool,
) -> Difference<T> {
    if same(before, &after) {
        return Difference::None;
    }
    let makes_it = |one: &T, other: &T| merge(one.clone(), other.clone()).is_some_and(|merged| same(&merged, &after));
    if makes_it(before, &after) && makes_it(&after, before) && makes_it(&after, &after) {
        Difference::Merge(after)
    } else {
        Difference::Replace(after)
    }
}

/// Of a field whose updates are of another type: no update can be told from a value, so it is replaced.
pub fn replaced<T, U>(after: Written<T, U>, same: impl FnOnce(&T) -> bool) -> Difference<Written<T, U>> {
    match after {
        Written::Value(after) if same(&after) => Difference::None,
        Written::Value(after) => Difference::Replace(Written::Value(after)),
        update @ Written::Update(_) => Difference::Merge(update),
    }
}

/// Of messages: those that are new or changed, and a removal of each that is gone.
pub fn messages<M: MessageLike>(before: &[M], mut after: Vec<M>, same: impl Fn(&M, &M) -> bool) -> Difference<Vec<M>> {
    let before = with_ids(before, &mut after, &same);
    let known: HashMap<&str, &M> = before.iter().filter_map(|message| Some((message.id()?, message))).collect();
    let is_known = |message: &M| message.id().and_then(|id| known.get(id)).is_some_and(|known| same(known, message));
    let changed: Vec<M> = after.iter().filter(|message| !is_known(message)).cloned().collect();
    // Removals among the messages do what they say.
    let Ok(after) = add_messages(Vec::new(), after).or_else(|_| add_messages(before.clone(), changed.clone())) else {
        return Difference::Merge(changed);
    };
    let left: HashSet<&str> = after.iter().filter_map(MessageLike::id).collect();
    let gone = before.iter().filter_map(MessageLike::id).filter(|id| !left.contains(id)).map(M::removal);
    let Some(mut update) = gone.collect::<Option<Vec<M>>>() else { return Difference::Replace(after) };
    update.extend(changed.into_iter().filter(|message| !message.is_removal()));
    let ids = |messages: &[M]| messages.iter().map(|message| message.id().map(str::to_owned)).collect::<Vec<_>>();
    match add_messages(before.clone(), update.clone()) {
        Ok(merged) if ids(&merged) == ids(&after) => {
            if update.is_empty() {
                Difference::None
            } else {
                Difference::Merge(update)
            }
        }
        _ => Difference::Replace(after),
    }
}

/// The messages before, with ids. One without an id that is the same in both lists gets the same id in both: messages that
/// were sent to a node have none yet.
fn with_ids<M: MessageLike>(before: &[M], after: &mut [M], same: &impl Fn(&M, &M) -> bool) -> Vec<M> {
    let mut before = before.to_vec();
    for (one, other) in before.iter_mut().zip(after.iter_mut()) {
        if one.id().is_none() && other.id().is_none() && same(one, other) {
            give_ids(std::slice::from_mut(one));
            other.set_id(one.id().unwrap_or_default().to_owned());
        }
    }
    give_ids(after);
    before
}
