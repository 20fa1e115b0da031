//! Checkpoints in memory: for tests, and for threads that need not survive the process.
//!
//! Every checkpoint shares what did not change with its base, so a step costs what it wrote.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    CheckpointError, CheckpointRecord, Checkpointer, FieldValue, ListQuery, SavedCheckpoint, SavedField, TaskRecord,
};
use crate::id::CheckpointId;

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
    shards: Arc<[Mutex<HashMap<Box<str>, Thread>>; 16]>,
}

type Thread = HashMap<Box<str>, Namespace>;

#[derive(Debug, Default)]
struct Namespace {
    checkpoints: BTreeMap<CheckpointId, Entry>,
}

#[derive(Debug)]
struct Entry {
    record: CheckpointRecord,
    fields: Vec<(Arc<str>, Arc<Kept>)>,
    writes: Vec<TaskRecord>,
}

/// A field's value: whole, or writes on top of an older one.
#[derive(Debug)]
struct Kept {
    before: Option<Arc<Kept>>,
    value: FieldValue,
}

impl Drop for Kept {
    /// Long chains are taken apart one by one, not on the stack.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut kept) = next.and_then(Arc::into_inner) {
            next = kept.before.take();
        }
    }
}

impl MemorySaver {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, thread: &str, f: impl FnOnce(&mut HashMap<Box<str>, Thread>) -> T) -> T {
        let shard = xxhash_rust::xxh3::xxh3_64(thread.as_bytes()) as usize % self.shards.len();
        f(&mut self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn read<T>(&self, thread: &str, namespace: &str, f: impl FnOnce(&Namespace) -> T) -> Option<T> {
        self.with(thread, |threads| threads.get(thread)?.get(namespace).map(f))
    }
}

impl Namespace {
    fn put(&mut self, mut record: CheckpointRecord) -> Result<(), CheckpointError> {
        let base = record.base.and_then(|base| self.checkpoints.get(&base));
        if base.is_none() && record.base.is_some() {
            return Err(CheckpointError::backend(format!("checkpoint {} builds on one that is not there", record.id)));
        }
        let mut fields = base.map(|b| b.fields.clone()).unwrap_or_default();
        for changed in std::mem::take(&mut record.fields) {
            let place = fields.iter().position(|(name, _)| *name == changed.name);
            match (changed.value, place) {
                (FieldValue::Absent, Some(place)) => drop(fields.remove(place)),
                (FieldValue::Absent, None) => {}
                (value, place) => {
                    let tail = matches!(value, FieldValue::Tail(_));
                    let before = place.filter(|_| tail).map(|p| fields[p].1.clone());
                    let kept = Arc::new(Kept { before, value });
                    match place {
                        Some(place) => fields[place].1 = kept,
                        None => fields.push((changed.name, kept)),
                    }
                }
            }
        }
        self.checkpoints.insert(record.id, Entry { record, fields, writes: Vec::new() });
        Ok(())
    }

    fn put_writes(&mut self, checkpoint: CheckpointId, task: TaskRecord) -> Result<(), CheckpointError> {
        let missing = || CheckpointError::backend(format!("there is no checkpoint {checkpoint} to write to"));
        let entry = self.checkpoints.get_mut(&checkpoint).ok_or_else(missing)?;
        match entry.writes.iter_mut().find(|t| t.task == task.task) {
            Some(known) => known.absorb(task),
            None => entry.writes.push(task),
        }
        Ok(())
    }
}

impl Entry {
    fn saved(&self) -> SavedCheckpoint {
        let fields = self.fields.iter().map(|(name, kept)| kept.saved(name.clone())).collect();
        SavedCheckpoint::new(self.record.clone(), fields, self.writes.clone())
    }
}

impl Kept {
    fn saved(&self, name: Arc<str>) -> SavedField {
        let (mut whole, mut tails, mut next): (Option<Bytes>, Vec<&[Bytes]>, _) = (None, Vec::new(), Some(self));
        while let Some(kept) = next {
            match &kept.value {
                FieldValue::Whole(bytes) => {
                    whole = Some(bytes.clone());
                    break;
                }
                FieldValue::Tail(writes) => tails.push(writes),
                FieldValue::Absent => break,
            }
            next = kept.before.as_deref();
        }
        SavedField::new(name, whole, tails.into_iter().rev().flatten().cloned().collect())
    }
}

#[async_trait]
impl Checkpointer for MemorySaver {
    async fn put(&self, thread: &str, namespace: &str, checkpoint: CheckpointRecord) -> Result<(), CheckpointError> {
        self.with(thread, |threads| entry(entry(threads, thread), namespace).put(checkpoint))
    }

    async fn put_writes(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: CheckpointId,
        task: TaskRecord,
    ) -> Result<(), CheckpointError> {
        self.with(thread, |threads| entry(entry(threads, thread), namespace).put_writes(checkpoint, task))
    }

    async fn get(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Option<SavedCheckpoint>, CheckpointError> {
        let find = |ns: &Namespace| match checkpoint {
            Some(id) => ns.checkpoints.get(&id).map(Entry::saved),
            None => ns.checkpoints.values().next_back().map(Entry::saved),
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
            let found = ns.checkpoints.values().rev().filter(|e| query.matches(&e.record));
            found.take(query.limit.unwrap_or(usize::MAX)).map(Entry::saved).collect()
        };
        Ok(self.read(thread, namespace, find).unwrap_or_default())
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        let names = |t: &Thread| t.keys().map(ToString::to_string).collect();
        let mut names: Vec<String> = self.with(thread, |threads| threads.get(thread).map(names)).unwrap_or_default();
        names.sort();
        Ok(names)
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError> {
        self.with(thread, |threads| threads.remove(thread));
        Ok(())
    }
}

/// The entry of a key, without a copy of the key if it is there.
fn entry<'a, V: Default>(map: &'a mut HashMap<Box<str>, V>, key: &str) -> &'a mut V {
    if !map.contains_key(key) {
        map.insert(key.into(), V::default());
    }
    map.get_mut(key).expect("the lines above put it there")
}
