//! The plain records that checkpointers keep.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::value::Blob;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checkpoint::Interrupt;
use crate::error::TaskError;
use crate::id::{CheckpointId, TaskId};

/// What a caller said about a run, shared by all that the run saves.
pub(crate) type Metadata = Arc<BTreeMap<String, Value>>;
/// The checkpoints of the graphs around a graph, by namespace.
pub(crate) type Ancestors = Arc<BTreeMap<String, CheckpointId>>;

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
/// use superstep::{Blob, CheckpointId, CheckpointRecord, FieldRecord, FieldValue, Source};
/// let id = CheckpointId::from_u128(1 << 64);
/// let topic = FieldRecord::new("topic", FieldValue::Whole(Blob::from(b"tea".as_slice())));
/// let record = CheckpointRecord::new(id, Source::Loop, 3).with_run(Some("run 1".into())).with_fields(vec![topic]);
/// assert_eq!((record.id(), record.step(), record.run()), (id, 3, Some("run 1")));
/// assert_eq!(record.fields()[0].name(), "topic");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointRecord {
    pub(crate) format: u8,
    pub(crate) id: CheckpointId,
    pub(crate) parent: Option<CheckpointId>,
    pub(crate) base: Option<CheckpointId>,
    pub(crate) head: Option<CheckpointId>,
    pub(crate) run: Option<Arc<str>>,
    pub(crate) source: Source,
    pub(crate) step: i64,
    pub(crate) created_at: SystemTime,
    pub(crate) metadata: Metadata,
    pub(crate) parents: Ancestors,
    pub(crate) shape: Blob,
    pub(crate) control: Blob,
    pub(crate) fields: Vec<FieldRecord>,
    pub(crate) writes: Vec<TaskRecord>,
}

impl CheckpointRecord {
    /// A checkpoint that was made when its id was, and holds nothing yet.
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
            created_at: id.created_at(),
            metadata: Arc::default(),
            parents: Arc::default(),
            shape: Blob::default(),
            control: Blob::default(),
            fields: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// The version of this record's format.
    pub fn format(&self) -> u8 {
        self.format
    }

    /// Names it; ids of later checkpoints are greater.
    pub fn id(&self) -> CheckpointId {
        self.id
    }

    /// The checkpoint that it was made from.
    pub fn parent(&self) -> Option<CheckpointId> {
        self.parent
    }

    /// The checkpoint whose fields it takes over where they did not change; the parent, unless it is a copy.
    pub fn base(&self) -> Option<CheckpointId> {
        self.base
    }

    /// The latest checkpoint of the namespace as its maker knows it; it is refused if another one is the latest.
    pub fn head(&self) -> Option<CheckpointId> {
        self.head
    }

    /// The run that made it.
    pub fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// What made it.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The number of the step.
    pub fn step(&self) -> i64 {
        self.step
    }

    /// When it was made.
    pub fn created_at(&self) -> SystemTime {
        self.created_at
    }

    /// What the caller said about the run.
    pub fn metadata(&self) -> &BTreeMap<String, Value> {
        &self.metadata
    }

    /// The checkpoints of the graphs around this one, by namespace.
    pub fn parents(&self) -> &BTreeMap<String, CheckpointId> {
        &self.parents
    }

    /// The names that the numbers in the control part stand for; the same bytes for all checkpoints of a graph.
    pub fn shape(&self) -> &Blob {
        &self.shape
    }

    /// What triggers what: the engine's own part, encoded.
    pub fn control(&self) -> &Blob {
        &self.control
    }

    /// The fields that changed. A field may be there twice: a whole value, or that there is none, and writes to it.
    pub fn fields(&self) -> &[FieldRecord] {
        &self.fields
    }

    /// What tasks of the step wrote that was not saved before: pending writes of the base, saved with this checkpoint or
    /// not at all.
    pub fn writes(&self) -> &[TaskRecord] {
        &self.writes
    }

    /// The same with another format.
    #[must_use]
    pub fn with_format(self, format: u8) -> Self {
        Self { format, ..self }
    }

    /// The same with another id.
    #[must_use]
    pub fn with_id(self, id: CheckpointId) -> Self {
        Self { id, ..self }
    }

    /// The same, made from this checkpoint.
    #[must_use]
    pub fn with_parent(self, parent: Option<CheckpointId>) -> Self {
        Self { parent, ..self }
    }

    /// The same, taking over what this checkpoint holds.
    #[must_use]
    pub fn with_base(self, base: Option<CheckpointId>) -> Self {
        Self { base, ..self }
    }

    /// The same, to be saved if this is the latest checkpoint.
    #[must_use]
    pub fn with_head(self, head: Option<CheckpointId>) -> Self {
        Self { head, ..self }
    }

    /// The same, made by this run.
    #[must_use]
    pub fn with_run(self, run: Option<Arc<str>>) -> Self {
        Self { run, ..self }
    }

    /// The same, of another step.
    #[must_use]
    pub fn with_step(self, step: i64) -> Self {
        Self { step, ..self }
    }

