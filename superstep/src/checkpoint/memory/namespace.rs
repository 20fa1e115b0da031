//! The checkpoints of one namespace.
//!
//! A value lies once, and each checkpoint says for every field where it lies: so a step costs what it wrote, and eight bytes
//! for each field that has a value.

use std::collections::HashMap;
use std::sync::Arc;

use crate::checkpoint::backend::{CheckpointSummary, Decision, Deletion, Facts, merge_runs, merge_tasks};
use crate::checkpoint::{
    CheckpointError, CheckpointRecord, FieldRecord, FieldValue, Lease, ListQuery, SavedCheckpoint, SavedField,
    TaskRecord,
};
use crate::id::CheckpointId;
use crate::value::Blob;

/// The checkpoints in the order of their ids, which is the order in which they come.
#[derive(Debug, Clone, Default)]
pub(super) struct Namespace {
    checkpoints: Vec<Kept>,
    values: Values,
}

#[derive(Debug, Clone)]
struct Kept {
    /// Without fields and writes.
    record: CheckpointRecord,
    /// In the order of the names' numbers.
    fields: Box<[Field]>,
    /// The records of tasks, in the order in which they came.
    written: Vec<TaskRecord>,
}

/// A field that has a value: the number of its name, and of the last piece of its value.
#[derive(Debug, Clone, Copy)]
struct Field {
    name: u32,
    piece: u32,
}

/// The values of all checkpoints.
#[derive(Debug, Clone, Default)]
struct Values {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    Whole(Blob),
    /// Writes to the value whose last piece is that one.
    Tail {
        writes: Vec<Blob>,
        before: Option<u32>,
    },
}

impl Namespace {
    pub(super) fn is_empty(&self) -> bool {
        self.checkpoints.is_empty()
    }

    pub(super) fn head(&self) -> Option<CheckpointId> {
        self.checkpoints.last().map(|latest| latest.record.id)
    }

    pub(super) fn find(&self, checkpoint: Option<CheckpointId>) -> Option<SavedCheckpoint> {
        let kept = match checkpoint {
            Some(id) => &self.checkpoints[self.place(id)?],
            None => self.checkpoints.last()?,
        };
        Some(self.saved(kept))
    }

    /// The checkpoints that are asked for, the latest first.
    pub(super) fn list(&self, query: &ListQuery) -> Vec<SavedCheckpoint> {
        let found = self.checkpoints.iter().rev().filter(|kept| query.matches(&kept.record));
        found.take(query.limit.unwrap_or(usize::MAX)).map(|kept| self.saved(kept)).collect()
    }

    /// Oldest first.
    pub(super) fn summaries(&self) -> Vec<CheckpointSummary> {
        self.checkpoints.iter().map(|kept| CheckpointSummary::from(&kept.record)).collect()
    }

    fn place(&self, id: CheckpointId) -> Option<usize> {
        match self.checkpoints.last() {
            Some(latest) if latest.record.id == id => Some(self.checkpoints.len() - 1),
            _ => self.checkpoints.binary_search_by_key(&id, |kept| kept.record.id).ok(),
        }
    }

    fn saved(&self, kept: &Kept) -> SavedCheckpoint {
        let fields = kept.fields.iter().map(|field| self.values.read(*field)).collect();
        SavedCheckpoint::new(kept.record.clone(), fields, merge_tasks(kept.written.iter().cloned()))
    }

    pub(super) fn put(&mut self, lease: Lease<'_>, mut record: CheckpointRecord) -> Result<(), CheckpointError> {
        let base = record.base.and_then(|base| self.place(base));
        let facts = Facts { head: self.head(), has_base: base.is_some() };
        if facts.decide_put(lease, (&record).into())? == Decision::Known {
            return Ok(());
        }
        let (changed, writes) = (std::mem::take(&mut record.fields), std::mem::take(&mut record.writes));
        let inherited = base.map_or(&[][..], |base| &self.checkpoints[base].fields);
        let fields = self.values.add(inherited, changed);
        if let Some(base) = base {
            writes.into_iter().for_each(|task| self.checkpoints[base].write(task));
        }
        if self.checkpoints.len() == self.checkpoints.capacity() {
            // By half, not twofold: there are many threads, and most are short.
            self.checkpoints.reserve_exact((self.checkpoints.len() / 2).max(12));
        }
        record.head = None;
        self.checkpoints.push(Kept { record, fields, written: Vec::new() });
        Ok(())
    }

    pub(super) fn put_writes(&mut self, checkpoint: CheckpointId, task: TaskRecord) -> Result<(), CheckpointError> {
        let place = self.place(checkpoint);
        Facts { head: self.head(), has_base: place.is_some() }.decide_writes(checkpoint)?;
        if let Some(place) = place {
            self.checkpoints[place].write(task);
        }
        Ok(())
    }

