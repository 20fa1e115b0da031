//! The way to the checkpointer: what changed is encoded, saved in order, and read back.

mod journal;
mod queue;

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;

use indexmap::IndexMap;
use serde_json::Value;

pub(crate) use self::journal::{Entry, Journal};
use self::journal::{TailSize, size_of};
use self::queue::SaveQueue;
use super::apply::{keeps_last, merge_again};
use super::bridge::{Bridge, describe, migrated_state};
use super::control;
use super::live::{Former, Live, MOST_STEPS};
use super::writes::{TaskWrites, version_mark};
use crate::checkpoint::{
    CheckpointError, CheckpointRecord, Checkpointer, Durability, Epoch, FORMAT, FieldRecord, FieldValue, Lease,
    ListQuery, SavedCheckpoint, SavedField, Source, TaskRecord, WriteRecord,
};
use crate::error::CodecError;
use crate::id::{CheckpointId, IdSource, TaskId};
use crate::plan::Plan;
use crate::state::Scratch;
use crate::state::erased::{Snapshot, Writes};
use crate::wall::{Panicked, caught};

/// What records say of whoever makes them.
#[derive(Clone)]
pub(crate) struct Scribe {
    pub(crate) thread: Arc<str>,
    pub(crate) run: Option<Arc<str>>,
}

impl Scribe {
    /// Why something cannot be part of a checkpoint that is being made.
    pub(crate) fn unsavable(&self, what: impl Into<String>, why: &dyn std::fmt::Display) -> CheckpointError {
        CheckpointError::codec(&*self.thread, "being made", what, why.to_string())
    }
}

/// Saves the checkpoints of one graph of one thread.
#[derive(Clone)]
pub(crate) struct Saver {
    pub(crate) checkpointer: Arc<dyn Checkpointer>,
    pub(crate) scribe: Scribe,
    pub(crate) thread: Arc<str>,
    pub(crate) namespace: Arc<str>,
    pub(crate) durability: Durability,
    /// Makes the ids of checkpoints.
    pub(crate) ids: Arc<IdSource>,
    /// From the claim of the thread; before it nothing is written.
    pub(crate) epoch: Epoch,
    /// The checkpoint that was loaded, if an earlier version of the state made it, and the version now.
    pub(crate) older: Option<(CheckpointId, u32)>,
    queue: Arc<SaveQueue>,
}

/// What a checkpoint says besides the live state.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) id: CheckpointId,
    pub(crate) parent: Option<CheckpointId>,
    pub(crate) base: Option<CheckpointId>,
    pub(crate) head: Option<CheckpointId>,
    pub(crate) source: Source,
    pub(crate) step: i64,
}

/// A checkpoint read back. It is handed on in a box: most runs have none to load and need no place for it.
pub(crate) struct Loaded {
    pub(crate) record: CheckpointRecord,
    pub(crate) live: Live,
    pub(crate) pending: Pending,
    /// An earlier version of the state made it.
    pub(crate) is_older: bool,
    /// The graph has, or knows of, a node of the graph that made it.
    pub(crate) has_known_node: bool,
    /// What of it is nested too deep to be read, and is left out.
    pub(crate) too_deep: Vec<TooDeep>,
}

/// A value of a checkpoint that is nested too deep to be read.
pub(crate) struct TooDeep {
    /// The field; `None` if a task wrote it.
    pub(crate) field: Option<usize>,
    pub(crate) error: CheckpointError,
}

/// What becomes of a checkpoint with values that are nested too deep to be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It is not read.
    Whole,
    /// They are left out, to be looked past or replaced.
    WithoutTooDeep,
}

/// What was written after a checkpoint.
#[derive(Default)]
pub(crate) struct Pending {
    /// What a caller brought along.
    pub(crate) null: TaskWrites,
    /// Its records, in the order in which they came: a checkpointer keeps what came first.
    pub(crate) null_log: Vec<WriteRecord>,
    pub(crate) null_resume: Option<Value>,
    pub(crate) tasks: IndexMap<TaskId, TaskWrites>,
    /// Those of which something is to be saved at the end of the run.
    pub(crate) unsaved: Vec<TaskId>,
}

