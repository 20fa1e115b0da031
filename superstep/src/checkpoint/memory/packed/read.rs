//! Packed checkpoints, read back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::super::{CheckpointRecord, Few, Name, SavedCheckpoint, SavedField, Source, TaskRecord, WriteRecord};
use super::{BASE_IS_PARENT, Common, FIELD, HAS_OTHER_BASE, HAS_PARENT, IN_TABLE, Packed, Place, TIME_OF_ID};
use crate::id::{ByTask, CheckpointId, TaskId};
use crate::value::Blob;

/// The begin of a checkpoint.
pub(in super::super) struct Head {
    format: u8,
    pub(in super::super) source: Source,
    parent: Option<CheckpointId>,
    pub(in super::super) base: Option<CheckpointId>,
    pub(in super::super) created_at: SystemTime,
    pub(in super::super) step: i64,
    /// Where the control part lies.
    control: usize,
}

/// The value of a field, or what was written on top of another one.
pub(super) enum Piece {
    Whole(Blob),
    Tail {
        writes: Vec<Blob>,
        /// Where that lies which they were written on top of; 0 if there is none.
        before: u32,
    },
}

impl Packed {
    pub(in super::super) fn head(&self, place: Place) -> Head {
        let mut from = self.read(place.at);
        let [format, flags] = from.take();
        let mut id = |has: u8| (flags & has != 0).then(|| CheckpointId::from_u128(u128::from_le_bytes(from.take())));
        let (parent, base) = (id(HAS_PARENT), id(HAS_OTHER_BASE));
        Head {
            format,
            source: Source::from_number(flags & 3).unwrap_or(Source::Loop),
            parent,
            base: if flags & BASE_IS_PARENT != 0 { parent } else { base },
            created_at: if flags & TIME_OF_ID != 0 { place.id.created_at() } else { from.time() },
            step: i64::from_le_bytes(from.take()),
            control: from.at,
        }
    }

    pub(in super::super) fn saved(&self, place: Place) -> SavedCheckpoint {
        let fields = self.values(place).map(|(name, value)| self.field_at(name, value)).collect();
        SavedCheckpoint::new(self.record(place), fields, self.written(place))
    }

    /// A checkpoint without its fields.
    pub(super) fn record(&self, place: Place) -> CheckpointRecord {
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
            control: Reader { packed: self, at: head.control }.blob(),
            fields: Few::new(),
            writes: Vec::new(),
        }
    }

    /// The fields of a checkpoint, and where their values lie.
    pub(super) fn values(&self, place: Place) -> impl Iterator<Item = (Name, u32)> {
        let fields = self.fields_of(place).step_by(FIELD);
        fields.map(move |at| (self.name(place.common, self.number_at(at)), self.number_at(at + 4)))
    }

    fn field_at(&self, name: Name, value: u32) -> SavedField {
        let (mut whole, mut tails, mut next) = (None, Vec::new(), value);
        while next != 0 {
            next = match self.piece(next) {
                Piece::Tail { writes, before } => {
                    tails.push(writes);
                    before
                }
                Piece::Whole(bytes) => {
                    whole = Some(bytes);
                    0
                }
            };
        }
        SavedField::new(name, whole, tails.into_iter().rev().flatten().collect())
    }

    pub(super) fn piece(&self, at: u32) -> Piece {
        let mut from = self.read(at);
        match from.number() {
            0 => Piece::Whole(from.blob()),
            kind => {
                let before = if kind % 2 == 0 { from.number() } else { 0 };
                Piece::Tail { writes: (0..(kind - 1) / 2).map(|_| from.blob()).collect(), before }
            }
        }
    }

    /// What tasks wrote after a checkpoint, in the order in which they began to.
    pub(super) fn written(&self, place: Place) -> Vec<TaskRecord> {
        let (mut places, mut at) = (Vec::new(), place.written);
        while at != 0 {
            places.push(at);
            at = self.number_at(at as usize);
        }
        let mut tasks = ByTask::<TaskRecord>::default();
        for record in places.into_iter().rev().map(|at| self.read(at).task()) {
            match tasks.place(record.task) {
                Some(known) => tasks[known].absorb(record),
                None => tasks.push(record),
            }
        }
        tasks.into_list()
    }

    fn read(&self, at: u32) -> Reader<'_> {
        Reader { packed: self, at: at as usize }
    }
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

    fn task(mut self) -> TaskRecord {
        let [_, _, common] = [self.number(), self.number(), self.number()];
        let task = TaskId::from_u128(u128::from_le_bytes(self.take()));
        let mut record = TaskRecord::new(task, self.packed.name(common, self.number()));
        if let Some(place) = (self.number() as usize).checked_sub(1) {
            let rest = self.packed.tables().rests[place].clone();
            (record.error, record.handled) = (rest.error, rest.handled);
            (record.interrupts, record.resume) = (rest.interrupts, rest.resume);
        }
        let writes = (0..self.number()).map(|_| WriteRecord {
            channel: self.packed.name(common, self.number()),
            overwrite: self.take() != [0],
            value: self.blob(),
        });
        record.writes = writes.collect();
        record
    }
}