    pub(super) fn delete_run(&mut self, run: &str) -> usize {
        let made = self.checkpoints.iter().filter(|kept| kept.record.run() == Some(run));
        let deletion = Deletion::of(made.map(|kept| kept.record.id)).written_by(run);
        self.delete(&deletion)
    }

    pub(super) fn delete(&mut self, deletion: &Deletion) -> usize {
        let before = self.checkpoints.len();
        self.checkpoints.retain(|kept| !deletion.takes(kept.record.id));
        if deletion.run().is_some() {
            self.checkpoints.iter_mut().for_each(|kept| kept.written.retain(|task| !deletion.takes_writes(task)));
        }
        let deleted = before - self.checkpoints.len();
        if deleted > 0 {
            self.tidy();
        }
        deleted
    }

    /// Leaves out the values that no checkpoint has any more.
    fn tidy(&mut self) {
        let mut moved = Moved { to: vec![None; self.values.pieces.len()], pieces: Vec::new() };
        for field in self.checkpoints.iter_mut().flat_map(|kept| &mut kept.fields) {
            field.piece = moved.take(&self.values.pieces, field.piece);
        }
        self.values.pieces = moved.pieces;
    }
}

impl Kept {
    /// When so many records have come, and each time they are twice as many, those of one task and run are put together.
    const MANY: usize = 16;

    fn write(&mut self, task: TaskRecord) {
        self.written.push(task);
        if self.written.len() >= Self::MANY && self.written.len().is_power_of_two() {
            self.written = merge_runs(std::mem::take(&mut self.written));
        }
    }
}

impl Values {
    /// The fields of a checkpoint that changed these fields of its base.
    fn add(&mut self, inherited: &[Field], changed: Vec<FieldRecord>) -> Box<[Field]> {
        let mut fields = Vec::with_capacity(inherited.len() + changed.len());
        fields.extend_from_slice(inherited);
        for FieldRecord { name, value } in changed {
            let name = self.number(name);
            let place = fields.binary_search_by_key(&name, |field: &Field| field.name);
            let before = place.ok().map(|place| fields[place].piece);
            let piece = match value {
                FieldValue::Whole(whole) => Some(self.piece(Piece::Whole(whole))),
                FieldValue::Tail(writes) => Some(self.piece(Piece::Tail { writes, before })),
                FieldValue::Absent => None,
            };
            match (piece, place) {
                (Some(piece), Ok(place)) => fields[place].piece = piece,
                (Some(piece), Err(place)) => fields.insert(place, Field { name, piece }),
                (None, Ok(place)) => drop(fields.remove(place)),
                (None, Err(_)) => {}
            }
        }
        fields.into_boxed_slice()
    }

    fn number(&mut self, name: Arc<str>) -> u32 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    fn piece(&mut self, piece: Piece) -> u32 {
        self.pieces.push(piece);
        self.pieces.len() as u32 - 1
    }

    fn read(&self, field: Field) -> SavedField {
        let (mut whole, mut tails, mut next) = (None, Vec::new(), Some(field.piece));
        while let Some(piece) = next {
            next = match &self.pieces[piece as usize] {
                Piece::Tail { writes, before } => {
                    tails.push(writes);
                    *before
                }
                Piece::Whole(bytes) => {
                    whole = Some(bytes.clone());
                    None
                }
            };
        }
        let tail = tails.into_iter().rev().flatten().cloned().collect();
        SavedField::new(self.names[field.name as usize].clone(), whole, tail)
    }
}

/// Pieces that are still needed, and where they are now.
struct Moved {
    to: Vec<Option<u32>>,
    pieces: Vec<Piece>,
}

impl Moved {
    /// Brings a piece along, and those before it; each once.
    fn take(&mut self, from: &[Piece], last: u32) -> u32 {
        let (mut new, mut next) = (Vec::new(), Some(last));
        while let Some(piece) = next.filter(|piece| self.to[*piece as usize].is_none()) {
            new.push(piece);
            next = match &from[piece as usize] {
                Piece::Tail { before, .. } => *before,
                Piece::Whole(_) => None,
            };
        }
        for old in new.into_iter().rev() {
            let mut piece = from[old as usize].clone();
            if let Piece::Tail { before, .. } = &mut piece {
                *before = before.and_then(|before| self.to[before as usize]);
            }
            self.to[old as usize] = Some(self.pieces.len() as u32);
            self.pieces.push(piece);
        }
        self.to[last as usize].expect("it was brought along above")
    }
}
