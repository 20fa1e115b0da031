//! A checkpointer that anyone can check by reading: every checkpoint holds its whole state, and every record of a task
//! that ever came.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::checkpoint::{CheckpointRecord, Epoch, FieldValue, ListQuery, SavedCheckpoint, SavedField, TaskRecord};
use crate::id::{CheckpointId, TaskId};
use crate::value::Blob;

#[derive(Default)]
pub(super) struct Naive {
    pub(super) threads: BTreeMap<String, Thread>,
}

#[derive(Default, Clone)]
pub(super) struct Thread {
    /// The claim that may write; none after a copy.
    pub(super) lease: Option<Epoch>,
    /// Oldest first.
    pub(super) spaces: BTreeMap<String, Vec<Checkpoint>>,
}

#[derive(Clone)]
pub(super) struct Checkpoint {
    pub(super) record: CheckpointRecord,
    fields: BTreeMap<String, Held>,
    tasks: Vec<TaskRecord>,
}

/// The last whole value of a field, and the writes since.
type Held = (Option<Blob>, Vec<Blob>);

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    Fenced,
    Refused,
}

impl Naive {
    fn space(&mut self, thread: &str, epoch: Epoch, space: &str) -> Option<&mut Vec<Checkpoint>> {
        let thread = self.threads.get_mut(thread).filter(|thread| thread.lease == Some(epoch))?;
        Some(thread.spaces.entry(space.to_owned()).or_default())
    }

    pub(super) fn put(&mut self, thread: &str, space: &str, epoch: Epoch, record: &CheckpointRecord) -> Ending {
        let Some(all) = self.space(thread, epoch, space) else { return Ending::Fenced };
        let latest = all.last().map(|latest| latest.record.id);
        if latest == Some(record.id) {
            return Ending::Done;
        }
        if latest != record.head || latest > Some(record.id) {
            return Ending::Fenced;
        }
        let mut fields = BTreeMap::new();
        if let Some(id) = record.base {
            let Some(base) = all.iter_mut().find(|base| base.record.id == id) else { return Ending::Refused };
            fields = base.fields.clone();
            base.tasks.extend(record.writes.iter().cloned());
        }
        for field in &record.fields {
            change(&mut fields, &field.name, &field.value);
        }
        all.push(Checkpoint { record: record.clone(), fields, tasks: Vec::new() });
        Ending::Done
    }

    pub(super) fn write(
        &mut self,
        thread: &str,
        space: &str,
        epoch: Epoch,
        at: CheckpointId,
        task: &TaskRecord,
    ) -> Ending {
        let Some(all) = self.space(thread, epoch, space) else { return Ending::Fenced };
        match all.iter_mut().find(|known| known.record.id == at) {
            Some(known) => known.tasks.push(task.clone()),
            None => return Ending::Refused,
        }
        Ending::Done
    }

