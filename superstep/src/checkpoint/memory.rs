//! Checkpoints in memory: for tests, and for threads that need not survive the process.
//!
//! Every checkpoint shares what did not change with its base, so a step costs what it wrote.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::checkpoint::Blob;
use async_trait::async_trait;
use smallvec::SmallVec;
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::prune::Kept as PruneKept;
use super::{
    CheckpointError, CheckpointRecord, Checkpointer, Claim, Epoch, FieldValue, Lease, ListQuery, Name, Prune,
    SavedCheckpoint, SavedField, Saving, Source, Swept, TaskRecord, check_name,
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
    shards: Arc<[Mutex<Shard>; 16]>,
    ttl: Option<Duration>,
}

#[derive(Debug, Default)]
struct Shard {
    threads: HashMap<Box<str>, Thread, Seeded>,
    /// The last epoch that was given out: also a thread that was deleted and made again has no epoch twice.
    epoch: u64,
}

/// The root graph's checkpoints, and those of subgraphs by their namespace.
#[derive(Debug, Default)]
struct Thread {
    epoch: u64,
    /// When it was claimed or written last, if threads expire.
    used_at: Option<Instant>,
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

    fn spaces(&self) -> impl Iterator<Item = (&str, &Namespace)> {
        let inner = self.inner.iter().map(|(name, space)| (&**name, space));
        std::iter::once(("", &self.root)).chain(inner).filter(|(_, space)| !space.checkpoints.is_empty())
    }

    fn spaces_mut(&mut self) -> impl Iterator<Item = &mut Namespace> {
        std::iter::once(&mut self.root).chain(self.inner.values_mut())
    }