    /// The same, made by something else.
    #[must_use]
    pub fn with_source(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// The same, made at another moment.
    #[must_use]
    pub fn with_created_at(self, created_at: SystemTime) -> Self {
        Self { created_at, ..self }
    }

    /// The same with this metadata.
    #[must_use]
    pub fn with_metadata(self, metadata: impl Into<Arc<BTreeMap<String, Value>>>) -> Self {
        Self { metadata: metadata.into(), ..self }
    }

    /// The same, made under these checkpoints of the graphs around.
    #[must_use]
    pub fn with_parents(self, parents: impl Into<Arc<BTreeMap<String, CheckpointId>>>) -> Self {
        Self { parents: parents.into(), ..self }
    }

    /// The same with the names of this graph.
    #[must_use]
    pub fn with_shape(self, shape: Blob) -> Self {
        Self { shape, ..self }
    }

    /// The same with this control part.
    #[must_use]
    pub fn with_control(self, control: Blob) -> Self {
        Self { control, ..self }
    }

    /// The same with these changed fields.
    #[must_use]
    pub fn with_fields(self, fields: Vec<FieldRecord>) -> Self {
        Self { fields, ..self }
    }

    /// The same, with what these tasks wrote.
    #[must_use]
    pub fn with_writes(self, writes: Vec<TaskRecord>) -> Self {
        Self { writes, ..self }
    }
}

/// A changed field.
///
/// ```
/// use superstep::{FieldRecord, FieldValue};
/// let field = FieldRecord::new("topic", FieldValue::Absent);
/// assert_eq!((field.name(), field.value()), ("topic", &FieldValue::Absent));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldRecord {
    pub(crate) name: Arc<str>,
    pub(crate) value: FieldValue,
}

impl FieldRecord {
    /// A field that changed to this.
    pub fn new(name: impl Into<Arc<str>>, value: FieldValue) -> Self {
        Self { name: name.into(), value }
    }

    /// The field's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the checkpoint holds of it.
    pub fn value(&self) -> &FieldValue {
        &self.value
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
/// use superstep::{Blob, TaskId, TaskRecord, WriteRecord};
/// let task = TaskRecord::new(TaskId::from_u128(7), "~pull, 0");
/// assert!(!task.is_finished());
/// let task = task.with_writes(vec![WriteRecord::new("topic", Blob::from(b"tea".as_slice()))]);
/// assert!(task.is_finished());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    pub(crate) task: TaskId,
    pub(crate) run: Option<Arc<str>>,
    pub(crate) path: Arc<str>,
    pub(crate) writes: Vec<WriteRecord>,
    pub(crate) error: Option<TaskError>,
    pub(crate) handled: bool,
    pub(crate) interrupts: Option<Vec<Interrupt>>,
    /// In a tuple where it is encoded, because an answer may be null.
    #[serde(with = "answer")]
    pub(crate) resume: Option<Value>,
}

impl TaskRecord {
    /// The record of a task that wrote nothing yet; its path is its place in the order in which writes are applied.
    pub fn new(task: TaskId, path: impl Into<Arc<str>>) -> Self {
        Self {
            task,
            run: None,
            path: path.into(),
            writes: Vec::new(),
            error: None,
            handled: false,
            interrupts: None,
            resume: None,
        }
    }

    /// The task.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// The run that it wrote in.
    pub fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Its place in the order in which writes are applied.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its writes, in order.
    pub fn writes(&self) -> &[WriteRecord] {
        &self.writes
    }

    /// Its error.
    pub fn error(&self) -> Option<&TaskError> {
        self.error.as_ref()
    }

    /// Whether an error handler takes over from it.
    pub fn is_handled(&self) -> bool {
        self.handled
    }

    /// The questions that it asked last.
    pub fn interrupts(&self) -> Option<&[Interrupt]> {
        self.interrupts.as_deref()
    }

    /// The answers that it was given.
    pub fn resume(&self) -> Option<&Value> {
        self.resume.as_ref()
    }

    /// Whether the task came to its end.
    pub fn is_finished(&self) -> bool {
        !self.writes.is_empty()
    }

    /// The same, in this run.
    #[must_use]
    pub fn with_run(self, run: Option<Arc<str>>) -> Self {
        Self { run, ..self }
    }

    /// The same with these writes.
    #[must_use]
    pub fn with_writes(self, writes: Vec<WriteRecord>) -> Self {
        Self { writes, ..self }
    }

    /// The same with this error.
    #[must_use]
    pub fn with_error(self, error: Option<TaskError>) -> Self {
        Self { error, ..self }
    }

    /// The same, with an error handler that takes over.
    #[must_use]
    pub fn with_handled(self, handled: bool) -> Self {
        Self { handled, ..self }
    }

    /// The same with these questions.
    #[must_use]
    pub fn with_interrupts(self, interrupts: Option<Vec<Interrupt>>) -> Self {
        Self { interrupts, ..self }
    }

