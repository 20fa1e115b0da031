//! Rows as they are written and read: what a record says, sealed together with the columns beside it.

#[cfg(feature = "fuzzing")]
mod forged;
mod new;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use superstep::checkpoint::backend::{Successor, merge_task};
use superstep::{
    Blob, CheckpointError, CheckpointId, CheckpointRecord, FieldRecord, FieldValue, Interrupt, Source, TaskError,
    TaskId, TaskRecord, WriteRecord,
};
use xxhash_rust::xxh3::xxh3_128;

use self::new::{NewBody, NewTask};
use super::outline::Outline;
use super::read_rows::{Cut, Pending, ReadRows, Row};
use super::{IdBytes, KnownShapes, id_bytes, id_from, micros};
use crate::bytes::{decode, is_deeper, with_scratch};
use crate::seal::Seal;

/// A checkpoint on its way to the database.
#[derive(Debug)]
pub struct NewRow {
    /// Names the row.
    pub id: CheckpointId,
    /// The checkpoint that it was made from.
    pub parent: Option<CheckpointId>,
    /// The checkpoint whose fields it takes over where they did not change.
    pub base: Option<CheckpointId>,
    /// The latest checkpoint of the namespace.
    pub head: Option<CheckpointId>,
    /// The root graph's checkpoint that it was made under.
    pub root: Option<CheckpointId>,
    /// The number of what made it.
    pub source: i64,
    /// The number of the step.
    pub step: i64,
    /// When it was made, in microseconds since 1970.
    pub created_at: i64,
    /// The run that made it.
    pub run: Option<Arc<str>>,
    /// The digest of its shape.
    pub shape: IdBytes,
    /// Whether some of its values are cut from the base: in copies of old rows.
    pub needs_base: bool,
    /// None if it is known to be there.
    pub shape_body: Option<Vec<u8>>,
    /// What is sealed.
    pub body: Vec<u8>,
    /// What tasks wrote.
    pub pending: Vec<PendingRow>,
}

impl From<&NewRow> for Successor {
    fn from(row: &NewRow) -> Self {
        Self { id: row.id, base: row.base, head: row.head }
    }
}

impl NewRow {
    /// The shape that it brings along.
    pub fn new_shape(&self) -> Option<IdBytes> {
        self.shape_body.as_ref().map(|_| self.shape)
    }
}

/// An outline on its way to the database.
#[derive(Debug)]
pub struct NewOutline {
    /// Names the row.
    pub id: CheckpointId,
    /// The other rows that it refers to.
    pub owners: Vec<CheckpointId>,
    /// What is sealed.
    pub sealed: Vec<u8>,
}

/// What a task wrote, on its way to or from the database.
#[derive(Debug)]
pub struct PendingRow {
    /// The checkpoint that it was written under.
    pub checkpoint: CheckpointId,
    /// The task.
    pub task: TaskId,
    /// The checkpoint whose tails hold values of it.
    pub consumed: Option<CheckpointId>,
    /// What is sealed.
    pub body: Vec<u8>,
}

/// A checkpoint as the database gave it back.
#[derive(Debug)]
pub struct StoredRow {
    /// Names the row.
    pub id: Vec<u8>,
    /// The checkpoint that it was made from.
    pub parent: Option<Vec<u8>>,
    /// The checkpoint whose fields it takes over where they did not change.
    pub base: Option<Vec<u8>>,
    /// The root graph's checkpoint that it was made under.
    pub root: Option<Vec<u8>>,
    /// The number of what made it.
    pub source: i64,
    /// The number of the step.
    pub step: i64,
    /// When it was made, in microseconds since 1970.
    pub created_at: i64,
    /// The run that made it.
    pub run: Option<String>,
    /// The digest of its shape.
    pub shape: Vec<u8>,
    /// What is sealed.
    pub body: Vec<u8>,
    /// Where the pieces of its fields lie, if it has an outline.
    pub outline: Option<Vec<u8>>,
    /// Whether some of its values are cut from the base.
    pub needs_base: bool,
}

/// Seals and opens the rows of one namespace of one thread. Reading builds nothing but data, and whatever does not fit
/// is an error that names thread, checkpoint and part.
#[derive(Debug, Clone, Copy)]
pub struct RowCodec<'a> {
    /// How rows are sealed.
    pub seal: &'a Seal,
    /// The thread.
    pub thread: &'a str,
    /// The namespace.
    pub namespace: &'a str,
}

