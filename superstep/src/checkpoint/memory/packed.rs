//! Checkpoints and what was written after them, packed: bytes that grow at their end, in which later parts point to
//! earlier ones. Small values lie among them; large ones, and what is no bytes, lie in tables beside them.
//!
//! So a checkpoint takes about as much memory as it has to say, and a thread is few pieces of memory, which are quickly
//! taken and given back. Numbers, and places counted from the beginning, have four bytes each:
//!
//! ```text
//! checkpoint := format flags [parent] [base] [time] step control fields
//! fields     := how many (name, where its value lies)*
//! value      := 0 blob | (1 + 2 × writes + whether it builds on another) [where that lies] blob*
//! written    := (where the one before lies, or 0) nth common task path rest writes (name flag blob)*
//! blob       := length bytes | 255 (place in the table)
//! name       := (2 × place among the graph's names) | (2 × place in the table + 1)
//! ```
//!
//! Nothing is taken out. What was forgotten or replaced is counted, and left behind when all else is packed anew.

mod read;
mod repack;

use std::ops::Range;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use smallvec::SmallVec;

use super::super::{CheckpointRecord, FieldRecord, FieldValue, Name, Shape, SharedMap, TaskRecord};
use crate::checkpoint::Interrupt;
use crate::error::TaskError;
use crate::id::CheckpointId;
use crate::value::Blob;

/// A checkpoint among others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) id: CheckpointId,
    /// Where it begins, and where its fields do.
    at: u32,
    fields: u32,
    /// Where the last of what was written after it lies. Nothing lies at 0: a checkpoint comes before.
    written: u32,
    common: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    commons: SmallVec<[Common; 1]>,
    tables: Option<Box<Tables>>,
    /// How many checkpoints and records of tasks nobody asks for any more.
    left_behind: usize,
}

/// What lies beside the bytes; threads with nothing but small values have none of it.
#[derive(Debug, Clone, Default)]
struct Tables {
    blobs: Vec<Blob>,
    names: Vec<Name>,
    rests: Vec<Rest>,
}

/// What all checkpoints of a run have in common.
#[derive(Debug, Clone)]
pub(super) struct Common {
    pub(super) run: Option<Arc<str>>,
    pub(super) metadata: SharedMap<Value>,
    pub(super) parents: SharedMap<CheckpointId>,
    shape: Shape,
}

impl Common {
    fn is_of(&self, record: &CheckpointRecord) -> bool {
        let same_run = match (&self.run, &record.run) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            (own, others) => own.is_none() && others.is_none(),
        };
        same_run
            && self.shape.shares_with(&record.shape)
            && self.metadata.shares_with(&record.metadata)
            && self.parents.shares_with(&record.parents)
    }
}

/// What few tasks have beside their writes.
#[derive(Debug, Clone)]
struct Rest {
    error: Option<TaskError>,
    handled: bool,
    interrupts: Option<Vec<Interrupt>>,
    resume: Option<Value>,
}

const HAS_PARENT: u8 = 4;
const BASE_IS_PARENT: u8 = 8;
const HAS_OTHER_BASE: u8 = 16;
const TIME_OF_ID: u8 = 32;

/// The length of a blob that lies in the table.
const IN_TABLE: u8 = 255;
/// The longest one that does not: to copy it takes less than to share it.
const COPIED: usize = 64;

/// A name and where its value lies.
const FIELD: usize = 8;

/// Bytes for a short thread.
const FIRST: usize = 1536;
/// What most checkpoints need less than.
const ROOM: usize = 256;
/// What a number can point to, with room for one more checkpoint.
const MOST: usize = if cfg!(test) { 1 << 19 } else { 3 << 30 };

/// Among so many names of the table, the last ones, a name is looked for before it is added.
const LOOKED_AT: usize = 16;
/// When so many records were written after a checkpoint, and each time they are twice as many, those of the same task
/// are put together.
const MANY: u32 = 16;