impl Pending {
    pub(crate) fn of(&self, task: TaskId) -> Option<&TaskWrites> {
        self.tasks.get(&task)
    }

    pub(crate) fn set(&mut self, task: TaskId, writes: TaskWrites) {
        self.tasks.insert(task, writes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && !self.null.has_output() && self.null_resume.is_none()
    }

    /// Whether there is nothing to clear, as after most steps.
    fn is_blank(&self) -> bool {
        self.is_empty() && self.null_log.is_empty() && self.unsaved.is_empty() && !self.null.done
    }

    pub(crate) fn clear(&mut self) {
        if self.is_blank() {
            return;
        }
        *self = Self::default();
    }
}

impl Saver {
    pub(crate) fn new(
        checkpointer: Arc<dyn Checkpointer>,
        thread: Arc<str>,
        namespace: impl Into<Arc<str>>,
        durability: Durability,
        ids: Arc<IdSource>,
        run: Option<Arc<str>>,
    ) -> Self {
        let namespace = namespace.into();
        let scribe = Scribe { thread: thread.clone(), run };
        let epoch = Epoch::from_u64(0);
        Self { checkpointer, scribe, thread, namespace, durability, ids, epoch, older: None, queue: Arc::default() }
    }

    /// Takes over the thread; gives the latest checkpoint of the namespace, and the one that was asked for.
    pub(crate) async fn claim(
        &mut self,
        plan: &Plan,
        checkpoint: Option<CheckpointId>,
        reading: Reading,
    ) -> Result<(Option<CheckpointId>, Option<Box<Loaded>>), CheckpointError> {
        let claim = (*self.checkpointer).claim(&self.thread, &self.namespace, checkpoint).await?;
        self.epoch = claim.epoch;
        claim.head.iter().for_each(|head| self.ids.met(*head));
        let found = claim.found.map(|saved| self.decode_as(plan, saved, reading)).transpose()?;
        self.older = found.as_ref().filter(|found| found.is_older).map(|found| (found.record.id, plan.version));
        if found.as_ref().is_some_and(|found| !found.has_known_node) {
            tracing::warn!(
                thread = &*self.thread,
                graph = &*plan.name,
                "the thread was saved by a graph of which this one has no node; it resumes with the fields that both have"
            );
        }
        Ok((claim.head, found))
    }

    /// The latest checkpoint of the namespace.
    pub(crate) async fn head(&self) -> Result<Option<CheckpointId>, CheckpointError> {
        let latest = (*self.checkpointer).list(&self.thread, &self.namespace, &ListQuery::new().limit(1)).await?;
        let head = latest.first().map(|saved| saved.record.id);
        head.iter().for_each(|head| self.ids.met(*head));
        Ok(head)
    }

    fn lease(&self) -> Lease<'_> {
        Lease::new(&self.thread, &self.namespace, self.epoch).awaited(self.durability != Durability::Async)
    }