/// A checkpoint as it is read; [`NewBody`] writes it.
#[derive(Deserialize)]
struct CheckpointBody {
    format: u8,
    /// Seconds and nanoseconds since 1970.
    created_at: (u64, u32),
    metadata: BTreeMap<String, Value>,
    parents: BTreeMap<String, u128>,
    control: Blob,
    fields: Vec<(String, BodyValue)>,
}

/// What a body holds of a field.
#[derive(Deserialize)]
enum BodyValue {
    Whole(Blob),
    Tail(Vec<BodyWrite>),
    Absent,
}

#[derive(Deserialize)]
enum BodyWrite {
    Here(Blob),
    /// These bytes of the base's control part. Nobody writes this any more: it spared the first step to hold its input, which
    /// the base holds too.
    Cut(u32, u32),
}

/// What a task wrote as it is read; [`NewTask`] writes it.
#[derive(Deserialize)]
struct TaskBody {
    path: String,
    writes: Vec<(String, WriteValue, bool)>,
    error: Option<TaskError>,
    handled: bool,
    interrupts: Option<Vec<Interrupt>>,
    /// In a tuple, because an answer may be null.
    resume: Option<(Value,)>,
    #[serde(default)]
    more: Option<More>,
}

/// What rows say since runs have ids: the run of a record, and the records of later runs.
type More = (Option<String>, Vec<TaskBody>);

#[derive(Deserialize)]
enum WriteValue {
    Here(Blob),
    /// The same bytes are in the tail of the field, in the checkpoint that consumed the write.
    InTail(u32),
}

/// How many levels a body may have: what is deeper could use up the stack of who reads it.
const DEEPEST: usize = 256;

/// How many levels the JSON in it may have.
const DEEPEST_JSON: usize = DEEPEST - 16;

/// Values that are shorter are kept twice: a reference would save nothing.
const WORTH_A_REFERENCE: usize = 32;

impl<'a> RowCodec<'a> {
    /// A checkpoint, sealed.
    pub fn row(&self, record: &CheckpointRecord, shapes: &KnownShapes) -> Result<NewRow, CheckpointError> {
        let (id, base) = (record.id(), record.base());
        self.check_depth(id, "metadata", record.metadata().values())?;
        let shape = self.shape_digest(record.shape());
        let source = source_number(record.source());
        let run: Option<Arc<str>> = record.run().map(Into::into);
        let (parent, step, root) = (record.parent(), record.step(), record.parents().get("").copied());
        let created_at = micros(record.created_at());
        let columns = Columns { id, parent, base, root, source, step, created_at, run: run.as_deref(), shape };
        let mut pending = Vec::with_capacity(record.writes().len());
        for task in record.writes() {
            let base = base.ok_or_else(|| CheckpointError::refused("writes came with a checkpoint without a base"))?;
            pending.push(self.consumed_row(base, task, id, record.fields())?);
        }
        let sealed = self.sealed(&self.context(b"checkpoint", &columns.bytes()), &NewBody::new(record), id)?;
        let shape_body = (!shapes.contains(&shape)).then(|| self.seal.seal(&[b"shape", &shape], record.shape()));
        Ok(NewRow {
            id,
            parent,
            base,
            head: record.head(),
            root,
            source,
            step,
            created_at,
            run,
            shape,
            shape_body,
            needs_base: false,
            body: sealed,
            pending,
        })
    }

    /// What a task wrote, all of it in the row.
    pub fn pending_row(&self, checkpoint: CheckpointId, task: &TaskRecord) -> Result<PendingRow, CheckpointError> {
        self.pending(checkpoint, std::slice::from_ref(task), None, &[])
    }

    /// What a task wrote, with references to the tails of the checkpoint that comes with it.
    fn consumed_row(
        &self,
        checkpoint: CheckpointId,
        task: &TaskRecord,
        by: CheckpointId,
        fields: &[FieldRecord],
    ) -> Result<PendingRow, CheckpointError> {
        let any = task.writes().iter().any(|write| tail_place(fields, write).is_some());
        self.pending(checkpoint, std::slice::from_ref(task), any.then_some(by), fields)
    }

