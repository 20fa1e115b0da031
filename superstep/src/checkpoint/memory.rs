//! Checkpoints in memory: for tests, and for threads that need not survive the process.
//!
//! Every checkpoint shares what did not change with its base, so a step costs what it wrote.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use crate::checkpoint::Blob;
use async_trait::async_trait;
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    CheckpointError, CheckpointRecord, Checkpointer, FieldValue, ListQuery, Name, SavedCheckpoint, SavedField, Saving,
    TaskRecord,
};
use crate::id::{ByTask, CheckpointId};

/// Keeps checkpoints in memory; clones share them.
///
/// ```
/// use superstep::{AgentState, EchoAgent, MemorySaver, Message, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new()
///     .add_node("echo", EchoAgent)
///     .add_edge(START, "echo")
///     .checkpointer(MemorySaver::new())
///     .compile()?;
/// app.invoke(AgentState { messages: vec![Message::user("one")] }).thread("t").await?;
/// let out = app.invoke(AgentState { messages: vec![Message::user("two")] }).thread("t").await?;
/// assert_eq!(out.state.messages.len(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemorySaver {
    shards: Arc<[Mutex<Threads>; 16]>,
}

type Threads = HashMap<Box<str>, Thread, Seeded>;

/// The root graph's checkpoints, and those of subgraphs by their namespace.
#[derive(Debug, Default)]
struct Thread {
    root: Namespace,
    inner: BTreeMap<Box<str>, Namespace>,
}

impl Thread {
    fn get(&self, namespace: &str) -> Option<&Namespace> {
        if namespace.is_empty() { Some(&self.root) } else { self.inner.get(namespace) }
    }

    fn get_mut(&mut self, namespace: &str) -> &mut Namespace {
        if namespace.is_empty() { &mut self.root } else { self.inner.entry(namespace.into()).or_default() }
    }
}

/// A quick hash whose seed no stranger knows.
#[derive(Debug, Clone)]
struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Seeded {
    type Hasher = SeededHasher;
    fn build_hasher(&self) -> SeededHasher {
        SeededHasher(self.0)
    }
}

struct SeededHasher(u64);

impl Hasher for SeededHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }
    fn write_u8(&mut self, _: u8) {
        // The mark after a text: keys are single texts.
    }
}

/// The checkpoints in the order of their ids, which is mostly the order in which they come.
#[derive(Debug, Default)]
struct Namespace {
    checkpoints: Vec<Entry>,
}

/// The fields that have a value; few states have many.
type Fields = SmallVec<[(Name, Kept); 1]>;

#[derive(Debug)]
struct Entry {
    record: CheckpointRecord,
    fields: Fields,
    writes: ByTask<TaskRecord>,
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

impl MemorySaver {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Works on a thread, which is made if it is not there.
    fn change<T>(&self, thread: &str, f: impl FnOnce(&mut Thread) -> T) -> T {
        self.with(thread, |threads| {
            if let Some(known) = threads.get_mut(thread) {
                return f(known);
            }
            let mut new = Thread::default();
            let result = f(&mut new);
            threads.insert(thread.into(), new);
            result
        })
    }

