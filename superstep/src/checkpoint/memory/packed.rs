//! Checkpoints and what was written after them, packed: bytes that grow at their end, in which later parts point to
//! earlier ones. Small values lie among them; large ones, and what is no bytes, lie in tables beside them.
//!
//! So a checkpoint takes about as much memory as it has to say, and a thread is few pieces of memory, which are quickly
//! taken and given back. Numbers have four bytes, and places are counted from the beginning:
//!
//! ```text
//! checkpoint := format flags [parent] [base] [time] step control fields value*
//! fields     := how many (name, where its value lies)*
//! value      := 0 blob | (1 + 2 × writes + whether it builds on another) [where that lies] blob*
//! written    := (where the one before lies, or 0) common task path rest writes (name flag blob)*
//! blob       := length bytes | 255 (place in the table)
//! name       := (2 × place among the graph's names) | (2 × place in the table + 1)
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use smallvec::SmallVec;

use super::super::{
    Blob, CheckpointRecord, Few, FieldRecord, FieldValue, Name, SavedCheckpoint, SavedField, Shape, SharedMap, Source,
    TaskRecord, WriteRecord,
};
use crate::error::TaskError;
use crate::id::{ByTask, CheckpointId, TaskId};
use crate::node::Interrupt;

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

impl Place {
    /// Forgets what was written after it; the bytes stay until a checkpoint is forgotten.
    pub(super) fn forget_written(&mut self) {
        self.written = 0;
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    commons: SmallVec<[Common; 1]>,
    tables: Option<Box<Tables>>,
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

/// The begin of a checkpoint.
#[derive(Debug)]
pub(super) struct Head {
    format: u8,
    pub(super) source: Source,
    parent: Option<CheckpointId>,
    pub(super) base: Option<CheckpointId>,
    pub(super) created_at: SystemTime,
    pub(super) step: i64,
    /// Where the control part lies.
    control: usize,
}

const SOURCES: [Source; 4] = [Source::Input, Source::Loop, Source::Update, Source::Fork];
const HAS_PARENT: u8 = 4;
const BASE_IS_PARENT: u8 = 8;
const HAS_OTHER_BASE: u8 = 16;
const TIME_OF_ID: u8 = 32;

/// The length of a blob that lies in the table.
const IN_TABLE: u8 = 255;

/// A name and where its value lies.
const FIELD: usize = 8;

/// Bytes for a short thread.
const FIRST: usize = 1536;
/// What most checkpoints need less than.
const ROOM: usize = 256;
/// What a number can point to, with room for one more checkpoint.
const MOST: usize = (u32::MAX - (1 << 30)) as usize;

impl Packed {
    /// Adds a checkpoint that builds on `base`. What lies in tables is taken out of the record.
    pub(super) fn add(&mut self, record: &mut CheckpointRecord, base: Option<Place>) -> Place {
        self.make_room();
        let mut place = self.begin(record);
        place.fields = self.end();
        self.fields(place, base, &mut record.fields);
        place
    }

    /// Adds all of a checkpoint but its fields.
    fn begin(&mut self, record: &mut CheckpointRecord) -> Place {
        let place = Place { id: record.id, at: self.end(), fields: 0, written: 0, common: self.common_of(record) };
        let base_is_parent = record.base.is_some() && record.base == record.parent;
        let time_of_id = record.created_at == record.id.created_at();
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = record.source as u8
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
        self.blob(&mut record.control);
        place
    }

    /// The fields of a checkpoint: those of its base as they were, unless they changed, then those that are new.
    fn fields(&mut self, place: Place, base: Option<Place>, changed: &mut [FieldRecord]) {
        let list = place.fields as usize + 4;
        self.number(0);
        if let Some(base) = base {
            self.inherit(place.common, base);
        }
        let is_there = |field: &&mut FieldRecord| field.value != FieldValue::Absent;
        for gone in changed.iter().filter(|field| field.value == FieldValue::Absent) {
            let name = self.name_number(place.common, &gone.name);
            if let Some(at) = self.find_field(list, place.common, name) {
                self.bytes.drain(at..at + FIELD);
            }
        }
        let lie: SmallVec<[usize; 4]> =
            changed.iter_mut().filter(is_there).map(|field| self.field(list, place.common, &field.name)).collect();
        self.set(place.fields, ((self.bytes.len() - list) / FIELD) as u32);
        for (field, at) in changed.iter_mut().filter(is_there).zip(lie) {
            let before = self.number_at(at + 4);
            self.set(at as u32 + 4, self.end());
            self.value(&mut field.value, before);
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

    /// Where the field of a list lies that goes to the end; it is added if it is not there.
    fn field(&mut self, list: usize, common: u32, name: &Name) -> usize {
        let name = self.name_number(common, name);
        self.find_field(list, common, name).unwrap_or_else(|| {
            self.numbers([name, 0]);
            self.bytes.len() - FIELD
        })
    }

    fn find_field(&self, list: usize, common: u32, name: u32) -> Option<usize> {
        let mut fields = self.bytes[list..].chunks_exact(FIELD);
        let place = fields.clone().position(|field| field[..4] == name.to_le_bytes());
        // A name may have several numbers.
        let named = |field: &[u8]| self.text(common, number(field)) == self.text(common, name);
        place.or_else(|| fields.position(named)).map(|place| list + place * FIELD)
    }

    fn fields_of(&self, place: Place) -> Range<usize> {
        let list = place.fields as usize + 4;
        list..list + FIELD * self.number_at(place.fields as usize) as usize
    }

    fn value(&mut self, value: &mut FieldValue, before: u32) {
        match value {
            FieldValue::Absent => {}
            FieldValue::Whole(whole) => {
                self.number(0);
                self.blob(whole);
            }
            FieldValue::Tail(writes) => {
                self.number(1 + 2 * writes.len() as u32 + u32::from(before != 0));
                if before != 0 {
                    self.number(before);
                }
                writes.iter_mut().for_each(|write| self.blob(write));
            }
        }
    }

    /// Adds what a task wrote after a checkpoint. What lies in tables is taken out of the record.
    pub(super) fn write(&mut self, place: &mut Place, task: &mut TaskRecord) {
        self.make_room();
        let (at, common) = (self.end(), self.last_common());
        self.numbers([place.written, common]);
        self.bytes.extend_from_slice(&task.task.as_u128().to_le_bytes());
        let (path, rest) = (self.name_number(common, &task.path), self.rest(task));
        self.numbers([path, rest, task.writes.len() as u32]);
        for write in &mut task.writes {
            let [a, b, c, d] = self.name_number(common, &write.channel).to_le_bytes();
            self.bytes.extend_from_slice(&[a, b, c, d, u8::from(write.overwrite)]);
            self.blob(&mut write.value);
        }
        place.written = at;
    }

    /// Puts what few tasks have into its table; gives the number of its place there, from 1.
    fn rest(&mut self, task: &mut TaskRecord) -> u32 {
        let TaskRecord { error, handled, interrupts, resume, .. } = task;
        if error.is_none() && !*handled && interrupts.is_none() && resume.is_none() {
            return 0;
        }
        let rest =
            Rest { error: error.take(), handled: *handled, interrupts: interrupts.take(), resume: resume.take() };
        let rests = &mut self.tables_mut().rests;
        rests.push(rest);
        rests.len() as u32
    }

    /// By half, not twofold: there are many threads, and most are short.
    fn make_room(&mut self) {
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        if capacity - len < ROOM {
            self.bytes.reserve_exact(if capacity == 0 { FIRST } else { len / 2 + ROOM });
        }
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

    fn blob(&mut self, blob: &mut Blob) {
        match blob.small() {
            Some((len, bytes)) => {
                let end = self.bytes.len() + 1 + usize::from(len);
                self.bytes.push(len);
                // All of them, and then fewer: it is quicker to copy as many each time.
                self.bytes.extend_from_slice(bytes);
                self.bytes.truncate(end);
            }
            None => {
                let blobs = &mut self.tables_mut().blobs;
                let place = blobs.len() as u32;
                blobs.push(std::mem::take(blob));
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

    fn number_of_other(&mut self, name: &Name) -> u32 {
        let names = &mut self.tables_mut().names;
        let place = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.clone());
            names.len() - 1
        });
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

    fn read(&self, at: usize) -> Reader<'_> {
        Reader { packed: self, at }
    }

    pub(super) fn common(&self, place: Place) -> &Common {
        &self.commons[place.common as usize]
    }

    pub(super) fn head(&self, place: Place) -> Head {
        let mut from = self.read(place.at as usize);
        let [format, flags] = from.take();
        let mut id = |has: u8| (flags & has != 0).then(|| CheckpointId::from_u128(u128::from_le_bytes(from.take())));
        let (parent, base) = (id(HAS_PARENT), id(HAS_OTHER_BASE));
        Head {
            format,
            source: SOURCES[usize::from(flags & 3)],
            parent,
            base: if flags & BASE_IS_PARENT != 0 { parent } else { base },
            created_at: if flags & TIME_OF_ID != 0 { place.id.created_at() } else { from.time() },
            step: i64::from_le_bytes(from.take()),
            control: from.at,
        }
    }

    pub(super) fn saved(&self, place: Place) -> SavedCheckpoint {
        let fields = self.values(place).map(|(name, value)| self.saved_field(name, value)).collect();
        let mut written = ByTask::<TaskRecord>::default();
        for record in self.written(place) {
            match written.place(record.task) {
                Some(known) => written[known].absorb(record),
                None => written.push(record),
            }
        }
        SavedCheckpoint::new(self.record(place), fields, written.into_list())
    }

    /// A checkpoint without its fields.
    fn record(&self, place: Place) -> CheckpointRecord {
        let head = self.head(place);
        let Common { run, metadata, parents, shape } = self.common(place).clone();
        CheckpointRecord {
            format: head.format,
            id: place.id,
            parent: head.parent,
            base: head.base,
            head: None,
            run,
            source: head.source,
            step: head.step,
            created_at: head.created_at,
            metadata,
            parents,
            shape,
            control: self.read(head.control).blob(),
            fields: Few::new(),
            writes: Vec::new(),
        }
    }

    /// The fields of a checkpoint, and where their values lie.
    fn values(&self, place: Place) -> impl Iterator<Item = (Name, u32)> {
        let fields = self.fields_of(place).step_by(FIELD);
        fields.map(move |at| (self.name(place.common, self.number_at(at)), self.number_at(at + 4)))
    }

    fn saved_field(&self, name: Name, value: u32) -> SavedField {
        let (mut whole, mut tails, mut next) = (None, Vec::new(), value);
        while next != 0 {
            next = match self.read(next as usize).value() {
                (FieldValue::Tail(writes), before) => {
                    tails.push(writes);
                    before
                }
                (FieldValue::Whole(bytes), _) => {
                    whole = Some(bytes);
                    0
                }
                (FieldValue::Absent, _) => 0,
            };
        }
        SavedField::new(name, whole, tails.into_iter().rev().flatten().collect())
    }

    /// What was written after a checkpoint, in the order in which it came.
    fn written(&self, place: Place) -> impl Iterator<Item = TaskRecord> {
        let (mut places, mut at) = (Vec::new(), place.written as usize);
        while at != 0 {
            places.push(at);
            at = self.number_at(at) as usize;
        }
        places.into_iter().rev().map(|at| self.read(at).task())
    }

    /// These checkpoints and what belongs to them, without the rest.
    pub(super) fn only(&self, places: &mut [Place]) -> Packed {
        let (mut packed, mut moved) = (Packed::default(), HashMap::new());
        for place in places {
            *place = packed.move_in(self, *place, &mut moved);
        }
        packed
    }

    /// Brings a checkpoint in from elsewhere.
    fn move_in(&mut self, from: &Packed, place: Place, moved: &mut HashMap<u32, u32>) -> Place {
        let mut new = self.begin(&mut from.record(place));
        let values: Vec<_> =
            from.values(place).map(|(name, value)| (name, self.move_value(from, value, moved))).collect();
        new.fields = self.end();
        self.number(values.len() as u32);
        for (name, value) in values {
            let name = self.name_number(new.common, &name);
            self.numbers([name, value]);
        }
        from.written(place).for_each(|mut task| self.write(&mut new, &mut task));
        new
    }

    /// Brings a value in from elsewhere, and those that it builds on; each once.
    fn move_value(&mut self, from: &Packed, value: u32, moved: &mut HashMap<u32, u32>) -> u32 {
        let (mut pieces, mut next) = (Vec::new(), value);
        while next != 0 && !moved.contains_key(&next) {
            let (piece, before) = from.read(next as usize).value();
            pieces.push((next, piece));
            next = before;
        }
        let mut before = moved.get(&next).copied().unwrap_or_default();
        for (at, mut piece) in pieces.into_iter().rev() {
            let here = self.end();
            self.value(&mut piece, before);
            moved.insert(at, here);
            before = here;
        }
        before
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |number| u32::from_le_bytes(*number))
}

struct Reader<'a> {
    packed: &'a Packed,
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        taken.copy_from_slice(&self.packed.bytes[self.at..self.at + N]);
        self.at += N;
        taken
    }

    fn number(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn time(&mut self) -> SystemTime {
        let (nanos, seconds) = (self.number(), u64::from_le_bytes(self.take()));
        let since = Duration::new(seconds, nanos >> 1);
        if nanos & 1 == 0 { UNIX_EPOCH + since } else { UNIX_EPOCH - since }
    }

    fn blob(&mut self) -> Blob {
        match self.take() {
            [IN_TABLE] => self.packed.tables().blobs[self.number() as usize].clone(),
            [len] => {
                self.at += usize::from(len);
                Blob::from(&self.packed.bytes[self.at - usize::from(len)..self.at])
            }
        }
    }

    /// A value, and where that lies which it builds on.
    fn value(&mut self) -> (FieldValue, u32) {
        match self.number() {
            0 => (FieldValue::Whole(self.blob()), 0),
            kind => {
                let before = if kind % 2 == 0 { self.number() } else { 0 };
                (FieldValue::Tail((0..(kind - 1) / 2).map(|_| self.blob()).collect()), before)
            }
        }
    }

    fn task(mut self) -> TaskRecord {
        let (_, common) = (self.number(), self.number());
        let task = TaskId::from_u128(u128::from_le_bytes(self.take()));
        let path = self.packed.name(common, self.number());
        let none = Rest { error: None, handled: false, interrupts: None, resume: None };
        let rest = match self.number() as usize {
            0 => none,
            place => self.packed.tables().rests[place - 1].clone(),
        };
        let Rest { error, handled, interrupts, resume } = rest;
        let writes = (0..self.number()).map(|_| WriteRecord {
            channel: self.packed.name(common, self.number()),
            overwrite: self.take() != [0],
            value: self.blob(),
        });
        TaskRecord { task, path, writes: writes.collect(), error, handled, interrupts, resume }
    }
}
