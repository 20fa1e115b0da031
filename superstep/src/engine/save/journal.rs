//! The fields that changed since the last checkpoint, and how they are saved: as tails, as long as that pays.

use std::sync::Arc;

use crate::value::Blob;

/// The fields that changed since the last checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// In the order of fields.
    pub(super) changed: Vec<(usize, Entry)>,
    /// For fields saved as tails: how much lies in the tail, and in the last whole value.
    pub(super) tails: Vec<(usize, TailSize)>,
    /// Fields of an earlier version of the state that are no more: the next checkpoint must not inherit them.
    pub(super) gone: Vec<Arc<str>>,
}

#[derive(Debug)]
pub(crate) enum Entry {
    /// Encode the value when it is saved.
    Dirty,
    Whole(Blob),
    Tail(Vec<Blob>),
    Absent,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TailSize {
    tail: usize,
    whole: usize,
    /// How long the tail may grow before the value is looked at again.
    most: usize,
}

impl Journal {
    fn set(&mut self, field: usize, entry: Entry) {
        match self.changed.binary_search_by_key(&field, |(f, _)| *f) {
            Ok(place) => self.changed[place].1 = entry,
            Err(place) => self.changed.insert(place, (field, entry)),
        }
    }

    /// A field changed, in a way that only its value tells.
    pub(crate) fn dirty(&mut self, field: usize) {
        self.set(field, Entry::Dirty);
    }

    /// A field has no value any more.
    pub(crate) fn absent(&mut self, field: usize) {
        self.set(field, Entry::Absent);
    }

    /// A field was written to, in this way.
    pub(crate) fn note(&mut self, field: usize, entry: Entry) {
        match entry {
            Entry::Tail(writes) => self.tail(field, writes),
            other => self.set(field, other),
        }
    }

    /// These writes were merged into a field.
    fn tail(&mut self, field: usize, writes: Vec<Blob>) {
        match self.changed.iter_mut().find(|(f, _)| *f == field) {
            None => self.set(field, Entry::Tail(writes)),
            Some((_, Entry::Tail(earlier))) => earlier.extend(writes),
            Some((_, entry)) => *entry = Entry::Dirty,
        }
    }
}

pub(super) fn size_of(tails: &mut Vec<(usize, TailSize)>, field: usize) -> &mut TailSize {
    let place = tails.iter().position(|(f, _)| *f == field).unwrap_or_else(|| {
        tails.push((field, TailSize::of_whole(0)));
        tails.len() - 1
    });
    &mut tails[place].1
}

impl TailSize {
    pub(super) fn of_whole(whole: usize) -> Self {
        Self { whole, tail: 0, most: Self::TIMES * whole.max(Self::SMALL) }
    }

    pub(super) fn read_back(whole: usize, tail: usize) -> Self {
        Self { tail, ..Self::of_whole(whole) }
    }

    const SMALL: usize = 4096;
    const TIMES: usize = 3;

    /// Whether more writes go to the tail without a look at the value.
    pub(super) fn takes(&mut self, writes: &[Blob]) -> bool {
        let more: usize = writes.iter().map(|b| b.len()).sum();
        let fits = self.tail + more <= self.most;
        self.tail += if fits { more } else { 0 };
        fits
    }

    /// Whether a long tail is worth its bytes: most of what was written is still in the value, which takes so many
    /// bytes as a whole. Then reading the tail costs little more than reading the value, and a whole value
    /// would be saved for nothing.
    pub(super) fn is_all_value(&mut self, writes: &[Blob], value: usize) -> bool {
        let more: usize = writes.iter().map(|b| b.len()).sum();
        let all = self.whole + self.tail + more;
        if value < all / 2 {
            return false;
        }
        self.tail += more;
        self.most = 2 * all;
        true
    }
}
