//! The merge rules over the slots of a typed state; derived code calls them.

use std::any::Any;
use std::collections::HashMap;
use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::error::InvalidUpdate;
use crate::message::{MessageIndex, MessageLike};
use crate::state::{Change, FieldKind, Put, Reducer, Scratch, Written};

/// What a channel that takes one value says when it gets two.
pub(crate) const ONE_PER_STEP: &str =
    "can receive only one value per step; give it a reducer to merge several writers, or mark it `any`";

/// What a channel says when it is overwritten twice in a step.
pub(crate) const ONE_OVERWRITE: &str = "can receive only one overwrite per step";

type Writes<'a, T> = &'a mut dyn Iterator<Item = Put<T>>;

/// Last value: two writes in one step are an error.
pub fn last_value<T>(slot: &mut T, field: &str, writes: Writes<'_, T>) -> Result<Change, InvalidUpdate> {
    let Some(first) = writes.next() else { return Ok(Change::None) };
    if writes.next().is_some() {
        return Err(InvalidUpdate::new(field, ONE_PER_STEP));
    }
    *slot = first.write;
    Ok(Change::Set)
}

/// Any value: the last write of a step wins.
pub fn any_value<T>(slot: &mut T, writes: Writes<'_, T>) -> Result<Change, InvalidUpdate> {
    match writes.last() {
        Some(last) => {
            *slot = last.write;
            Ok(Change::Set)
        }
        None => Ok(Change::None),
    }
}

/// A reducer; an overwrite replaces what was merged before it and hides what comes after.
pub fn reduce<T>(
    slot: &mut T,
    field: &str,
    writes: Writes<'_, T>,
    merge: impl FnMut(&mut T, T) -> Result<(), InvalidUpdate>,
) -> Result<Change, InvalidUpdate> {
    let written = |put: Put<T>| if put.overwrite { put.map(Written::Value) } else { put.map(Written::Update) };
    reduce_updates(slot, field, &mut writes.map(written), merge)
}

/// A reducer whose updates are of another type than the field's values.
pub fn reduce_updates<T, U>(
    slot: &mut T,
    field: &str,
    writes: Writes<'_, Written<T, U>>,
    mut merge: impl FnMut(&mut T, U) -> Result<(), InvalidUpdate>,
) -> Result<Change, InvalidUpdate> {
    let (mut overwritten, mut change) = (false, Change::None);
    for put in writes {
        change = Change::Set;
        match (put.write, overwritten) {
            (Written::Value(_), true) => return Err(InvalidUpdate::new(field, ONE_OVERWRITE)),
            (Written::Value(value), false) => {
                *slot = value;
                overwritten = true;
            }
            (Written::Update(_), true) => {}
            (Written::Update(update), false) => merge(slot, update)?,
        }
    }
    Ok(change)
}

/// Appends the items of every write.
pub fn append<T: crate::state::IntoItems>(
    slot: &mut T,
    field: &str,
    writes: Writes<'_, T>,
) -> Result<Change, InvalidUpdate> {
    let puts: SmallVec<[Put<T>; 1]> = writes.collect();
    if puts.len() > 1 && puts.iter().any(Put::is_change) {
        one_entry_each(field, &puts)?;
    }
    reduce(slot, field, &mut puts.into_iter(), |current, update| {
        current.append_items(update);
        Ok(())
    })
}

/// Beside what a node changed in a whole state, an entry of a map is written by one writer only.
fn one_entry_each<T: crate::state::IntoItems>(field: &str, puts: &[Put<T>]) -> Result<(), InvalidUpdate> {
    let conflict =
        |one: &Put<T>, other: &Put<T>| (one.is_change() || other.is_change()) && one.write.overwrites(&other.write);
    let overlap = |ix: usize| puts[..ix].iter().any(|earlier| conflict(earlier, &puts[ix]));
    if (1..puts.len()).any(overlap) {
        let why = "an entry of it was written by two nodes, one of which gave back a whole state";
        return Err(InvalidUpdate::new(field, why));
    }
    Ok(())
}

/// Adds every write.
pub fn sum<T: std::ops::AddAssign + 'static>(
    slot: &mut T,
    field: &str,
    writes: Writes<'_, T>,
) -> Result<Change, InvalidUpdate> {
    reduce(slot, field, writes, |current, update| {
        add(current, update).map_err(|why| InvalidUpdate::refused(field, why))
    })
}

