//! The merge of messages by id.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::{Message, MessageKind};
use crate::error::InvalidUpdate;

/// What the merge by id needs to know of a message.
///
/// ```
/// use superstep::{Message, MessageLike};
/// assert!(Message::remove("a").is_removal());
/// ```
pub trait MessageLike: Clone {
    /// The id, if it has one.
    fn id(&self) -> Option<&str>;
    /// Gives it an id.
    fn set_id(&mut self, id: String);
    /// Whether it removes messages instead of being one.
    fn is_removal(&self) -> bool;
    /// Whether it removes all messages before it.
    fn removes_all(&self) -> bool;
}

impl MessageLike for Message {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
    fn set_id(&mut self, id: String) {
        self.id = Some(id);
    }
    fn is_removal(&self) -> bool {
        matches!(self.kind, MessageKind::Remove | MessageKind::RemoveAll)
    }
    fn removes_all(&self) -> bool {
        matches!(self.kind, MessageKind::RemoveAll)
    }
}

/// Merges messages by id.
///
/// Messages without an id get one. A known id replaces its message in place, a new one is
/// appended; [`Message::remove`] takes a message out, [`Message::remove_all`] everything before it.
///
/// # Errors
/// If a removal names a message that is not there.
///
/// ```
/// use superstep::{add_messages, Message};
///
/// let merged = add_messages(
///     vec![Message::user("hi").with_id("1")],
///     vec![Message::assistant("hm").with_id("2"), Message::user("hello").with_id("1")],
/// )?;
/// assert_eq!(merged.iter().map(Message::text).collect::<Vec<_>>(), ["hello", "hm"]);
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
pub fn add_messages<M: MessageLike>(current: Vec<M>, update: Vec<M>) -> Result<Vec<M>, InvalidUpdate> {
    let mut merged = current;
    merge_messages("messages", &mut merged, update, &mut MessageIndex::default())?;
    Ok(merged)
}

/// Where each id stands in a list, kept from merge to merge so that long histories stay cheap.
#[derive(Debug, Default)]
pub(crate) struct MessageIndex {
    places: HashMap<u64, usize, std::hash::BuildHasherDefault<PassThrough>>,
    len: usize,
    last: u64,
}

/// The keys are hashes already.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PassThrough(u64);

impl std::hash::Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only u64 keys are hashed")
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

impl MessageIndex {
    /// Makes the index true for `list`; a no-op if nobody else changed the list.
    fn refresh<M: MessageLike>(&mut self, list: &[M]) {
        let last = list.last().map_or(0, hash_of);
        if self.len == list.len() && self.last == last {
            return;
        }
        self.places.clear();
        for (place, message) in list.iter().enumerate() {
            self.places.insert(hash_of(message), place);
        }
        self.note(list);
    }

    fn note<M: MessageLike>(&mut self, list: &[M]) {
        self.len = list.len();
        self.last = list.last().map_or(0, hash_of);
    }

    fn find<M: MessageLike>(&self, list: &[M], message: &M) -> Option<usize> {
        let place = *self.places.get(&hash_of(message))?;
        if list[place].id() == message.id() {
            return Some(place);
        }
        // Two ids share a hash: look at all of them.
        list.iter().rposition(|m| m.id() == message.id())
    }
}

fn hash_of<M: MessageLike>(message: &M) -> u64 {
    xxh3_64(message.id().unwrap_or_default().as_bytes())
}

/// Gives every message an id that has none.
pub(crate) fn give_ids<M: MessageLike>(messages: &mut [M]) {
    for message in messages.iter_mut().filter(|m| m.id().is_none() && !m.removes_all()) {
        message.set_id(crate::id::random_uuid());
    }
}

/// The merge itself, in place; see [`add_messages`].
pub(crate) fn merge_messages<M: MessageLike>(
    field: &str,
    list: &mut Vec<M>,
    mut update: Vec<M>,
    index: &mut MessageIndex,
) -> Result<(), InvalidUpdate> {
    give_ids(&mut update);
    if let Some(cut) = update.iter().rposition(MessageLike::removes_all) {
        *list = update.split_off(cut + 1);
        index.len = usize::MAX;
        return Ok(());
    }
    index.refresh(list);
    let mut removed: Vec<usize> = Vec::new();
    for message in update {
        match index.find(list, &message) {
            Some(place) if message.is_removal() => removed.push(place),
            Some(place) => {
                removed.retain(|r| *r != place);
                list[place] = message;
            }
            None if message.is_removal() => {
                let id = message.id().unwrap_or_default();
                return Err(InvalidUpdate::refused(field, format!("there is no message with id `{id}` to remove")));
            }
            None => {
                index.places.insert(hash_of(&message), list.len());
                list.push(message);
            }
        }
    }
    index.note(list);
    if !removed.is_empty() {
        let mut place = 0;
        list.retain(|_| {
            place += 1;
            !removed.contains(&(place - 1))
        });
        index.len = usize::MAX;
    }
    Ok(())
}
