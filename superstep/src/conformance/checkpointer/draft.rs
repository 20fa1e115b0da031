//! Records as the suite makes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use crate::checkpoint::{
    CheckpointRecord, FieldRecord, FieldValue, Interrupt, SavedCheckpoint, SavedField, Source, TaskRecord, WriteRecord,
};
use crate::error::{ErrorKind, TaskError};
use crate::id::{CheckpointId, TaskId};
use crate::value::Blob;

/// The id that is made at a tick of 100 nanoseconds.
pub(super) fn id_at(tick: u64) -> CheckpointId {
    /// In the year 2026.
    const START: u64 = 0x01f0_8f00_0000_0000;
    let ticks = u128::from(START + tick);
    CheckpointId::from_u128(
        (ticks >> 28) << 96 | (ticks >> 12 & 0xffff) << 80 | (0x6000 | ticks & 0x0fff) << 64 | 0x8000 << 48 | 7,
    )
}

/// A checkpoint that is to be saved.
#[derive(Debug, Clone)]
pub(super) struct Draft(pub(super) CheckpointRecord);

impl Draft {
    pub(super) fn new(id: CheckpointId) -> Self {
        let [shape, control] = [b"shape".as_slice(), b"control"].map(Blob::from);
        Self(CheckpointRecord::new(id, Source::Loop, 0).with_shape(shape).with_control(control))
    }

    pub(super) fn id(&self) -> CheckpointId {
        self.0.id
    }

    /// Goes on from this checkpoint.
    pub(super) fn after(mut self, base: Option<CheckpointId>) -> Self {
        (self.0.parent, self.0.base) = (base, base);
        self
    }

    pub(super) fn parent(mut self, parent: Option<CheckpointId>) -> Self {
        self.0.parent = parent;
        self
    }

    pub(super) fn step(mut self, step: i64) -> Self {
        self.0.step = step;
        self
    }

    pub(super) fn source(mut self, source: Source) -> Self {
        self.0.source = source;
        self
    }

    pub(super) fn run(mut self, run: &str) -> Self {
        self.0.run = Some(run.into());
        self
    }

    pub(super) fn made_at(mut self, moment: SystemTime) -> Self {
        self.0.created_at = moment;
        self
    }

    pub(super) fn metadata(mut self, key: &str, value: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.0.metadata).insert(key.to_owned(), value.into());
        self
    }

    /// Ran under this checkpoint of the root.
    pub(super) fn under(mut self, root: CheckpointId) -> Self {
        self.0.parents = BTreeMap::from([(String::new(), root)]).into();
        self
    }

    pub(super) fn field(mut self, name: &str, value: FieldValue) -> Self {
        self.0.fields.push(FieldRecord::new(name, value));
        self
    }

    pub(super) fn whole(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.field(name, FieldValue::Whole(bytes.as_ref().into()))
    }

    pub(super) fn tail<B: AsRef<[u8]>>(self, name: &str, writes: impl IntoIterator<Item = B>) -> Self {
        self.field(name, FieldValue::Tail(writes.into_iter().map(|write| write.as_ref().into()).collect()))
    }

    pub(super) fn absent(self, name: &str) -> Self {
        self.field(name, FieldValue::Absent)
    }

    pub(super) fn with(mut self, task: TaskRecord) -> Self {
        self.0.writes.push(task);
        self
    }

    /// What comes back: the record with these fields, and nothing pending.
    pub(super) fn saved(&self, fields: impl IntoIterator<Item = SavedField>) -> SavedCheckpoint {
        SavedCheckpoint::new(self.0.clone(), fields.into_iter().collect(), Vec::new())
    }
}

/// A field as it comes back that was saved whole.
pub(super) fn whole(name: &str, bytes: impl AsRef<[u8]>) -> SavedField {
    SavedField::new(name, Some(bytes.as_ref().into()), Vec::new())
}

/// A field as it comes back with writes on top of a whole value, or of nothing.
pub(super) fn tail<B: AsRef<[u8]>>(
    name: &str,
    whole: Option<&[u8]>,
    writes: impl IntoIterator<Item = B>,
) -> SavedField {
    let writes = writes.into_iter().map(|write| write.as_ref().into()).collect();
    SavedField::new(name, whole.map(Into::into), writes)
}

/// What a task wrote.
pub(super) fn task(number: u128, path: &str) -> TaskRecord {
    TaskRecord::new(TaskId(number), path)
}

impl TaskRecord {
    fn made_with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn wrote(self, channel: &str, value: impl AsRef<[u8]>) -> Self {
        let write = WriteRecord::new(channel, value.as_ref().into());
        self.made_with(|task| task.writes.push(write))
    }

    pub(super) fn overwrote(self, channel: &str, value: impl AsRef<[u8]>) -> Self {
        let write = WriteRecord::new(channel, value.as_ref().into()).with_overwrite(true);
        self.made_with(|task| task.writes.push(write))
    }

    pub(super) fn failed(self, words: &str) -> Self {
        self.made_with(|task| task.error = Some(TaskError::new(ErrorKind::Node, words)))
    }

    pub(super) fn asked(self, questions: &[&str]) -> Self {
        let questions = questions.iter().map(|q| Interrupt::new(format!("id of {q}"), *q)).collect();
        self.made_with(|task| task.interrupts = Some(questions))
    }

    pub(super) fn answered(self, answer: impl Into<Value>) -> Self {
        let answer = answer.into();
        self.made_with(|task| task.resume = Some(answer))
    }

    /// In this run.
    pub(super) fn of(self, run: &str) -> Self {
        self.with_run(Some(run.into()))
    }

    pub(super) fn handled(self) -> Self {
        self.made_with(|task| task.handled = true)
    }
}