    /// The records that runs made of a task, in the order of the runs.
    fn pending(
        &self,
        checkpoint: CheckpointId,
        runs: &[TaskRecord],
        consumed: Option<CheckpointId>,
        fields: &[FieldRecord],
    ) -> Result<PendingRow, CheckpointError> {
        let (first, later) = runs.split_first().expect("a row is of one run at least");
        for record in runs {
            self.check_depth(checkpoint, "question", record.interrupts().into_iter().flatten().map(|q| &q.value))?;
            self.check_depth(checkpoint, "answer", record.resume())?;
        }
        let columns = pending_columns(checkpoint, first.task(), consumed);
        let body = NewTask::new(first, fields).followed_by(later);
        let body = self.sealed(&self.context(b"pending", &columns), &body, checkpoint)?;
        Ok(PendingRow { checkpoint, task: first.task(), consumed, body })
    }

    /// An outline, sealed.
    pub(crate) fn outline(&self, id: CheckpointId, outline: &Outline) -> Result<NewOutline, CheckpointError> {
        let sealed = self.sealed(&self.context(b"outline", &id_bytes(id)), outline, id)?;
        Ok(NewOutline { id, owners: outline.owners(id), sealed })
    }

    /// The same row of pending writes, with the values that lie in the checkpoint that consumed them.
    pub fn whole(&self, row: &PendingRow, read_rows: &ReadRows) -> Result<PendingRow, CheckpointError> {
        self.pending(row.checkpoint, &self.runs(row, read_rows)?, None, &[])
    }

    /// Whether a row has something that a run wrote.
    pub fn is_of_run(&self, row: &PendingRow, run: &str) -> Result<bool, CheckpointError> {
        Ok(self.open_pending(row)?.runs.iter().any(|record| record.run() == Some(run)))
    }

    /// The row without what a run wrote; nothing, if all of it is that run's.
    pub fn without_run(
        &self,
        row: &PendingRow,
        run: &str,
        read_rows: &ReadRows,
    ) -> Result<Option<PendingRow>, CheckpointError> {
        let mut runs = self.runs(row, read_rows)?;
        runs.retain(|record| record.run() != Some(run));
        if runs.is_empty() { Ok(None) } else { self.pending(row.checkpoint, &runs, None, &[]).map(Some) }
    }

    /// What is known of a task, with a later record of it.
    pub fn merged(
        &self,
        known: &PendingRow,
        later: &PendingRow,
        read_rows: &ReadRows,
    ) -> Result<PendingRow, CheckpointError> {
        let mut runs = self.runs(known, read_rows)?;
        for record in self.runs(later, read_rows)? {
            match runs.iter_mut().find(|known| known.run() == record.run()) {
                Some(known) => merge_task(known, record),
                None => runs.push(record),
            }
        }
        self.pending(known.checkpoint, &runs, None, &[])
    }

    fn runs(&self, row: &PendingRow, read_rows: &ReadRows) -> Result<Vec<TaskRecord>, CheckpointError> {
        read_rows.runs(&self.open_pending(row)?).map_err(|missing| self.damaged(row.checkpoint, missing))
    }

    /// A checkpoint that was read; its shape is looked up among those that were read with it.
    pub(crate) fn open(
        &self,
        stored: StoredRow,
        shapes: &HashMap<IdBytes, Blob>,
    ) -> Result<(CheckpointId, Box<Row>), CheckpointError> {
        let columns = self.columns(&stored)?;
        let (id, context, parents) = (columns.id, columns.bytes(), [columns.parent, columns.base]);
        if columns.base >= Some(id) {
            return Err(self.fail(id, "base", "it is not older than the checkpoint; the database is damaged"));
        }
        let Columns { source, step, shape, .. } = columns;
        let body: CheckpointBody =
            self.opened(&self.context(b"checkpoint", &context), &stored.body, id, "checkpoint")?;
        let outline = self.open_outline(id, stored.outline.as_deref())?;
        let source = source_from(source).ok_or_else(|| self.fail(id, "source", "there is no such source"))?;
        let shape = shapes.get(&shape).cloned();
        let has_shape = shape.is_some();
        let (record, cuts) = body.into_record(id, parents, source, step, stored.run, shape);
        let needs_base = !cuts.is_empty();
        Ok((id, Box::new(Row { record, has_shape, cuts, needs_base, outline })))
    }

