//! The plain records that checkpointers keep.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::value::Blob;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Few, Name, Shape, SharedMap};
use crate::checkpoint::Interrupt;
use crate::error::TaskError;
use crate::id::{CheckpointId, TaskId};

/// The format of the records that this release writes.
pub(crate) const FORMAT: u8 = 1;

/// What made a checkpoint.
///
/// ```
/// assert_eq!(superstep::Source::Loop.to_string(), "loop");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// An input, before it was applied.
    Input,
    /// A step.
    Loop,
    /// An update by hand.
    Update,
    /// A copy, to go on from an older checkpoint.
    Fork,
}

impl Source {
    /// By number; a released number never changes, and four of them fit into two bits.
    const ALL: [Source; 4] = [Source::Input, Source::Loop, Source::Update, Source::Fork];

    /// Its number, for those who keep one.
    ///
    /// ```
    /// use superstep::Source;
    /// assert_eq!(Source::from_number(Source::Update.number()), Some(Source::Update));
    /// ```
    pub fn number(self) -> u8 {
        match self {
            Source::Input => 0,
            Source::Loop => 1,
            Source::Update => 2,
            Source::Fork => 3,
        }
    }

    /// The one with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Input => "input",
            Source::Loop => "loop",
            Source::Update => "update",
            Source::Fork => "fork",
        })
    }
}

/// A checkpoint as it is given to a checkpointer: only what changed.
///
/// ```
/// # fn show(record: superstep::CheckpointRecord) {
/// println!("{} has {} changed fields", record.id, record.fields.len());
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CheckpointRecord {
    /// The version of this record's format.
    pub format: u8,
    /// Names it; ids of later checkpoints are greater.
    pub id: CheckpointId,
    /// The checkpoint that it was made from.
    pub parent: Option<CheckpointId>,
    /// The checkpoint whose fields it takes over where they did not change; the parent, unless it is a copy.
    pub base: Option<CheckpointId>,
    /// The latest checkpoint of the namespace as its maker knows it; it is refused if another one is the latest.
    pub head: Option<CheckpointId>,
    /// The run that made it, if the run was given an id.
    pub run: Option<Arc<str>>,
    /// What made it.
    pub source: Source,
    /// The number of the step.
    pub step: i64,
    /// When it was made.
    pub created_at: SystemTime,
    /// What the caller said about the run.
    pub metadata: SharedMap<Value>,
    /// The checkpoints of the graphs around this one, by namespace.
    pub parents: SharedMap<CheckpointId>,
    /// The names that the numbers in `control` stand for; the same bytes for all checkpoints of a graph.
    pub shape: Shape,
    /// What triggers what: the engine's own part, encoded.
    pub control: Blob,
    /// The fields that changed.
    pub fields: Few<FieldRecord, 1>,
    /// What tasks of the step wrote that was not saved before: pending writes of the base, saved with
    /// this checkpoint or not at all.
    pub writes: Vec<TaskRecord>,
}

impl CheckpointRecord {
    /// A first checkpoint without fields; all else is set afterwards.
    ///
    /// ```
    /// use superstep::{Blob, CheckpointId, CheckpointRecord, FieldRecord, FieldValue, Source};
    ///
    /// let mut record = CheckpointRecord::new(CheckpointId::from_u128(2), Source::Loop, 1);
    /// record.base = Some(CheckpointId::from_u128(1));
    /// record.fields.push(FieldRecord::new("topic".into(), FieldValue::Whole(Blob::from(&b"tea"[..]))));
    /// assert_eq!(record.fields.len(), 1);
    /// ```
    pub fn new(id: CheckpointId, source: Source, step: i64) -> Self {
        Self {
            format: FORMAT,
            id,
            parent: None,
            base: None,
            head: None,
            run: None,
            source,
            step,
            created_at: SystemTime::now(),
            metadata: SharedMap::default(),
            parents: SharedMap::default(),
            shape: Blob::default().into(),
            control: Blob::default(),
            fields: Few::new(),
            writes: Vec::new(),
        }
    }
}

/// A changed field.
///
/// ```
/// # fn show(field: &superstep::FieldRecord) { println!("{}", field.name); }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FieldRecord {
    /// The field's name.
    pub name: Name,
    /// Its value.
    pub value: FieldValue,
}

impl FieldRecord {
    /// A field with what a checkpoint holds of it.
    pub fn new(name: Name, value: FieldValue) -> Self {
        Self { name, value }
    }
}

/// What a checkpoint holds of a field.
///
/// ```
/// use superstep::FieldValue;
/// assert!(matches!(FieldValue::Absent, FieldValue::Absent));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FieldValue {
    /// The whole value.
    Whole(Blob),
    /// Writes to merge into the value that the base has, in order.
    Tail(Vec<Blob>),
    /// It has no value any more.
    Absent,
}