    /// Forgets what is not to be kept, and says how much that was.
    fn retain(&mut self, keep: impl Fn(&str, &Entry, bool) -> bool) -> usize {
        let root = self.root.retain(|entry, latest| keep("", entry, latest));
        let inner = self.inner.iter_mut().map(|(name, space)| space.retain(|entry, latest| keep(name, entry, latest)));
        let forgotten = root + inner.sum::<usize>();
        self.inner.retain(|_, space| !space.checkpoints.is_empty());
        forgotten
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
#[derive(Debug, Clone, Default)]
struct Namespace {
    checkpoints: Vec<Entry>,
}

/// The fields that have a value; few states have many.
type Fields = SmallVec<[(Name, Kept); 1]>;

#[derive(Debug, Clone)]
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

    /// Forgets threads that were neither claimed nor written to for so long.
    ///
    /// ```
    /// use std::time::Duration;
    /// let saver = superstep::MemorySaver::new().ttl(Duration::from_secs(3600));
    /// # let _ = saver;
    /// ```
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// Works on a thread for someone who claimed it.
    fn write(
        &self,
        lease: Lease<'_>,
        f: impl FnOnce(&mut Namespace) -> Result<(), CheckpointError>,
    ) -> Result<(), CheckpointError> {
        self.with(lease.thread, |shard| {
            let known = shard.threads.get_mut(lease.thread);
            match known {
                Some(thread) if thread.epoch == lease.epoch.as_u64() => {
                    thread.used_at = self.ttl.map(|_| Instant::now());
                    f(thread.get_mut(lease.namespace))
                }
                other => {
                    let current = other.map(|thread| Epoch::from_u64(thread.epoch));
                    Err(CheckpointError::fenced(lease.thread, lease.epoch, current))
                }
            }
        })
    }

    fn with<T>(&self, thread: &str, f: impl FnOnce(&mut Shard) -> T) -> T {
        let shard = xxhash_rust::xxh3::xxh3_64(thread.as_bytes()) as usize % self.shards.len();
        f(&mut self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn each_shard(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn read<T>(&self, thread: &str, f: impl FnOnce(&Thread) -> T) -> Option<T> {
        self.with(thread, |shard| shard.threads.get(thread).filter(|thread| !self.is_expired(thread)).map(f))
    }

    fn is_expired(&self, thread: &Thread) -> bool {
        self.ttl.zip(thread.used_at).is_some_and(|(ttl, used_at)| used_at.elapsed() >= ttl)
    }

    /// Changes a thread that is there.
    fn change<T: Default>(&self, thread: &str, f: impl FnOnce(&mut Thread) -> T) -> T {
        self.with(thread, |shard| shard.threads.get_mut(thread).map(f)).unwrap_or_default()
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

    fn head(&self) -> Option<CheckpointId> {
        self.checkpoints.last().map(|latest| latest.record.id)
    }

    fn find(&self, checkpoint: Option<CheckpointId>) -> Option<SavedCheckpoint> {
        match checkpoint {
            Some(id) => self.get(id).map(Entry::saved),
            None => self.checkpoints.last().map(Entry::saved),
        }
    }

    fn retain(&mut self, keep: impl Fn(&Entry, bool) -> bool) -> usize {
        let (before, head) = (self.checkpoints.len(), self.head());
        self.checkpoints.retain(|entry| keep(entry, Some(entry.record.id) == head));
        before - self.checkpoints.len()
    }

    /// Forgets what the steps of a run wrote under the checkpoints that they went on from.
    fn forget_writes_of(&mut self, run: &str) {
        for place in 0..self.checkpoints.len() {
            let record = &self.checkpoints[place].record;
            if record.run.as_deref() != Some(run) || record.source != Source::Loop {
                continue;
            }
            let (step, base) = (record.step, record.base.map(|base| self.place(base)));
            if let Some(Ok(base)) = base
                && self.checkpoints[base].record.step + 1 == step
            {
                self.checkpoints[base].writes = ByTask::default();
            }
        }
    }

    fn put(&mut self, lease: Lease<'_>, record: CheckpointRecord) -> Result<(), CheckpointError> {
        let head = self.head();
        if head == Some(record.id) {
            return Ok(());
        }
        if head == record.head && head < Some(record.id) {
            return self.add(record);
        }
        Err(CheckpointError::overtaken(lease.thread, lease.namespace, record.head, head))
    }

    fn add(&mut self, mut record: CheckpointRecord) -> Result<(), CheckpointError> {
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
        if self.checkpoints.is_empty() {
            // Few threads stop after four.
            self.checkpoints.reserve_exact(8);
        }
        self.checkpoints.push(Entry { fields, writes: ByTask::default(), record });
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
    async fn claim(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Claim, CheckpointError> {
        check_name(thread)?;
        self.with(thread, |shard| {
            shard.epoch += 1;
            let epoch = Epoch::from_u64(shard.epoch);
            let used_at = self.ttl.map(|_| Instant::now());
            let Some(known) = shard.threads.get_mut(thread) else {
                let new = Thread { epoch: shard.epoch, used_at, ..Thread::default() };
                shard.threads.insert(thread.into(), new);
                return Ok(Claim::new(epoch, None, None));
            };
            if self.is_expired(known) {
                *known = Thread::default();
            }
            (known.epoch, known.used_at) = (shard.epoch, used_at);
            let space = known.get(namespace);
            Ok(Claim::new(epoch, space.and_then(Namespace::head), space.and_then(|space| space.find(checkpoint))))
        })
    }

    fn put(&self, lease: Lease<'_>, checkpoint: CheckpointRecord) -> Saving {
        Saving::done(self.write(lease, |space| space.put(lease, checkpoint)))
    }

    fn put_writes(&self, lease: Lease<'_>, checkpoint: CheckpointId, task: TaskRecord) -> Saving {
        Saving::done(self.write(lease, |space| space.put_writes(checkpoint, task)))
    }

    async fn get(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Option<SavedCheckpoint>, CheckpointError> {
        Ok(self.read(thread, |known| known.get(namespace)?.find(checkpoint)).flatten())
    }

    async fn list(
        &self,
        thread: &str,
        namespace: &str,
        query: &ListQuery,
    ) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        let find = |space: &Namespace| {
            let found = space.checkpoints.iter().rev().filter(|e| query.matches(&e.record));
            found.take(query.limit.unwrap_or(usize::MAX)).map(Entry::saved).collect()
        };
        Ok(self.read(thread, |known| known.get(namespace).map(find)).flatten().unwrap_or_default())
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        let names = |known: &Thread| known.spaces().map(|(name, _)| name.to_owned()).collect();
        Ok(self.read(thread, names).unwrap_or_default())
    }

    async fn threads(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, CheckpointError> {
        let mut names = Vec::new();
        for shard in self.each_shard() {
            let alive = shard.threads.iter().filter(|(_, t)| !self.is_expired(t) && t.spaces().next().is_some());
            let wanted = alive.filter(|(name, _)| after.is_none_or(|after| &***name > after));
            names.extend(wanted.map(|(name, _)| name.to_string()));
        }
        names.sort_unstable();
        names.truncate(limit);
        Ok(names)
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError> {
        self.with(thread, |shard| shard.threads.remove(thread));
        Ok(())
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), CheckpointError> {
        check_name(to)?;
        let missing = || CheckpointError::backend(format!("there is no thread `{from}` to copy"));
        let root_and_inner = |known: &Thread| (known.root.clone(), known.inner.clone(), known.spaces().count());
        let (root, inner, spaces) = self.read(from, root_and_inner).ok_or_else(missing)?;
        if spaces == 0 {
            return Err(missing());
        }
        self.with(to, |shard| {
            if shard.threads.get(to).is_some_and(|known| !self.is_expired(known) && known.spaces().next().is_some()) {
                return Err(CheckpointError::backend(format!("there is a thread `{to}` already; delete it first")));
            }
            shard.epoch += 1;
            let used_at = self.ttl.map(|_| Instant::now());
            shard.threads.insert(to.into(), Thread { epoch: shard.epoch, used_at, root, inner });
            Ok(())
        })
    }

    async fn prune(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError> {
        Ok(self.change(thread, |known| {
            let root: Vec<_> = known.root.checkpoints.iter().map(|e| (e.record.id, e.record.created_at)).collect();
            let root = prune.kept(&root);
            let kept = PruneKept::new(&root);
            known.retain(|namespace, entry, is_latest| match namespace {
                "" => root.contains(&entry.record.id),
                inner => kept.keeps(inner, is_latest, entry.record.parents.get("").copied()),
            })
        }))
    }

    async fn delete_run(&self, run: &str) -> Result<usize, CheckpointError> {
        let stays = |entry: &Entry| entry.record.run.as_deref() != Some(run);
        let forget = |mut shard: MutexGuard<'_, Shard>| -> usize {
            let mut forgotten = 0;
            shard.threads.retain(|_, known| {
                known.spaces_mut().for_each(|space| space.forget_writes_of(run));
                let of_thread = known.retain(|_, entry, _| stays(entry));
                forgotten += of_thread;
                of_thread == 0 || known.spaces().next().is_some()
            });
            forgotten
        };
        Ok(self.each_shard().map(forget).sum())
    }

    async fn sweep(&self) -> Result<Swept, CheckpointError> {
        let mut expired = 0;
        for mut shard in self.each_shard() {
            let before = shard.threads.len();
            shard.threads.retain(|_, known| !self.is_expired(known));
            expired += before - shard.threads.len();
        }
        Ok(Swept { expired, orphans: 0 })
    }
}