/// Adds numbers. Whole ones that the sum does not fit into are refused, in every build alike.
fn add<T: std::ops::AddAssign + 'static>(current: &mut T, update: T) -> Result<(), String> {
    macro_rules! whole_numbers {
        ($($number:ty)*) => {$(
            let slot = (current as &mut dyn Any).downcast_mut::<$number>();
            if let (Some(slot), Some(more)) = (slot, (&update as &dyn Any).downcast_ref::<$number>()) {
                let sum = slot.checked_add(*more);
                *slot = sum.ok_or_else(|| format!("the sum of {slot} and {more} is out of range"))?;
                return Ok(());
            }
        )*};
    }
    whole_numbers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
    *current += update;
    Ok(())
}

/// Merges by a reducer that takes and gives values.
pub fn reducer<T: Default>(
    slot: &mut T,
    field: &str,
    writes: Writes<'_, T>,
    with: &impl Reducer<T>,
) -> Result<Change, InvalidUpdate> {
    reduce(slot, field, writes, |current, update| merge_by(with, current, update))
}

/// Merges by a reducer that takes and gives values, and takes updates of another type.
pub fn reducer_of_updates<T: Default, U>(
    slot: &mut T,
    field: &str,
    writes: Writes<'_, Written<T, U>>,
    with: &impl Reducer<T, U>,
) -> Result<Change, InvalidUpdate> {
    reduce_updates(slot, field, writes, |current, update| merge_by(with, current, update))
}

fn merge_by<T: Default, U>(with: &impl Reducer<T, U>, current: &mut T, update: U) -> Result<(), InvalidUpdate> {
    let taken = std::mem::take(current);
    *current = with.merge(taken, update);
    Ok(())
}

/// The kind of a field with a reducer that takes and gives values. The function is not called: it tells the reducer's type.
pub const fn reducer_kind<T, U, R: Reducer<T, U>>(_: &impl FnOnce() -> PhantomData<R>) -> FieldKind {
    if R::INCREMENTAL { FieldKind::Append } else { FieldKind::Reducer }
}

/// The type of a value, as a value.
pub fn type_of<T>(_: &T) -> PhantomData<T> {
    PhantomData
}

/// Merges messages by id.
pub fn messages<M: MessageLike>(
    slot: &mut Vec<M>,
    field: &str,
    writes: Writes<'_, Vec<M>>,
    scratch: &mut Scratch,
) -> Result<Change, InvalidUpdate> {
    let (index, mut overwritten) = (scratch.get::<MessageIndex>(), false);
    let mut puts: SmallVec<[Put<Vec<M>>; 1]> = writes.collect();
    if puts.len() > 1 && puts.iter().any(Put::is_change) {
        one_change_each(field, &mut puts)?;
    }
    let mut writes = puts.into_iter().inspect(|put| overwritten |= put.overwrite);
    let merge = |list: &mut Vec<M>, update| crate::message::merge_messages(field, list, update, index);
    let change = reduce(slot, field, &mut writes, merge);
    if overwritten {
        index.forget();
    }
    change
}

/// Beside what a node changed in a whole state, a message is written or removed by one writer only: which of two came last
/// would be decided by the names of the nodes. Several may remove it.
fn one_change_each<M: MessageLike>(field: &str, puts: &mut [Put<Vec<M>>]) -> Result<(), InvalidUpdate> {
    let is_change: Vec<bool> = puts.iter().map(Put::is_change).collect();
    let mut changed: HashMap<String, (usize, bool)> = HashMap::new();
    for (writer, put) in puts.iter_mut().enumerate() {
        let mut twice = None;
        put.write.retain(|message| {
            let Some(id) = message.id() else { return true };
            let (first, is_removed) = *changed.entry(id.to_owned()).or_insert((writer, message.is_removal()));
            if first == writer || !(is_change[first] || is_change[writer]) {
                return true;
            }
            let agree = is_removed && message.is_removal();
            if !agree {
                twice = Some(id.to_owned());
            }
            !agree
        });
        if let Some(id) = twice {
            let why =
                format!("message `{id}` was written or removed by two nodes, one of which gave back a whole state");
            return Err(InvalidUpdate::new(field, why));
        }
    }
    Ok(())
}

/// Collects the items of a step; forgets those of the step before unless it accumulates.
pub fn topic<T>(slot: &mut Vec<T>, accumulate: bool, writes: Writes<'_, Vec<T>>) -> Result<Change, InvalidUpdate> {
    let before = slot.len();
    if !accumulate {
        slot.clear();
    }
    let (kept, mut replaced) = (slot.len(), false);
    for put in writes {
        if put.stands_alone() {
            slot.clear();
            replaced = true;
        }
        slot.extend(put.write);
    }
    Ok(match (before, slot.len()) {
        (_, now) if now > kept || (replaced && now > 0) => Change::Set,
        (before, 0) if before > 0 => Change::Cleared,
        _ => Change::None,
    })
}