    /// The same row, sealed for another thread, where its shape has this name.
    pub fn resealed(
        &self,
        stored: StoredRow,
        to: RowCodec<'_>,
        shape: IdBytes,
    ) -> Result<(NewRow, Option<NewOutline>), CheckpointError> {
        let columns = self.columns(&stored)?;
        let (id, context) = (columns.id, columns.bytes());
        let opened = self.seal.open(&self.context(b"checkpoint", &context), &stored.body);
        let body = opened.map_err(|why| self.fail(id, "checkpoint", why.to_string()))?;
        let outline = self.open_outline(id, stored.outline.as_deref())?;
        let outline = outline.map(|outline| to.outline(id, &outline)).transpose()?;
        let context = Columns { shape, ..columns }.bytes();
        let Columns { parent, base, root, source, step, created_at, .. } = columns;
        let row = NewRow {
            id,
            parent,
            base,
            head: None,
            root,
            source,
            step,
            created_at,
            shape,
            shape_body: None,
            needs_base: stored.needs_base,
            body: to.seal.seal(&to.context(b"checkpoint", &context), &body),
            pending: Vec::new(),
            run: stored.run.map(Into::into),
        };
        Ok((row, outline))
    }

    /// The same row of pending writes, sealed for another thread.
    pub fn resealed_pending(&self, row: &PendingRow, to: RowCodec<'_>) -> Result<PendingRow, CheckpointError> {
        let columns = pending_columns(row.checkpoint, row.task, row.consumed);
        let opened = self.seal.open(&self.context(b"pending", &columns), &row.body);
        let body = opened.map_err(|why| self.fail(row.checkpoint, "pending writes", why.to_string()))?;
        let body = to.seal.seal(&to.context(b"pending", &columns), &body);
        Ok(PendingRow { checkpoint: row.checkpoint, task: row.task, consumed: row.consumed, body })
    }

