//! A checkpoint as it is kept in memory: with the fields that it has and what was written after it.
//!
//! What nearly every checkpoint has, values of few fields and the writes of one task, lies in place: a thread is
//! few pieces of memory, which are quickly taken and given back.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use smallvec::SmallVec;

use super::super::{
    Blob, CheckpointRecord, Few, FieldRecord, FieldValue, ListQuery, Name, SavedCheckpoint, SavedField, Shape,
    SharedMap, Source, TaskRecord, WriteRecord,
};
use crate::error::TaskError;
use crate::id::{ByTask, CheckpointId, TaskId};
use crate::node::Interrupt;

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) id: CheckpointId,
    parent: Option<CheckpointId>,
    pub(super) base: Option<CheckpointId>,
    pub(super) run: Option<Arc<str>>,
    pub(super) step: i64,
    pub(super) created_at: SystemTime,
    metadata: SharedMap<Value>,
    pub(super) parents: SharedMap<CheckpointId>,
    shape: Shape,
    control: Blob,
    fields: Fields,
    pub(super) written: Written,
    pub(super) source: Source,
    format: u8,
}

/// The fields that have a value; few states have many.
type Fields = SmallVec<[(Name, Kept); 1]>;

impl Entry {
    /// The checkpoint of a record; `base` is the one that it builds on.
    pub(super) fn new(record: CheckpointRecord, base: Option<&Entry>) -> Self {
        Self {
            id: record.id,
            parent: record.parent,
            base: record.base,
            run: record.run,
            step: record.step,
            created_at: record.created_at,
            metadata: record.metadata,
            parents: record.parents,
            shape: record.shape,
            control: record.control,
            fields: changed(base.map_or(&[], |base| &base.fields), record.fields),
            written: Written::Nothing,
            source: record.source,
            format: record.format,
        }
    }

    pub(super) fn is_wanted(&self, query: &ListQuery) -> bool {
        query.wants(self.id, self.source, self.step, &self.metadata)
    }

    pub(super) fn saved(&self) -> SavedCheckpoint {
        let record = CheckpointRecord {
            format: self.format,
            id: self.id,
            parent: self.parent,
            base: self.base,
            head: None,
            run: self.run.clone(),
            source: self.source,
            step: self.step,
            created_at: self.created_at,
            metadata: self.metadata.clone(),
            parents: self.parents.clone(),
            shape: self.shape.clone(),
            control: self.control.clone(),
            fields: Few::new(),
            writes: Vec::new(),
        };
        let fields = self.fields.iter().map(|(name, kept)| kept.saved(name.clone())).collect();
        SavedCheckpoint::new(record, fields, self.written.to_records())
    }
}

/// The fields that a checkpoint has: those of its base as they were, unless they changed, then those that are new.
fn changed(known: &[(Name, Kept)], mut changed: Few<FieldRecord, 1>) -> Fields {
    let mut fields = Fields::new();
    for (name, kept) in known {
        let kept = match changed.iter_mut().find(|field| field.name == *name) {
            None => Some(kept.clone()),
            // What is taken out here is passed over below: a field that is absent is not a new one.
            Some(field) => Kept::new(std::mem::replace(&mut field.value, FieldValue::Absent), Some(kept)),
        };
        if let Some(kept) = kept {
            fields.push((name.clone(), kept));
        }
    }
    for field in changed {
        if let Some(kept) = Kept::new(field.value, None) {
            fields.push((field.name, kept));
        }
    }
    fields
}

/// A field's value: whole, or writes on top of an older one.
#[derive(Debug, Clone)]
enum Kept {
    Whole(Blob),
    Tail(Arc<Tail>),
}

#[derive(Debug)]
struct Tail {
    before: Option<Kept>,
    writes: Vec<Blob>,
}

impl Drop for Tail {
    /// Long chains are taken apart one by one, not on the stack.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(Kept::Tail(tail)) = next {
            next = Arc::into_inner(tail).and_then(|mut tail| tail.before.take());
        }
    }
}