impl Packed {
    /// Adds a checkpoint that builds on `base`.
    pub(super) fn add(&mut self, record: &CheckpointRecord, base: Option<Place>) -> Place {
        self.make_room();
        let mut place = self.begin(record);
        place.fields = self.end();
        self.fields(place, base, &record.fields);
        place
    }

    /// Adds all of a checkpoint but its fields.
    fn begin(&mut self, record: &CheckpointRecord) -> Place {
        let place = Place { id: record.id, at: self.end(), fields: 0, written: 0, common: self.common_of(record) };
        let base_is_parent = record.base.is_some() && record.base == record.parent;
        let time_of_id = record.created_at == record.id.created_at();
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = record.source.number()
            | flag(record.parent.is_some(), HAS_PARENT)
            | flag(base_is_parent, BASE_IS_PARENT)
            | flag(record.base.is_some() && !base_is_parent, HAS_OTHER_BASE)
            | flag(time_of_id, TIME_OF_ID);
        self.bytes.extend_from_slice(&[record.format, flags]);
        if let Some(parent) = record.parent {
            self.bytes.extend_from_slice(&parent.as_u128().to_le_bytes());
        }
        if let Some(base) = record.base.filter(|_| !base_is_parent) {
            self.bytes.extend_from_slice(&base.as_u128().to_le_bytes());
        }
        if !time_of_id {
            self.time(record.created_at);
        }
        self.bytes.extend_from_slice(&record.step.to_le_bytes());
        self.blob(&record.control);
        place
    }

    /// The fields of a checkpoint: those of its base as they were, unless they changed, then those that are new.
    fn fields(&mut self, place: Place, base: Option<Place>, changed: &[FieldRecord]) {
        let start = place.fields as usize + 4;
        self.number(0);
        if let Some(base) = base {
            self.inherit(place.common, base);
        }
        let is_there = |field: &&FieldRecord| field.value != FieldValue::Absent;
        for gone in changed.iter().filter(|field| !is_there(field)) {
            let name = self.name_number(place.common, &gone.name);
            if let Some(at) = self.find_field(start..self.bytes.len(), place.common, name) {
                self.bytes.drain(at..at + FIELD);
            }
        }
        let known = start..self.bytes.len();
        let field = |field: &FieldRecord| self.field(known.clone(), place.common, &field.name);
        let lie: SmallVec<[usize; 4]> = changed.iter().filter(is_there).map(field).collect();
        self.set(place.fields, ((self.bytes.len() - start) / FIELD) as u32);
        for (field, at) in changed.iter().filter(is_there).zip(lie) {
            let before = self.number_at(at + 4);
            self.set(at as u32 + 4, self.end());
            match &field.value {
                FieldValue::Whole(whole) => self.whole(whole),
                FieldValue::Tail(writes) => self.tail(writes, before),
                FieldValue::Absent => {}
            }
        }
    }

    /// Takes over the fields of a checkpoint, whose names may be those of another graph.
    fn inherit(&mut self, common: u32, base: Place) {
        let list = self.fields_of(base);
        if base.common == common {
            return self.bytes.extend_from_within(list);
        }
        for at in list.step_by(FIELD) {
            let name = self.name_number(common, &self.name(base.common, self.number_at(at)));
            let value = self.number_at(at + 4);
            self.numbers([name, value]);
        }
    }

    /// Where a field lies among those that are known; it is added at the end if it is not there.
    fn field(&mut self, known: Range<usize>, common: u32, name: &Name) -> usize {
        let name = self.name_number(common, name);
        match self.find_field(known, common, name) {
            Some(at) => {
                self.set(at as u32, name);
                at
            }
            None => {
                self.numbers([name, 0]);
                self.bytes.len() - FIELD
            }
        }
    }

    fn find_field(&self, known: Range<usize>, common: u32, name: u32) -> Option<usize> {
        let start = known.start;
        let mut fields = self.bytes[known].chunks_exact(FIELD);
        let place = fields.clone().position(|field| field[..4] == name.to_le_bytes());
        // A name may have several numbers.
        let named = |field: &[u8]| self.text(common, number(field)) == self.text(common, name);
        place.or_else(|| fields.position(named)).map(|place| start + place * FIELD)
    }

