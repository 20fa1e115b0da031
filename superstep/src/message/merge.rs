//! The merge of messages by id.

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
    /// The message that removes the one with this id, if there are such messages.
    fn removal(_id: &str) -> Option<Self> {
        None
    }
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
    fn removal(id: &str) -> Option<Self> {
        Some(Message::remove(id))
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
///
/// A table of open addressing, because every message of a conversation goes through it: a power of two of slots, at
/// most half of them taken; an id has the first slot from the place of its hash on that was free. Ids that were chosen
/// to have the same hash make it slow, not wrong.
#[derive(Debug, Default)]
pub(crate) struct MessageIndex {
    slots: Vec<Slot>,
    taken: usize,
    /// How long the list was when it was left, and the hash of its last id.
    len: usize,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    place: u32,
}

const FREE: Slot = Slot { hash: 0, place: u32::MAX };

impl Slot {
    fn is_free(self) -> bool {
        self.place == u32::MAX
    }
}

impl MessageIndex {
    /// The list is no longer what it was.
    pub(crate) fn forget(&mut self) {
        self.len = usize::MAX;
    }

    /// Makes the index true for `list`; a no-op if nobody else changed the list.
    fn refresh<M: MessageLike>(&mut self, list: &[M]) {
        let last = list.last().map_or(0, hash_of);
        if self.len == list.len() && self.last == last && !self.slots.is_empty() {
            return;
        }
        self.slots.clear();
        self.slots.resize((list.len() * 2 + 1).next_power_of_two().max(16), FREE);
        self.taken = 0;
        // From the end: of two messages with one id the last one counts.
        for (place, message) in list.iter().enumerate().rev() {
            let hash = hash_of(message);
            if let Err(free) = self.find(list, hash, message) {
                self.take(free, hash, place);
            }
        }
        (self.len, self.last) = (list.len(), last);
    }

    /// Where the message with this id stands, or the free slot that is to be its.
    fn find<M: MessageLike>(&self, list: &[M], hash: u32, message: &M) -> Result<usize, usize> {
        let is_same = |known: &M| known.id() == message.id();
        let slot = first_slot(&self.slots, |slot| slot.hash == hash, hash);
        let place = self.slots[slot].place as usize;
        if self.slots[slot].is_free() {
            return Err(slot);
        }
        if list.get(place).is_some_and(is_same) {
            return Ok(place);
        }
        // Two ids share a hash, or someone else has moved messages: look at all of them.
        list.iter().rposition(is_same).ok_or_else(|| first_slot(&self.slots, |_| false, hash))
    }

    fn take(&mut self, free: usize, hash: u32, place: usize) {
        let place = u32::try_from(place).ok().filter(|place| *place < u32::MAX);
        self.slots[free] = Slot { hash, place: place.expect("no list of messages is that long") };
        self.taken += 1;
        if self.taken * 2 > self.slots.len() {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let twice = vec![FREE; self.slots.len() * 2];
        let before = std::mem::replace(&mut self.slots, twice);
        for slot in before.into_iter().filter(|slot| !slot.is_free()) {
            let free = first_slot(&self.slots, |_| false, slot.hash);
            self.slots[free] = slot;
        }
    }
}

/// The first slot from the place of a hash on that is free or looked for.
fn first_slot(slots: &[Slot], is_it: impl Fn(Slot) -> bool, hash: u32) -> usize {
    let mask = slots.len() - 1;
    let mut at = hash as usize & mask;
    while !slots[at].is_free() && !is_it(slots[at]) {
        at = (at + 1) & mask;
    }
    at
}

fn hash_of<M: MessageLike>(message: &M) -> u32 {
    xxh3_64(message.id().unwrap_or_default().as_bytes()) as u32
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
        index.forget();
        return Ok(());
    }
    index.refresh(list);
    let mut removed: Vec<usize> = Vec::new();
    for message in update {
        let hash = hash_of(&message);
        match index.find(list, hash, &message) {
            Ok(place) if message.is_removal() => removed.push(place),
            Ok(place) => {
                removed.retain(|r| *r != place);
                list[place] = message;
            }
            Err(_) if message.is_removal() => {
                let id = message.id().unwrap_or_default();
                return Err(InvalidUpdate::refused(field, format!("there is no message with id `{id}` to remove")));
            }
            Err(free) => {
                index.take(free, hash, list.len());
                list.push(message);
                (index.len, index.last) = (list.len(), hash);
            }
        }
    }
    if !removed.is_empty() {
        let mut place = 0;
        list.retain(|_| {
            place += 1;
            !removed.contains(&(place - 1))
        });
        index.forget();
    }
    Ok(())
}