/// What one task wrote.
///
/// ```
/// # fn show(task: &superstep::TaskRecord) { println!("{} finished: {}", task.task, task.is_finished()); }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskRecord {
    /// The task.
    pub task: TaskId,
    /// Its place in the order in which writes are applied.
    pub path: Name,
    /// Its writes, in order.
    pub writes: Few<WriteRecord, 2>,
    /// Its error.
    pub error: Option<TaskError>,
    /// Whether an error handler takes over from it.
    pub handled: bool,
    /// The questions that it asked last.
    pub interrupts: Option<Vec<Interrupt>>,
    /// The answers that it was given.
    pub resume: Option<Value>,
}

impl crate::id::OfTask for TaskRecord {
    fn task(&self) -> TaskId {
        self.task
    }
}

impl TaskRecord {
    /// The record of a task that wrote nothing yet.
    pub fn new(task: TaskId, path: Name) -> Self {
        Self { task, path, writes: Few::new(), error: None, handled: false, interrupts: None, resume: None }
    }

    /// Whether the task came to its end.
    pub fn is_finished(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Takes in a later record of the same task: what was written first stays, the rest is replaced.
    pub fn absorb(&mut self, later: TaskRecord) {
        let known = self.writes.len();
        self.writes.extend(later.writes.into_iter().skip(known));
        self.error = later.error.or(self.error.take());
        self.handled |= later.handled;
        self.interrupts = later.interrupts.or(self.interrupts.take());
        self.resume = later.resume.or(self.resume.take());
    }
}

/// One write of a task.
///
/// ```
/// # fn show(write: &superstep::WriteRecord) { println!("{} <- {} bytes", write.channel, write.value.len()); }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteRecord {
    /// The field or trigger.
    pub channel: Name,
    /// The encoded value; empty for triggers.
    pub value: Blob,
    /// Whether it replaces the value past the reducer.
    pub overwrite: bool,
}

impl WriteRecord {
    /// A value that is merged into the field, or replaces what is there.
    pub fn new(channel: Name, value: Blob, overwrite: bool) -> Self {
        Self { channel, value, overwrite }
    }
}

/// A checkpoint as a checkpointer gives it back: with all its fields and its pending writes.
///
/// ```
/// # fn show(saved: &superstep::SavedCheckpoint) { println!("{} fields", saved.fields.len()); }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SavedCheckpoint {
    /// The record; its own `fields` may be left out, all of them are in [`fields`](SavedCheckpoint::fields).
    pub record: CheckpointRecord,
    /// Every field that has a value.
    pub fields: Vec<SavedField>,
    /// What tasks of the next step wrote so far, in order of their paths.
    pub writes: Vec<TaskRecord>,
}

impl SavedCheckpoint {
    /// Puts a checkpoint together.
    pub fn new(record: CheckpointRecord, fields: Vec<SavedField>, mut writes: Vec<TaskRecord>) -> Self {
        writes.sort_by(|a, b| (&a.path, a.task).cmp(&(&b.path, b.task)));
        Self { record, fields, writes }
    }
}

/// A field's value: the last whole one, and the writes since.
///
/// ```
/// # fn show(field: &superstep::SavedField) { println!("{} has {} writes since", field.name, field.tail.len()); }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SavedField {
    /// The field's name.
    pub name: Name,
    /// The last whole value; nothing if all is in the tail.
    pub whole: Option<Blob>,
    /// The writes since, oldest first.
    pub tail: Vec<Blob>,
}

impl SavedField {
    /// A field's value.
    pub fn new(name: Name, whole: Option<Blob>, tail: Vec<Blob>) -> Self {
        Self { name, whole, tail }
    }
}

/// Which checkpoints to list.
///
/// ```
/// use superstep::{ListQuery, Source};
/// let query = ListQuery::new().limit(10).source(Source::Update);
/// # let _ = query;
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ListQuery {
    /// Only those made before this one.
    pub before: Option<CheckpointId>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Only those with this source.
    pub source: Option<Source>,
    /// Only those of this step.
    pub step: Option<i64>,
    /// Only those whose metadata has these entries.
    pub metadata: BTreeMap<String, Value>,
    /// Only this one.
    pub only: Option<CheckpointId>,
}

impl ListQuery {
    /// All of them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those made before this one.
    pub fn before(self, before: CheckpointId) -> Self {
        Self { before: Some(before), ..self }
    }

    /// At most so many.
    pub fn limit(self, limit: usize) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Only those with this source.
    pub fn source(self, source: Source) -> Self {
        Self { source: Some(source), ..self }
    }

    /// Only those of this step.
    pub fn step(self, step: i64) -> Self {
        Self { step: Some(step), ..self }
    }

    /// Only those whose metadata has this entry.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Whether a checkpoint is asked for, the limit aside.
    pub fn matches(&self, record: &CheckpointRecord) -> bool {
        self.wants(record.id, record.source, record.step, &record.metadata)
    }

    pub(crate) fn wants(
        &self,
        id: CheckpointId,
        source: Source,
        step: i64,
        metadata: &BTreeMap<String, Value>,
    ) -> bool {
        self.before.is_none_or(|before| id < before)
            && self.only.is_none_or(|only| id == only)
            && self.source.is_none_or(|wanted| source == wanted)
            && self.step.is_none_or(|wanted| step == wanted)
            && self.metadata.iter().all(|(key, value)| metadata.get(key) == Some(value))
    }
}