    fn fields_of(&self, place: Place) -> Range<usize> {
        let list = place.fields as usize + 4;
        list..list + FIELD * self.number_at(place.fields as usize) as usize
    }

    fn whole(&mut self, whole: &Blob) {
        self.number(0);
        self.blob(whole);
    }

    /// Writes to a value that lies at `before`; 0 if there is none.
    fn tail(&mut self, writes: &[Blob], before: u32) {
        self.number(1 + 2 * writes.len() as u32 + u32::from(before != 0));
        if before != 0 {
            self.number(before);
        }
        writes.iter().for_each(|write| self.blob(write));
    }

    /// Adds what a task wrote after a checkpoint.
    pub(super) fn write(&mut self, place: &mut Place, task: &TaskRecord) {
        self.append(place, task);
        let nth = self.nth(place.written);
        if nth >= MANY && nth.is_power_of_two() {
            self.put_together(place, nth);
        }
    }

    fn append(&mut self, place: &mut Place, task: &TaskRecord) {
        self.make_room();
        let (at, common) = (self.end(), self.last_common());
        let nth = if place.written == 0 { 1 } else { self.nth(place.written) + 1 };
        self.numbers([place.written, nth, common]);
        self.bytes.extend_from_slice(&task.task.as_u128().to_le_bytes());
        let (path, rest) = (self.name_number(common, &task.path), self.rest(task));
        self.numbers([path, rest, task.writes.len() as u32]);
        for write in &task.writes {
            let [a, b, c, d] = self.name_number(common, &write.channel).to_le_bytes();
            self.bytes.extend_from_slice(&[a, b, c, d, u8::from(write.overwrite)]);
            self.blob(&write.value);
        }
        place.written = at;
    }

    /// Which of those after its checkpoint a record is.
    fn nth(&self, written: u32) -> u32 {
        self.number_at(written as usize + 4)
    }

    /// Puts the records of each task together, if most of them are later ones of the same tasks.
    fn put_together(&mut self, place: &mut Place, many: u32) {
        let tasks = self.written(*place);
        if 2 * tasks.len() <= many as usize {
            self.left_behind += many as usize;
            place.written = 0;
            tasks.iter().for_each(|task| self.append(place, task));
        }
    }

    /// Forgets what was written after a checkpoint.
    pub(super) fn forget_written(&mut self, place: &mut Place) {
        if place.written != 0 {
            self.left_behind += self.nth(place.written) as usize;
            place.written = 0;
        }
    }

    /// So many checkpoints were forgotten.
    pub(super) fn forgot(&mut self, checkpoints: usize) {
        self.left_behind += checkpoints;
    }

    /// Puts what few tasks have into its table; gives the number of its place there, from 1.
    fn rest(&mut self, task: &TaskRecord) -> u32 {
        let TaskRecord { error, handled, interrupts, resume, .. } = task;
        if error.is_none() && !*handled && interrupts.is_none() && resume.is_none() {
            return 0;
        }
        let (error, interrupts, resume) = (error.clone(), interrupts.clone(), resume.clone());
        let rests = &mut self.tables_mut().rests;
        rests.push(Rest { error, handled: *handled, interrupts, resume });
        rests.len() as u32
    }

    /// By half, not twofold: there are many threads, and most are short.
    fn make_room(&mut self) {
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        if capacity - len < ROOM {
            self.bytes.reserve_exact(if capacity == 0 { FIRST } else { len / 2 + ROOM });
        }
    }

    /// How many records were written after a checkpoint and not put together.
    #[cfg(test)]
    pub(super) fn records(&self, place: Place) -> u32 {
        self.nth(place.written)
    }