    pub(crate) async fn load(
        &self,
        plan: &Plan,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Option<Box<Loaded>>, CheckpointError> {
        match self.checkpointer.get(&self.thread, &self.namespace, checkpoint).await? {
            Some(saved) => self.decode(plan, saved).map(Some),
            None => Ok(None),
        }
    }

    fn fail(&self, checkpoint: CheckpointId, what: impl Into<String>, why: impl Into<String>) -> CheckpointError {
        CheckpointError::codec(&*self.thread, checkpoint, what, why)
    }

    pub(crate) fn decode(&self, plan: &Plan, saved: SavedCheckpoint) -> Result<Box<Loaded>, CheckpointError> {
        self.decode_as(plan, saved, Reading::Whole)
    }

    pub(crate) fn decode_as(
        &self,
        plan: &Plan,
        saved: SavedCheckpoint,
        reading: Reading,
    ) -> Result<Box<Loaded>, CheckpointError> {
        let SavedCheckpoint { record, fields, writes } = saved;
        let id = record.id;
        self.check(&record)?;
        self.ids.met(id);
        let bridge = (record.shape != plan.labels.shape).then(|| Bridge::read(plan, &record.shape)).transpose();
        let bridge = bridge.map_err(|why| self.fail(id, "triggers", why))?;
        let bridge = bridge.map(|bridge| self.of_this_graph(plan, bridge, |bridge| bridge.is_of_another_graph(plan)));
        let bridge = bridge.transpose()?;
        let mut live = Live::empty(plan);
        let older = self.older_version(plan, &record, bridge.as_ref(), &fields)?;
        let mut too_deep = Vec::new();
        match older {
            None => self.decode_fields(plan, id, &fields, &mut live, &mut too_deep)?,
            Some(version) => self.migrate_fields(plan, id, version, &fields, &mut live, &mut too_deep)?,
        }
        let former = bridge.as_ref().map(|bridge| &bridge.former).filter(|former| !former.is_empty());
        live.former = former.map(|former| Arc::new(Former(former.clone())));
        control::decode(plan, bridge.as_ref(), &record.control, &mut live)
            .map_err(|why| self.fail(id, "triggers", why))?;
        let has_lost_work = !live.lost.is_empty();
        let is_other = |bridge: &Bridge| has_lost_work && bridge.is_named_otherwise(plan);
        let bridge = bridge.map(|bridge| self.of_this_graph(plan, bridge, is_other)).transpose()?;
        let has_known_node = bridge.as_ref().is_none_or(|bridge| bridge.knows_a_node(plan));
        let pending = decode_pending(plan, bridge.as_ref(), writes, &mut live.lost);
        let pending = pending.or_else(|why| {
            let error = self.fail(id, "pending writes", why.to_string());
            if !why.is_too_deep() {
                return Err(error);
            }
            too_deep.push(TooDeep { field: None, error });
            Ok(Pending::default())
        })?;
        if reading == Reading::Whole && !too_deep.is_empty() {
            return Err(too_deep.swap_remove(0).error);
        }
        Ok(Box::new(Loaded { record, live, pending, is_older: older.is_some(), has_known_node, too_deep }))
    }

    /// What another graph has saved is refused: it would begin anew under a name that is taken.
    fn of_this_graph(
        &self,
        plan: &Plan,
        bridge: Bridge,
        is_other: impl FnOnce(&Bridge) -> bool,
    ) -> Result<Bridge, CheckpointError> {
        if !is_other(&bridge) {
            return Ok(bridge);
        }
        let graph = format!("this one, {},", describe(plan));
        Err(CheckpointError::other_graph(&self.thread, &self.namespace, &bridge.describe(), &graph))
    }

    /// A checkpoint of a newer release, or one that no release has made, is refused.
    fn check(&self, record: &CheckpointRecord) -> Result<(), CheckpointError> {
        if record.format > FORMAT {
            return Err(CheckpointError::newer_format(&self.thread, record.id, record.format, FORMAT));
        }
        if !(-2..MOST_STEPS).contains(&record.step) {
            return Err(self.fail(record.id, "step", format!("{} is no number that a step has", record.step)));
        }
        Ok(())
    }

    /// The version of the state that made a checkpoint, if it is an earlier one that can be migrated.
    fn older_version(
        &self,
        plan: &Plan,
        record: &CheckpointRecord,
        bridge: Option<&Bridge>,
        fields: &[SavedField],
    ) -> Result<Option<u32>, CheckpointError> {
        let Some(found) = bridge.map(|bridge| bridge.version).filter(|found| *found != plan.version) else {
            return Ok(None);
        };
        if found > plan.version {
            return Err(CheckpointError::newer_state(&self.thread, record.id, found, plan.version));
        }
        match plan.evolution.missing(found, plan.version) {
            None => Ok(Some(found)),
            Some(missing) => {
                let fields: Vec<_> = fields.iter().map(|field| &*field.name).collect();
                let versions = [found, plan.version, missing];
                Err(CheckpointError::missing_migration(&self.thread, record.id, versions, &fields))
            }
        }
    }

    /// Reads the fields of an earlier version. All of them are written anew with the next checkpoint.
    fn migrate_fields(
        &self,
        plan: &Plan,
        id: CheckpointId,
        version: u32,
        saved: &[SavedField],
        live: &mut Live,
        too_deep: &mut Vec<TooDeep>,
    ) -> Result<(), CheckpointError> {
        let what = || format!("state of version {version}, read as version {}", plan.version);
        let fields = migrated_state(plan, version, saved).map_err(|why| self.fail(id, what(), why))?;
        self.decode_fields(plan, id, &fields, live, too_deep).map_err(|error| match error.of_value() {
            Some((field, why)) => self.fail(id, what(), format!("{field}: {why}")),
            None => error,
        })?;
        let journal = live.journal.get_or_insert_default();
        let is_left_out = |place: &usize| too_deep.iter().any(|value| value.field == Some(*place));
        let read = fields.iter().filter_map(|field| plan.field_named(&field.name)).filter(|place| !is_left_out(place));
        read.for_each(|place| journal.dirty(place));
        for old in saved.iter().filter(|old| !fields.iter().any(|field| field.name == old.name)) {
            match plan.field_named(&old.name) {
                Some(place) => journal.absent(place),
                None => journal.gone.push(old.name.clone()),
            }
        }
        Ok(())
    }

    fn decode_fields(
        &self,
        plan: &Plan,
        id: CheckpointId,
        fields: &[SavedField],
        live: &mut Live,
        too_deep: &mut Vec<TooDeep>,
    ) -> Result<(), CheckpointError> {
        let mut journal = Journal::default();
        let state = &mut live.state;
        let mut restored = Vec::new();
        for field in fields {
            let Some(place) = plan.field_named(&field.name) else { continue };
            let fail = |why: String| self.fail(id, format!("field `{}`", field.name), why);
            let size = match decode_field(plan, place, field, state) {
                Ok(size) => size,
                Err(why) if why.is_too_deep() => {
                    too_deep.push(TooDeep { field: Some(place), error: fail(why.to_string()) });
                    plan.ty.reset(state, place);
                    journal.absent(place);
                    continue;
                }
                Err(why) => return Err(fail(why.to_string())),
            };
            journal.tails.push((place, size));
            restored.push(place);
        }
        for place in restored {
            if plan.kind(place) != crate::FieldKind::Custom || plan.ty.has_value(&live.state, place) {
                live.present.set(place);
            }
        }
        live.journal = Some(journal);
        Ok(())
    }

    /// Makes the record of a checkpoint: what changed in the live state since the last one.
    pub(crate) fn record(
        &self,
        plan: &Plan,
        live: &mut Live,
        header: Header,
    ) -> Result<CheckpointRecord, CheckpointError> {
        let Header { id, parent, base, head, source, step } = header;
        let mut record = CheckpointRecord::new(id, source, step);
        (record.parent, record.base, record.head) = (parent, base, head);
        record.run = self.scribe.run.clone();
        record.shape = plan.labels.shape.clone();
        record.fields = self.changed_fields(plan, live, id)?;
        record.control = control::encode(plan, live).map_err(|why| self.fail(id, "what comes next", why))?;
        Ok(record)
    }

    /// The fields that changed since the last checkpoint; the journal begins anew.
    fn changed_fields(
        &self,
        plan: &Plan,
        live: &mut Live,
        id: CheckpointId,
    ) -> Result<Vec<FieldRecord>, CheckpointError> {
        let Journal { changed, tails, gone } = live.journal.get_or_insert_default();
        let mut fields = Vec::with_capacity(changed.len() + gone.len());
        for (field, entry) in changed.drain(..) {
            if plan.untracked.contains(&field) {
                continue;
            }
            let size = size_of(tails, field);
            let value = match entry {
                Entry::Absent => FieldValue::Absent,
                Entry::Whole(bytes) => {
                    *size = TailSize::of_whole(bytes.len());
                    FieldValue::Whole(bytes)
                }
                Entry::Tail(writes) if size.takes(&writes) => FieldValue::Tail(writes),
                entry @ (Entry::Tail(_) | Entry::Dirty) => {
                    let bytes = plan.ty.encode_field(&live.state, field);
                    let what = || format!("field `{}`", plan.fields()[field].name());
                    let bytes = bytes.map_err(|e| self.fail(id, what(), e.to_string()))?;
                    match entry {
                        Entry::Tail(writes) if size.is_all_value(&writes, bytes.len()) => FieldValue::Tail(writes),
                        _ => {
                            *size = TailSize::of_whole(bytes.len());
                            FieldValue::Whole(bytes)
                        }
                    }
                }
            };
            fields.push(FieldRecord::new(plan.label(plan.channel_of_field(field)), value));
        }
        fields.extend(gone.drain(..).map(|name| FieldRecord::new(name, FieldValue::Absent)));
        Ok(fields)
    }

    /// Saves a checkpoint: at once with durability `sync`, else after what was saved before.
    pub(crate) async fn put(&self, mut record: CheckpointRecord) -> Result<(), CheckpointError> {
        if self.older.is_some() {
            let base = record.base;
            let writes = record.writes.iter_mut().map(|task| &mut task.writes);
            writes.for_each(|writes| *writes = self.marked(base, std::mem::take(writes)));
        }
        self.save(Job::Checkpoint(record)).await
    }

    pub(crate) async fn put_writes(
        &self,
        checkpoint: CheckpointId,
        mut task: TaskRecord,
    ) -> Result<(), CheckpointError> {
        // The log of a caller's writes is marked where writes of this version begin.
        if task.task != TaskId::NULL {
            task.writes = self.marked(Some(checkpoint), task.writes);
        }
        self.save(Job::Writes(checkpoint, task)).await
    }

    async fn save(&self, job: Job) -> Result<(), CheckpointError> {
        let _turn = self.queue.turn().await;
        if self.durability != Durability::Async {
            self.queue.settle().await?;
            return self.queue.note(caught_save(job.save(&*self.checkpointer, self.lease())).await);
        }
        if self.queue.len() >= self.most_under_way() {
            self.queue.settle().await?;
        }
        self.queue.check()?;
        let mut saving = Box::pin(self.save_beside(job));
        match std::future::poll_fn(|cx| Poll::Ready(saving.as_mut().poll(cx))).await {
            Poll::Ready(result) => {
                if result.is_err() {
                    // An earlier save that failed is the cause: this one only misses what it should have left.
                    self.queue.settle().await?;
                }
                self.queue.note(result)
            }
            Poll::Pending => {
                self.queue.add(tokio::spawn(saving));
                Ok(())
            }
        }
    }

    /// A save that needs nothing of the run. It has begun when it was polled once.
    fn save_beside(&self, job: Job) -> impl Future<Output = Result<(), CheckpointError>> + Send + use<> {
        let (checkpointer, epoch) = (self.checkpointer.clone(), self.epoch);
        let (thread, namespace) = (self.thread.clone(), self.namespace.clone());
        async move { caught_save(job.save(&*checkpointer, Lease::new(&thread, &namespace, epoch))).await }
    }

    /// Writes under a checkpoint; if an earlier version of the state made the checkpoint, they say that they are of
    /// this one.
    pub(crate) fn marked(&self, checkpoint: Option<CheckpointId>, writes: Vec<WriteRecord>) -> Vec<WriteRecord> {
        match self.older {
            Some((older, version)) if checkpoint == Some(older) && !writes.is_empty() => {
                std::iter::once(version_mark(version)).chain(writes).collect()
            }
            _ => writes,
        }
    }

    /// How many saves may go on beside the run.
    fn most_under_way(&self) -> usize {
        if self.durability == Durability::Async && self.checkpointer.keeps_order() { 64 } else { 1 }
    }

    /// Waits until all is saved.
    pub(crate) async fn flush(&self) -> Result<(), CheckpointError> {
        let _turn = self.queue.turn().await;
        self.queue.settle().await
    }
}

fn decode_field(plan: &Plan, place: usize, field: &SavedField, state: &mut Snapshot) -> Result<TailSize, CodecError> {
    if keeps_last(plan.kind(place)) && !field.tail.is_empty() {
        return Err(CodecError::new(lost_reducer(&field.name)));
    }
    if let Some(whole) = &field.whole {
        let decoded = plan.ty.decode_field(state, place, whole);
        decoded.map_err(|error| misfit(whole, error))?;
    }
    let mut scratch = Scratch::default();
    for bytes in &field.tail {
        let mut write = Writes::default();
        plan.ty.decode_write(&mut write, place, bytes, false).map_err(|error| misfit(bytes, error))?;
        let merged = merge_again(plan, state, write, &mut scratch);
        merged.map_err(|e| CodecError::new(e.to_string()))?;
    }
    let tail = field.tail.iter().map(|b| b.len()).sum();
    Ok(TailSize::read_back(field.whole.as_ref().map_or(0, |b| b.len()), tail))
}

fn decode_pending(
    plan: &Plan,
    bridge: Option<&Bridge>,
    records: Vec<TaskRecord>,
    lost: &mut Vec<String>,
) -> Result<Pending, CodecError> {
    let mut pending = Pending::default();
    for record in records {
        let (task, is_null) = (record.task, record.task == TaskId::NULL);
        if is_null {
            pending.null_log = record.writes.clone();
        }
        let record = match bridge {
            Some(bridge) => bridge.record(plan, record, lost).map_err(CodecError::new)?,
            None => record,
        };
        let mut writes = TaskWrites::from_record(plan, &record)?;
        if is_null {
            pending.null_resume = writes.rest_mut().resume.take().and_then(|mut answers| answers.given.pop());
            pending.null = writes;
        } else {
            pending.tasks.insert(task, writes);
        }
    }
    Ok(pending)
}

/// A save by a checkpointer; a panic of it is a save that failed.
async fn caught_save(saving: impl Future<Output = Result<(), CheckpointError>>) -> Result<(), CheckpointError> {
    let mut saving = std::pin::pin!(saving);
    std::future::poll_fn(|cx| {
        let polled = caught(|| saving.as_mut().poll(cx));
        polled.unwrap_or_else(|panicked| Poll::Ready(Err(save_panicked(&panicked))))
    })
    .await
}

#[cold]
fn save_panicked(panicked: &Panicked) -> CheckpointError {
    CheckpointError::backend(format!("the checkpointer panicked in a save: {panicked}"))
}

/// Only the last piece of what was saved would be left.
fn lost_reducer(field: &str) -> String {
    format!(
        "it was saved piece by piece for a reducer that the field no longer has; put the reducer back, or give the state \
         a new version and put the pieces together in `migrate`: \
         `if let Some(all) = fields.remove(\"{field}\") {{ fields.insert(\"{field}\", all) }}`"
    )
}

/// A saved value that does not fit its field, in words. Its first byte says what it is; the rest may be anything.
fn misfit(saved: &[u8], error: CodecError) -> CodecError {
    if error.is_too_deep() {
        return error;
    }
    let what = match saved.first() {
        Some(0xc0) => "nothing",
        Some(0xc2 | 0xc3) => "true or false",
        Some(0x00..=0x7f | 0xca..=0xd3 | 0xe0..) => "a number",
        Some(0xa0..=0xbf | 0xd9..=0xdb) => "text",
        Some(0x90..=0x9f | 0xdc | 0xdd) => "a list",
        Some(0x80..=0x8f | 0xde | 0xdf) => "a structure with names",
        _ => return error,
    };
    CodecError::new(format!(
        "{error}; it was saved as {what}. If its type has changed, give the state a new version and use `migrate`"
    ))
}

/// Something to save.
enum Job {
    Checkpoint(CheckpointRecord),
    Writes(CheckpointId, TaskRecord),
}

impl Job {
    async fn save(self, checkpointer: &dyn Checkpointer, lease: Lease<'_>) -> Result<(), CheckpointError> {
        match self {
            Self::Checkpoint(record) => checkpointer.put(lease, record).await,
            Self::Writes(at, task) => checkpointer.put_writes(lease, at, task).await,
        }
    }
}