    fn columns<'b>(&self, stored: &'b StoredRow) -> Result<Columns<'b>, CheckpointError> {
        let damaged = |why: String| self.fail("?", "row", why);
        let id = id_from(&stored.id).map_err(damaged)?;
        let other = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(id_from).transpose().map_err(damaged);
        Ok(Columns {
            id,
            parent: other(&stored.parent)?,
            base: other(&stored.base)?,
            root: other(&stored.root)?,
            source: stored.source,
            step: stored.step,
            created_at: stored.created_at,
            run: stored.run.as_deref(),
            shape: stored.shape[..].try_into().map_err(|_| self.fail(id, "shape", "it is cut off"))?,
        })
    }

    fn open_outline(&self, id: CheckpointId, sealed: Option<&[u8]>) -> Result<Option<Outline>, CheckpointError> {
        let Some(sealed) = sealed else { return Ok(None) };
        let outline: Outline = self.opened(&self.context(b"outline", &id_bytes(id)), sealed, id, "outline")?;
        if !outline.is_sound() {
            return Err(self.fail(id, "outline", "it names something twice"));
        }
        Ok(Some(outline))
    }

    /// The same shape as another thread has it: its name there, and what is sealed.
    pub fn resealed_shape(
        &self,
        digest: &[u8],
        sealed: Option<&[u8]>,
        to: RowCodec<'_>,
    ) -> Result<(IdBytes, Vec<u8>), CheckpointError> {
        let missing = || self.fail("?", "shape", "it is not in the database; the database is damaged");
        let (_, shape) = self.open_shape(digest, sealed.ok_or_else(missing)?)?;
        let digest = to.shape_digest(&shape);
        Ok((digest, to.seal.seal(&[b"shape", &digest], &shape)))
    }

    /// A shape, with its digest.
    pub fn open_shape(&self, digest: &[u8], sealed: &[u8]) -> Result<(IdBytes, Blob), CheckpointError> {
        let digest: IdBytes = digest.try_into().map_err(|_| self.fail("?", "shape", "its digest is cut off"))?;
        let opened = self.seal.open(&[b"shape", &digest], sealed);
        let bytes = opened.map_err(|why| self.fail("?", "shape", why.to_string()))?;
        Ok((digest, Blob::from(&*bytes)))
    }

    /// What a task wrote, opened; values that lie elsewhere are not brought in.
    pub(crate) fn open_pending(&self, row: &PendingRow) -> Result<Pending, CheckpointError> {
        let columns = pending_columns(row.checkpoint, row.task, row.consumed);
        let body: TaskBody =
            self.opened(&self.context(b"pending", &columns), &row.body, row.checkpoint, "pending writes")?;
        let (mut in_tail, mut runs) = (Vec::new(), Vec::new());
        body.into_runs(row.task, &mut runs, &mut |ix, place| in_tail.push((ix, place)));
        Ok(Pending { checkpoint: row.checkpoint, consumed: row.consumed, in_tail, runs })
    }

    /// Something of this namespace cannot be read or written.
    #[expect(clippy::needless_pass_by_value, reason = "ids and words are small")]
    pub fn fail(&self, checkpoint: impl ToString, what: impl Into<String>, why: impl Into<String>) -> CheckpointError {
        CheckpointError::codec(self.thread, checkpoint.to_string(), what, why)
    }

    /// Refuses what could be written and not be read.
    fn check_depth<'v>(
        &self,
        checkpoint: CheckpointId,
        what: &str,
        values: impl IntoIterator<Item = &'v Value>,
    ) -> Result<(), CheckpointError> {
        if values.into_iter().any(|value| is_deeper(value, DEEPEST_JSON)) {
            return Err(self.fail(
                checkpoint,
                what,
                format!("it has more than {DEEPEST_JSON} levels; make it flatter"),
            ));
        }
        Ok(())
    }

    fn context<'b>(&'b self, kind: &'b [u8], rest: &'b [u8]) -> [&'b [u8]; 4]
    where
        'a: 'b,
    {
        [kind, self.thread.as_bytes(), self.namespace.as_bytes(), rest]
    }

    fn sealed(
        &self,
        context: &[&[u8]],
        body: &impl Serialize,
        checkpoint: CheckpointId,
    ) -> Result<Vec<u8>, CheckpointError> {
        with_scratch(|bytes| {
            let encoded = rmp_serde::encode::write(bytes, body);
            encoded.map_err(|why| self.fail(checkpoint, "record", why.to_string()))?;
            Ok(self.seal.seal(context, bytes))
        })
    }

    fn opened<T: DeserializeOwned>(
        &self,
        context: &[&[u8]],
        sealed: &[u8],
        checkpoint: CheckpointId,
        what: &str,
    ) -> Result<T, CheckpointError> {
        let bytes = self.seal.open(context, sealed).map_err(|why| self.fail(checkpoint, what, why.to_string()))?;
        decode(&bytes, DEEPEST).map_err(|why| self.fail(checkpoint, what, why))
    }
}

impl CheckpointBody {
    fn into_record(
        self,
        id: CheckpointId,
        [parent, base]: [Option<CheckpointId>; 2],
        source: Source,
        step: i64,
        run: Option<String>,
        shape: Option<Blob>,
    ) -> (CheckpointRecord, Vec<Cut>) {
        let (seconds, nanos) = self.created_at;
        let since = Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanos.into()));
        let parents = self.parents.into_iter().map(|(name, id)| (name, CheckpointId::from_u128(id)));
        let mut cuts = Vec::new();
        let fields = self.fields.into_iter().enumerate().map(|(field, (name, value))| {
            let value = value.into_value(|write, at, len| cuts.push(Cut { field, write, at, len }));
            FieldRecord::new(name, value)
        });
        let fields = fields.collect();
        let record = CheckpointRecord::new(id, source, step)
            .with_format(self.format)
            .with_parent(parent)
            .with_base(base)
            .with_run(run.map(Into::into))
            .with_created_at(SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH))
            .with_metadata(self.metadata)
            .with_parents(parents.collect::<BTreeMap<_, _>>())
            .with_shape(shape.unwrap_or_default())
            .with_control(self.control)
            .with_fields(fields);
        (record, cuts)
    }
}