    /// How many bytes lie here, about.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        let tables = self.tables.as_deref().map_or(0, |tables| {
            let Tables { blobs, names, rests } = tables;
            let values: usize = blobs.iter().map(|blob| blob.len()).sum();
            values + size_of_val(&**blobs) + size_of_val(&**names) + size_of_val(&**rests)
        });
        self.bytes.len() + size_of_val(&*self.commons) + tables
    }

    /// Whether numbers could not point to what comes next.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() > MOST
    }

    fn common_of(&mut self, record: &CheckpointRecord) -> u32 {
        let commons = &mut self.commons;
        if commons.last().is_none_or(|last| !last.is_of(record)) {
            commons.push(Common {
                run: record.run.clone(),
                metadata: record.metadata.clone(),
                parents: record.parents.clone(),
                shape: record.shape.clone(),
            });
        }
        self.last_common()
    }

    fn last_common(&self) -> u32 {
        self.commons.len() as u32 - 1
    }

    fn end(&self) -> u32 {
        self.bytes.len() as u32
    }

    fn number(&mut self, number: u32) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn numbers<const N: usize>(&mut self, numbers: [u32; N]) {
        self.bytes.extend_from_slice(numbers.map(u32::to_le_bytes).as_flattened());
    }

    fn set(&mut self, at: u32, number: u32) {
        self.bytes[at as usize..][..4].copy_from_slice(&number.to_le_bytes());
    }

    fn number_at(&self, at: usize) -> u32 {
        number(&self.bytes[at..])
    }

    fn time(&mut self, time: SystemTime) {
        let (since, is_before) = match time.duration_since(UNIX_EPOCH) {
            Ok(since) => (since, 0),
            Err(before) => (before.duration(), 1),
        };
        self.number(since.subsec_nanos() << 1 | is_before);
        self.bytes.extend_from_slice(&since.as_secs().to_le_bytes());
    }

    fn blob(&mut self, blob: &Blob) {
        match blob.small() {
            Some((len, bytes)) => {
                let end = self.bytes.len() + 1 + usize::from(len);
                self.bytes.push(len);
                // All of them, and then fewer: it is quicker to copy as many each time.
                self.bytes.extend_from_slice(bytes);
                self.bytes.truncate(end);
            }
            None if blob.len() <= COPIED => {
                self.bytes.push(blob.len() as u8);
                self.bytes.extend_from_slice(blob);
            }
            None => {
                let blobs = &mut self.tables_mut().blobs;
                let place = blobs.len() as u32;
                blobs.push(blob.clone());
                self.bytes.push(IN_TABLE);
                self.number(place);
            }
        }
    }

    #[inline]
    fn name_number(&mut self, common: u32, name: &Name) -> u32 {
        match self.commons[common as usize].shape.place_of(name) {
            Some(place) => 2 * place as u32,
            None => self.number_of_other(name),
        }
    }

    /// The number of a name in the table. Names of tasks are many, and each is another: it is not looked for among all.
    fn number_of_other(&mut self, name: &Name) -> u32 {
        let names = &mut self.tables_mut().names;
        let looked_at = names.len().saturating_sub(LOOKED_AT);
        let place = names[looked_at..].iter().position(|known| known == name).map_or(names.len(), |at| looked_at + at);
        if place == names.len() {
            names.push(name.clone());
        }
        2 * place as u32 + 1
    }

    fn text(&self, common: u32, number: u32) -> &str {
        let place = (number / 2) as usize;
        if number % 2 == 1 { &self.tables().names[place] } else { self.commons[common as usize].shape.text(place) }
    }

    fn name(&self, common: u32, number: u32) -> Name {
        let place = (number / 2) as usize;
        if number % 2 == 1 {
            self.tables().names[place].clone()
        } else {
            self.commons[common as usize].shape.name(place)
        }
    }

    fn tables(&self) -> &Tables {
        self.tables.as_deref().expect("what lies in a table was put there")
    }

    fn tables_mut(&mut self) -> &mut Tables {
        self.tables.get_or_insert_default()
    }

    pub(super) fn common(&self, place: Place) -> &Common {
        &self.commons[place.common as usize]
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |number| u32::from_le_bytes(*number))
}