    /// Oldest first.
    pub(super) fn all(&self, thread: &str, space: &str) -> &[Checkpoint] {
        let thread = self.threads.get(thread);
        thread.and_then(|thread| thread.spaces.get(space)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn get(&self, thread: &str, space: &str, at: Option<CheckpointId>) -> Option<SavedCheckpoint> {
        let all = self.all(thread, space);
        let found = all.iter().rev().find(|known| at.is_none_or(|id| known.record.id == id));
        found.map(Checkpoint::saved)
    }

    pub(super) fn list(&self, thread: &str, space: &str, query: &ListQuery) -> Vec<SavedCheckpoint> {
        let wanted = |known: &&Checkpoint| {
            let record = &known.record;
            query.before.is_none_or(|before| record.id < before)
                && query.only.is_none_or(|only| record.id == only)
                && query.source.is_none_or(|source| record.source == source)
                && query.step.is_none_or(|step| record.step == step)
                && query.run.as_deref().is_none_or(|run| record.run() == Some(run))
                && query.metadata.iter().all(|(key, value)| record.metadata.get(key) == Some(value))
        };
        let found = self.all(thread, space).iter().rev().filter(wanted);
        found.take(query.limit.unwrap_or(usize::MAX)).map(Checkpoint::saved).collect()
    }

    pub(super) fn namespaces(&self, thread: &str) -> Vec<String> {
        let spaces = self.threads.get(thread).into_iter().flat_map(|thread| &thread.spaces);
        spaces.filter(|(_, all)| !all.is_empty()).map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn threads(&self, after: Option<&str>, limit: usize) -> Vec<String> {
        let names = self.threads.keys().filter(|name| !self.namespaces(name).is_empty());
        names.filter(|name| after.is_none_or(|after| name.as_str() > after)).take(limit).cloned().collect()
    }

    pub(super) fn copy(&mut self, from: &str, to: &str) -> Ending {
        if self.namespaces(from).is_empty() || !self.namespaces(to).is_empty() {
            return Ending::Refused;
        }
        let spaces = self.threads[from].spaces.clone();
        self.threads.insert(to.to_owned(), Thread { lease: None, spaces });
        Ending::Done
    }

    pub(super) fn keep_last(&mut self, thread: &str, count: usize) -> usize {
        let root = self.all(thread, "");
        let kept: Vec<CheckpointId> = root.iter().rev().take(count.max(1)).map(|known| known.record.id).collect();
        self.prune(thread, &kept)
    }

    pub(super) fn forget_before(&mut self, thread: &str, moment: SystemTime) -> usize {
        let root = self.all(thread, "");
        let recent = |(place, known): &(usize, &Checkpoint)| {
            micros(known.record.created_at) >= micros(moment) || place + 1 == root.len()
        };
        let kept: Vec<CheckpointId> =
            root.iter().enumerate().filter(recent).map(|(_, known)| known.record.id).collect();
        self.prune(thread, &kept)
    }

    fn prune(&mut self, thread: &str, root: &[CheckpointId]) -> usize {
        let Some(held) = self.threads.get_mut(thread) else { return 0 };
        let mut forgotten = 0;
        for (space, all) in &mut held.spaces {
            let latest = all.last().map(|latest| latest.record.id);
            let stays = |known: &Checkpoint| match space.as_str() {
                "" => root.contains(&known.record.id),
                inner => {
                    let under = known.record.parents.get("");
                    let under_kept = under.is_some_and(|under| root.contains(under)) || under > root.iter().max();
                    under_kept || (!inner.contains(':') && Some(known.record.id) == latest)
                }
            };
            let before = all.len();
            all.retain(stays);
            forgotten += before - all.len();
        }
        if forgotten > 0 && held.spaces.values().all(Vec::is_empty) {
            self.threads.remove(thread);
        }
        forgotten
    }

    pub(super) fn delete_run(&mut self, run: &str) -> usize {
        let mut forgotten = 0;
        self.threads.retain(|_, thread| {
            let of_thread = thread.delete_run(run);
            forgotten += of_thread;
            of_thread == 0 || thread.spaces.values().any(|all| !all.is_empty())
        });
        forgotten
    }
}

impl Thread {
    fn delete_run(&mut self, run: &str) -> usize {
        let mut forgotten = 0;
        for all in self.spaces.values_mut() {
            let before = all.len();
            all.retain(|known| known.record.run() != Some(run));
            all.iter_mut().for_each(|known| known.tasks.retain(|record| record.run() != Some(run)));
            forgotten += before - all.len();
        }
        forgotten
    }
}

fn micros(moment: SystemTime) -> u128 {
    moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros()
}

fn change(fields: &mut BTreeMap<String, Held>, name: &str, value: &FieldValue) {
    match value {
        FieldValue::Absent => drop(fields.remove(name)),
        FieldValue::Whole(bytes) => drop(fields.insert(name.to_owned(), (Some(bytes.clone()), Vec::new()))),
        FieldValue::Tail(writes) => fields.entry(name.to_owned()).or_default().1.extend(writes.iter().cloned()),
    }
}

impl Checkpoint {
    fn saved(&self) -> SavedCheckpoint {
        let fields = self.fields.iter();
        let fields = fields.map(|(name, (whole, tail))| SavedField::new(name.as_str(), whole.clone(), tail.clone()));
        let mut tasks: Vec<TaskId> = self.tasks.iter().map(|record| record.task).collect();
        tasks.sort_unstable();
        tasks.dedup();
        let writes = tasks.into_iter().map(|task| self.task(task)).collect();
        SavedCheckpoint::new(self.record.clone(), fields.collect(), writes)
    }

    /// What all records of a task come to.
    fn task(&self, task: TaskId) -> TaskRecord {
        let mut records: Vec<&TaskRecord> = self.tasks.iter().filter(|record| record.task == task).collect();
        // What one run wrote stands together, in the place of the first of it.
        let runs: Vec<Option<&str>> = records.iter().map(|record| record.run()).collect();
        records.sort_by_key(|record| runs.iter().position(|run| *run == record.run()));
        let most = records.iter().map(|record| record.writes.len()).max().unwrap_or_default();
        let first = |place: usize| records.iter().find_map(|record| record.writes.get(place)).cloned();
        TaskRecord::new(task, records[0].path())
            .with_run(records[0].run.clone())
            .with_writes((0..most).filter_map(first).collect())
            .with_error(records.iter().rev().find_map(|record| record.error.clone()))
            .with_handled(records.iter().any(|record| record.handled))
            .with_interrupts(records.iter().rev().find_map(|record| record.interrupts.clone()))
            .with_resume(records.iter().rev().find_map(|record| record.resume.clone()))
    }
}