    /// The same with these answers.
    #[must_use]
    pub fn with_resume(self, resume: Option<Value>) -> Self {
        Self { resume, ..self }
    }
}

/// An answer may be null, which is not the same as none.
mod answer {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    #[expect(clippy::ref_option, reason = "serde gives it so")]
    pub(super) fn serialize<S: Serializer>(answer: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        answer.as_ref().map(|answer| (answer,)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        Ok(Option::<(Value,)>::deserialize(deserializer)?.map(|(answer,)| answer))
    }
}

/// One write of a task.
///
/// ```
/// use superstep::{Blob, WriteRecord};
/// let write = WriteRecord::new("topic", Blob::from(b"tea".as_slice())).with_overwrite(true);
/// assert_eq!((write.channel(), &**write.value(), write.is_overwrite()), ("topic", b"tea".as_slice(), true));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteRecord {
    pub(crate) channel: Arc<str>,
    pub(crate) value: Blob,
    pub(crate) overwrite: bool,
}

impl WriteRecord {
    /// A write of this encoded value to a field or trigger; the value is empty for triggers.
    pub fn new(channel: impl Into<Arc<str>>, value: Blob) -> Self {
        Self { channel: channel.into(), value, overwrite: false }
    }

    /// The field or trigger.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// The encoded value; empty for triggers.
    pub fn value(&self) -> &Blob {
        &self.value
    }

    /// Whether it replaces the value past the reducer.
    pub fn is_overwrite(&self) -> bool {
        self.overwrite
    }

    /// The same, replacing the value past the reducer or not.
    #[must_use]
    pub fn with_overwrite(self, overwrite: bool) -> Self {
        Self { overwrite, ..self }
    }
}

/// A checkpoint as a checkpointer gives it back: with all its fields and its pending writes.
///
/// ```
/// use superstep::{Blob, CheckpointId, CheckpointRecord, SavedCheckpoint, SavedField, Source};
/// let record = CheckpointRecord::new(CheckpointId::from_u128(1 << 64), Source::Input, -1);
/// let topic = SavedField::new("topic", Some(Blob::from(b"tea".as_slice())), Vec::new());
/// let saved = SavedCheckpoint::new(record, vec![topic], Vec::new());
/// assert_eq!(saved.fields()[0].name(), "topic");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedCheckpoint {
    pub(crate) record: CheckpointRecord,
    pub(crate) fields: Vec<SavedField>,
    pub(crate) writes: Vec<TaskRecord>,
}

impl SavedCheckpoint {
    /// Puts a checkpoint together.
    pub fn new(record: CheckpointRecord, fields: Vec<SavedField>, mut writes: Vec<TaskRecord>) -> Self {
        writes.sort_by(|a, b| (&a.path, a.task).cmp(&(&b.path, b.task)));
        Self { record, fields, writes }
    }

    /// The record; its own fields and writes may be left out.
    pub fn record(&self) -> &CheckpointRecord {
        &self.record
    }

    /// Every field that has a value.
    pub fn fields(&self) -> &[SavedField] {
        &self.fields
    }

    /// What tasks of the next step wrote so far, in order of their paths.
    pub fn writes(&self) -> &[TaskRecord] {
        &self.writes
    }

    /// The record, the fields and the writes.
    pub fn into_parts(self) -> (CheckpointRecord, Vec<SavedField>, Vec<TaskRecord>) {
        (self.record, self.fields, self.writes)
    }
}

/// A field's value: the last whole one, and the writes since.
///
/// ```
/// use superstep::{Blob, SavedField};
/// let field = SavedField::new("notes", None, vec![Blob::from(b"tea".as_slice())]);
/// assert!(field.whole().is_none() && field.tail().len() == 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedField {
    pub(crate) name: Arc<str>,
    pub(crate) whole: Option<Blob>,
    pub(crate) tail: Vec<Blob>,
}

impl SavedField {
    /// A field's value.
    pub fn new(name: impl Into<Arc<str>>, whole: Option<Blob>, tail: Vec<Blob>) -> Self {
        Self { name: name.into(), whole, tail }
    }

    /// The field's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last whole value; nothing if all is in the tail.
    pub fn whole(&self) -> Option<&Blob> {
        self.whole.as_ref()
    }

    /// The writes since, oldest first.
    pub fn tail(&self) -> &[Blob] {
        &self.tail
    }
}

/// Which checkpoints to list.
///
/// ```
/// use superstep::{ListQuery, Source};
/// let query = ListQuery::new().limit(10).source(Source::Update);
/// # let _ = query;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
    /// Only those that this run made.
    pub run: Option<String>,
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

    /// Only this one.
    pub fn only(self, only: CheckpointId) -> Self {
        Self { only: Some(only), ..self }
    }

    /// Only those that this run made.
    pub fn run(self, run: impl Into<String>) -> Self {
        Self { run: Some(run.into()), ..self }
    }

    /// Whether a checkpoint is asked for, the limit aside.
    pub fn matches(&self, record: &CheckpointRecord) -> bool {
        self.before.is_none_or(|before| record.id < before)
            && self.only.is_none_or(|only| record.id == only)
            && self.source.is_none_or(|wanted| record.source == wanted)
            && self.step.is_none_or(|wanted| record.step == wanted)
            && self.run.as_deref().is_none_or(|wanted| record.run() == Some(wanted))
            && self.metadata.iter().all(|(key, value)| record.metadata.get(key) == Some(value))
    }
}