    fn with<T>(&self, thread: &str, f: impl FnOnce(&mut Threads) -> T) -> T {
        let shard = xxhash_rust::xxh3::xxh3_64(thread.as_bytes()) as usize % self.shards.len();
        f(&mut self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn read<T>(&self, thread: &str, namespace: &str, f: impl FnOnce(&Namespace) -> T) -> Option<T> {
        self.with(thread, |threads| threads.get(thread)?.get(namespace).map(f))
    }
}

impl Namespace {
    /// Where a checkpoint is, or where it would have to be.
    fn place(&self, id: CheckpointId) -> Result<usize, usize> {
        match self.checkpoints.last() {
            Some(last) if last.record.id == id => Ok(self.checkpoints.len() - 1),
            Some(last) if last.record.id > id => self.checkpoints.binary_search_by_key(&id, |e| e.record.id),
            _ => Err(self.checkpoints.len()),
        }
    }

    fn get(&self, id: CheckpointId) -> Option<&Entry> {
        self.place(id).ok().map(|place| &self.checkpoints[place])
    }

    fn put(&mut self, mut record: CheckpointRecord) -> Result<(), CheckpointError> {
        let base = record.base.and_then(|base| self.get(base));
        if base.is_none() && record.base.is_some() {
            return Err(CheckpointError::backend(format!("checkpoint {} builds on one that is not there", record.id)));
        }
        let known = base.map_or(&[][..], |b| &b.fields);
        let changed = std::mem::take(&mut record.fields);
        let mut fields: Fields = known.iter().cloned().collect();
        let writes = std::mem::take(&mut record.writes);
        for changed in changed {
            let place = fields.iter().position(|(name, _)| *name == changed.name);
            match (changed.value, place) {
                (FieldValue::Absent, Some(place)) => drop(fields.remove(place)),
                (FieldValue::Absent, None) => {}
                (FieldValue::Whole(bytes), Some(place)) => fields[place].1 = Kept::Whole(bytes),
                (FieldValue::Whole(bytes), None) => fields.push((changed.name, Kept::Whole(bytes))),
                (FieldValue::Tail(writes), Some(place)) => {
                    let before = Some(fields[place].1.clone());
                    fields[place].1 = Kept::Tail(Arc::new(Tail { before, writes }));
                }
                (FieldValue::Tail(writes), None) => {
                    fields.push((changed.name, Kept::Tail(Arc::new(Tail { before: None, writes }))));
                }
            }
        }
        if let Some(base) = record.base {
            self.put_all_writes(base, writes)?;
        }
        let entry = Entry { fields, writes: ByTask::default(), record };
        match self.place(entry.record.id) {
            Ok(place) => self.checkpoints[place] = entry,
            Err(place) => {
                if self.checkpoints.is_empty() {
                    // Few threads stop after four.
                    self.checkpoints.reserve_exact(8);
                }
                self.checkpoints.insert(place, entry);
            }
        }
        Ok(())
    }

    fn put_all_writes(&mut self, checkpoint: CheckpointId, tasks: Vec<TaskRecord>) -> Result<(), CheckpointError> {
        match self.place(checkpoint) {
            // What one save brings is of different tasks.
            Ok(place) if self.checkpoints[place].writes.is_empty() => self.checkpoints[place].writes.add_all(tasks),
            _ => tasks.into_iter().try_for_each(|task| self.put_writes(checkpoint, task))?,
        }
        Ok(())
    }

    fn put_writes(&mut self, checkpoint: CheckpointId, task: TaskRecord) -> Result<(), CheckpointError> {
        let missing = || CheckpointError::backend(format!("there is no checkpoint {checkpoint} to write to"));
        let place = self.place(checkpoint).map_err(|_| missing())?;
        let entry = &mut self.checkpoints[place];
        match entry.writes.place(task.task) {
            Some(place) => entry.writes[place].absorb(task),
            None => entry.writes.push(task),
        }
        Ok(())
    }
}

impl Entry {
    fn saved(&self) -> SavedCheckpoint {
        let fields = self.fields.iter().map(|(name, kept)| kept.saved(name.clone())).collect();
        SavedCheckpoint::new(self.record.clone(), fields, self.writes.to_vec())
    }
}

impl Kept {
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

#[async_trait]
impl Checkpointer for MemorySaver {
    fn put(&self, thread: &str, namespace: &str, checkpoint: CheckpointRecord) -> Saving {
        Saving::done(self.change(thread, |known| known.get_mut(namespace).put(checkpoint)))
    }

    fn put_writes(&self, thread: &str, namespace: &str, checkpoint: CheckpointId, task: TaskRecord) -> Saving {
        Saving::done(self.change(thread, |known| known.get_mut(namespace).put_writes(checkpoint, task)))
    }

    async fn get(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Option<SavedCheckpoint>, CheckpointError> {
        let find = |ns: &Namespace| match checkpoint {
            Some(id) => ns.get(id).map(Entry::saved),
            None => ns.checkpoints.last().map(Entry::saved),
        };
        Ok(self.read(thread, namespace, find).flatten())
    }

    async fn list(
        &self,
        thread: &str,
        namespace: &str,
        query: &ListQuery,
    ) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        let find = |ns: &Namespace| {
            let found = ns.checkpoints.iter().rev().filter(|e| query.matches(&e.record));
            found.take(query.limit.unwrap_or(usize::MAX)).map(Entry::saved).collect()
        };
        Ok(self.read(thread, namespace, find).unwrap_or_default())
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        let names = |t: &Thread| {
            let root = (!t.root.checkpoints.is_empty()).then(String::new);
            root.into_iter().chain(t.inner.keys().map(ToString::to_string)).collect()
        };
        Ok(self.with(thread, |threads| threads.get(thread).map(names)).unwrap_or_default())
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError> {
        self.with(thread, |threads| threads.remove(thread));
        Ok(())
    }
}