impl TaskBody {
    /// The records of the runs; of each write of the first that lies in a tail, `in_tail` is told where.
    fn into_runs(self, task: TaskId, runs: &mut Vec<TaskRecord>, in_tail: &mut dyn FnMut(usize, usize)) {
        let mut writes = Vec::with_capacity(self.writes.len());
        for (ix, (channel, value, overwrite)) in self.writes.into_iter().enumerate() {
            let value = match value {
                WriteValue::Here(value) => value,
                WriteValue::InTail(place) => {
                    in_tail(ix, place as usize);
                    Blob::default()
                }
            };
            writes.push(WriteRecord::new(channel, value).with_overwrite(overwrite));
        }
        let (run, later) = self.more.unwrap_or_default();
        let record = TaskRecord::new(task, self.path)
            .with_run(run.map(Into::into))
            .with_writes(writes)
            .with_error(self.error)
            .with_handled(self.handled)
            .with_interrupts(self.interrupts)
            .with_resume(self.resume.map(|(resume,)| resume));
        runs.push(record);
        // Only the first record of a row refers to tails.
        later.into_iter().for_each(|body| body.into_runs(task, runs, &mut |_, _| {}));
    }
}

impl BodyValue {
    fn into_value(self, mut cut: impl FnMut(usize, usize, usize)) -> FieldValue {
        let mut write = |(place, write): (usize, BodyWrite)| match write {
            BodyWrite::Here(bytes) => bytes,
            BodyWrite::Cut(at, len) => {
                cut(place, at as usize, len as usize);
                Blob::default()
            }
        };
        match self {
            BodyValue::Whole(bytes) => FieldValue::Whole(bytes),
            BodyValue::Tail(writes) => FieldValue::Tail(writes.into_iter().enumerate().map(&mut write).collect()),
            BodyValue::Absent => FieldValue::Absent,
        }
    }
}

/// The columns beside a body, as what it is sealed with: none can be changed alone.
struct Columns<'a> {
    id: CheckpointId,
    parent: Option<CheckpointId>,
    base: Option<CheckpointId>,
    root: Option<CheckpointId>,
    source: i64,
    step: i64,
    created_at: i64,
    run: Option<&'a str>,
    shape: IdBytes,
}

impl Columns<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&id_bytes(self.id));
        for other in [self.parent, self.base, self.root] {
            push_optional(&mut bytes, other);
        }
        for number in [self.source, self.step, self.created_at] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.extend_from_slice(&self.shape);
        if let Some(run) = self.run {
            bytes.push(1);
            bytes.extend_from_slice(run.as_bytes());
        }
        bytes
    }
}

fn pending_columns(checkpoint: CheckpointId, task: TaskId, consumed: Option<CheckpointId>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(49);
    bytes.extend_from_slice(&id_bytes(checkpoint));
    bytes.extend_from_slice(&task.as_u128().to_be_bytes());
    push_optional(&mut bytes, consumed);
    bytes
}

fn push_optional(bytes: &mut Vec<u8>, id: Option<CheckpointId>) {
    match id {
        Some(id) => {
            bytes.push(1);
            bytes.extend_from_slice(&id_bytes(id));
        }
        None => bytes.push(0),
    }
}

/// Where a write lies in the tail of its field, if it does and a reference is worth it.
fn tail_place(fields: &[FieldRecord], write: &WriteRecord) -> Option<u32> {
    if write.value().len() < WORTH_A_REFERENCE {
        return None;
    }
    let field = fields.iter().find(|field| field.name() == write.channel())?;
    match field.value() {
        FieldValue::Tail(tail) => tail.iter().position(|value| value == write.value()).map(|place| place as u32),
        _ => None,
    }
}

impl RowCodec<'_> {
    /// The name of a shape. Who has no key, or another one, has another name for it: nobody's shape is in the way of
    /// those who cannot open it.
    fn shape_digest(&self, shape: &[u8]) -> IdBytes {
        match self.seal.key_mark() {
            None => xxh3_128(shape).to_be_bytes(),
            Some(mark) => xxh3_128(&[mark, shape].concat()).to_be_bytes(),
        }
    }
}

/// The number of what made a checkpoint.
pub fn source_number(source: Source) -> i64 {
    source.number().into()
}

fn source_from(number: i64) -> Option<Source> {
    Source::from_number(number.try_into().ok()?)
}