impl Kept {
    /// What is kept of a field that had another value before.
    fn new(value: FieldValue, before: Option<&Kept>) -> Option<Self> {
        match value {
            FieldValue::Absent => None,
            FieldValue::Whole(bytes) => Some(Kept::Whole(bytes)),
            FieldValue::Tail(writes) => Some(Kept::Tail(Arc::new(Tail { before: before.cloned(), writes }))),
        }
    }

    fn saved(&self, name: Name) -> SavedField {
        let (mut whole, mut tails, mut next): (Option<Blob>, Vec<&[Blob]>, _) = (None, Vec::new(), Some(self));
        while let Some(kept) = next {
            next = match kept {
                Kept::Whole(bytes) => {
                    whole = Some(bytes.clone());
                    None
                }
                Kept::Tail(tail) => {
                    tails.push(&tail.writes);
                    tail.before.as_ref()
                }
            };
        }
        SavedField::new(name, whole, tails.into_iter().rev().flatten().cloned().collect())
    }
}

/// What tasks wrote after a checkpoint.
#[derive(Debug, Clone, Default)]
pub(super) enum Written {
    #[default]
    Nothing,
    ByOne(KeptTask),
    ByMany(Box<ByTask<TaskRecord>>),
}

impl Written {
    /// Takes in several records, which are of different tasks.
    pub(super) fn add_all(&mut self, mut tasks: Vec<TaskRecord>) {
        match self {
            // Mostly, and the record is moved once.
            Written::Nothing if tasks.len() == 1 => {
                tasks.drain(..).for_each(|task| *self = Written::ByOne(KeptTask::new(task)));
            }
            Written::Nothing if !tasks.is_empty() => {
                let mut all = ByTask::default();
                all.add_all(tasks);
                *self = Written::ByMany(Box::new(all));
            }
            _ => tasks.into_iter().for_each(|task| self.add(task)),
        }
    }

    /// Takes in a record: the first of its task, or a later one.
    pub(super) fn add(&mut self, task: TaskRecord) {
        match self {
            Written::Nothing => *self = Written::ByOne(KeptTask::new(task)),
            Written::ByOne(known) => {
                let mut all = ByTask::default();
                all.push(known.clone().into_record());
                *self = Written::ByMany(Box::new(all));
                self.add(task);
            }
            Written::ByMany(all) => match all.place(task.task) {
                Some(place) => all[place].absorb(task),
                None => all.push(task),
            },
        }
    }

    fn to_records(&self) -> Vec<TaskRecord> {
        match self {
            Written::Nothing => Vec::new(),
            Written::ByOne(task) => vec![task.clone().into_record()],
            Written::ByMany(all) => all.to_vec(),
        }
    }
}

/// The record of a task, with its writes in place and the rest, which few have, elsewhere.
#[derive(Debug, Clone)]
pub(super) struct KeptTask {
    task: TaskId,
    path: Name,
    writes: Few<WriteRecord, 2>,
    rest: Option<Box<KeptRest>>,
}

#[derive(Debug, Clone)]
struct KeptRest {
    error: Option<TaskError>,
    handled: bool,
    interrupts: Option<Vec<Interrupt>>,
    resume: Option<Value>,
}

impl KeptTask {
    fn new(record: TaskRecord) -> Self {
        let TaskRecord { task, path, writes, error, handled, interrupts, resume } = record;
        let has_rest = error.is_some() || handled || interrupts.is_some() || resume.is_some();
        let rest = has_rest.then(|| Box::new(KeptRest { error, handled, interrupts, resume }));
        Self { task, path, writes, rest }
    }

    fn into_record(self) -> TaskRecord {
        let rest = self.rest.map(|rest| *rest);
        let rest = rest.unwrap_or(KeptRest { error: None, handled: false, interrupts: None, resume: None });
        let KeptRest { error, handled, interrupts, resume } = rest;
        TaskRecord { task: self.task, path: self.path, writes: self.writes, error, handled, interrupts, resume }
    }
}
