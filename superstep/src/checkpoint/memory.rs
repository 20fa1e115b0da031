//! Checkpoints in memory: for tests, and for threads that need not survive the process.
//!
//! Every checkpoint shares the values that did not change with its base, so a step costs what it wrote, and a few bytes for
//! each field that has a value.

mod packed;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::decide::{Decision, Facts};
use super::prune::Kept as PruneKept;
use super::{
    CheckpointError, CheckpointRecord, Checkpointer, Claim, Epoch, Lease, ListQuery, Prune, SavedCheckpoint, Saving,
    Source, Swept, TaskRecord, check_name,
};
use crate::id::CheckpointId;
use packed::{Packed, Place};

/// Keeps checkpoints in memory; clones share them. The root graph of a thread, and each of its subgraphs, may have 3 GB of
/// small values; then a run is refused until the thread is pruned.
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
    shards: Arc<[Locked; 32]>,
    ttl: Option<Duration>,
}

/// Lies apart from the next one: cores that write to different threads would fight over what lies between them.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Locked(Mutex<Shard>);

impl Locked {
    fn lock(&self) -> MutexGuard<'_, Shard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Shard {
    threads: HashMap<Box<str>, Thread>,
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
    fn retain(&mut self, keep: impl Fn(&str, &Namespace, Place) -> bool) -> usize {
        let root = self.root.retain(|space, place| keep("", space, place));
        let inner = self.inner.iter_mut().map(|(name, space)| space.retain(|space, place| keep(name, space, place)));
        let forgotten = root + inner.sum::<usize>();
        self.inner.retain(|_, space| !space.checkpoints.is_empty());
        forgotten
    }
}

/// The checkpoints in the order of their ids, which is mostly the order in which they come.
#[derive(Debug, Clone, Default)]
struct Namespace {
    checkpoints: Vec<Place>,
    packed: Packed,
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

    /// What someone who claimed a thread works on.
    fn claimed<'a>(&self, shard: &'a mut Shard, lease: Lease<'_>) -> Result<&'a mut Namespace, CheckpointError> {
        let thread = shard.threads.get_mut(lease.thread);
        lease.check(thread.as_ref().map(|thread| Epoch::from_u64(thread.epoch)))?;
        let thread = thread.expect("a lease is for a thread that is there");
        thread.used_at = self.ttl.map(|_| Instant::now());
        Ok(thread.get_mut(lease.namespace))
    }

    fn with<T>(&self, thread: &str, f: impl FnOnce(&mut Shard) -> T) -> T {
        f(&mut self.shard(thread))
    }

    fn shard(&self, thread: &str) -> MutexGuard<'_, Shard> {
        let shard = xxhash_rust::xxh3::xxh3_64(thread.as_bytes()) as usize % self.shards.len();
        self.shards[shard].lock()
    }

    fn each_shard(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(Locked::lock)
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
            Some(last) if last.id == id => Ok(self.checkpoints.len() - 1),
            Some(last) if last.id > id => self.checkpoints.binary_search_by_key(&id, |e| e.id),
            _ => Err(self.checkpoints.len()),
        }
    }

    fn head(&self) -> Option<CheckpointId> {
        self.checkpoints.last().map(|latest| latest.id)
    }

    fn find(&self, checkpoint: Option<CheckpointId>) -> Option<SavedCheckpoint> {
        let place = match checkpoint {
            Some(id) => self.checkpoints[self.place(id).ok()?],
            None => *self.checkpoints.last()?,
        };
        Some(self.packed.saved(place))
    }

    /// The checkpoints that are asked for, the latest first.
    fn list(&self, query: &ListQuery) -> Vec<SavedCheckpoint> {
        let is_wanted = |place: &&Place| {
            let head = self.packed.head(**place);
            query.wants(place.id, head.source, head.step, &self.packed.common(**place).metadata)
        };
        let found = self.checkpoints.iter().rev().filter(is_wanted);
        found.take(query.limit.unwrap_or(usize::MAX)).map(|place| self.packed.saved(*place)).collect()
    }

    fn retain(&mut self, keep: impl Fn(&Self, Place) -> bool) -> usize {
        let goes = |place: &&Place| !keep(self, **place);
        let forgotten = self.checkpoints.iter().filter(goes).count();
        if forgotten > 0 {
            self.checkpoints = self.checkpoints.iter().filter(|place| !goes(place)).copied().collect();
            self.packed.forgot(forgotten);
            self.tidy();
        }
        forgotten
    }

    /// Packs all anew if much of it is of no use any more.
    fn tidy(&mut self) {
        if self.packed.is_wasteful(self.checkpoints.len()) {
            self.packed = self.packed.only(&mut self.checkpoints);
        }
    }

    fn is_of_run(&self, place: Place, run: &str) -> bool {
        self.packed.common(place).run.as_deref() == Some(run)
    }

    /// Forgets what the steps of a run wrote under the checkpoints that they went on from.
    fn forget_writes_of(&mut self, run: &str) {
        for place in 0..self.checkpoints.len() {
            let head = self.packed.head(self.checkpoints[place]);
            if !self.is_of_run(self.checkpoints[place], run) || head.source != Source::Loop {
                continue;
            }
            if let Some(Ok(base)) = head.base.map(|base| self.place(base))
                && self.packed.head(self.checkpoints[base]).step + 1 == head.step
            {
                self.packed.forget_written(&mut self.checkpoints[base]);
            }
        }
    }

    fn check_room(&mut self) -> Result<(), CheckpointError> {
        if self.packed.is_full() {
            self.tidy();
        }
        if self.packed.is_full() {
            let full = "the small values of a namespace take more than 3 GB in memory; prune the thread";
            return Err(CheckpointError::refused(full));
        }
        Ok(())
    }

    fn put(&mut self, lease: Lease<'_>, record: &CheckpointRecord) -> Result<(), CheckpointError> {
        let base = record.base.and_then(|base| self.place(base).ok());
        let facts = Facts { head: self.head(), has_base: base.is_some() };
        match facts.decide_put(lease, record.into())? {
            Decision::Save => self.add(record, base),
            Decision::Known => Ok(()),
        }
    }

    fn add(&mut self, record: &CheckpointRecord, base: Option<usize>) -> Result<(), CheckpointError> {
        self.check_room()?;
        let place = self.packed.add(record, base.map(|base| self.checkpoints[base]));
        if let Some(base) = base {
            record.writes.iter().for_each(|task| self.packed.write(&mut self.checkpoints[base], task));
        }
        if self.checkpoints.len() == self.checkpoints.capacity() {
            // By half, not twofold: there are many threads, and most are short.
            self.checkpoints.reserve_exact((self.checkpoints.len() / 2).max(12));
        }
        self.checkpoints.push(place);
        Ok(())
    }

    fn put_writes(&mut self, checkpoint: CheckpointId, task: &TaskRecord) -> Result<(), CheckpointError> {
        self.check_room()?;
        let place = self.place(checkpoint);
        Facts { head: self.head(), has_base: place.is_ok() }.decide_writes(checkpoint)?;
        let place = place.expect("writes are for a checkpoint that is there");
        self.packed.write(&mut self.checkpoints[place], task);
        self.tidy();
        Ok(())
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

    fn put(&self, lease: Lease<'_>, checkpoint: &CheckpointRecord) -> Saving {
        let mut shard = self.shard(lease.thread);
        Saving::done(self.claimed(&mut shard, lease).and_then(|space| space.put(lease, checkpoint)))
    }

    fn put_writes(&self, lease: Lease<'_>, checkpoint: CheckpointId, task: TaskRecord) -> Saving {
        let mut shard = self.shard(lease.thread);
        Saving::done(self.claimed(&mut shard, lease).and_then(|space| space.put_writes(checkpoint, &task)))
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
        let find = |known: &Thread| known.get(namespace).map(|space| space.list(query));
        Ok(self.read(thread, find).flatten().unwrap_or_default())
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
        let missing = || CheckpointError::nothing_to_copy(from);
        let root_and_inner = |known: &Thread| (known.root.clone(), known.inner.clone(), known.spaces().count());
        let (root, inner, spaces) = self.read(from, root_and_inner).ok_or_else(missing)?;
        if spaces == 0 {
            return Err(missing());
        }
        self.with(to, |shard| {
            if shard.threads.get(to).is_some_and(|known| !self.is_expired(known) && known.spaces().next().is_some()) {
                return Err(CheckpointError::name_taken(to));
            }
            shard.epoch += 1;
            let used_at = self.ttl.map(|_| Instant::now());
            shard.threads.insert(to.into(), Thread { epoch: shard.epoch, used_at, root, inner });
            Ok(())
        })
    }

    async fn prune(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError> {
        Ok(self.change(thread, |known| {
            let times = |place: &Place| (place.id, known.root.packed.head(*place).created_at);
            let root: Vec<_> = known.root.checkpoints.iter().map(times).collect();
            let root = prune.kept(&root);
            let kept = PruneKept::new(&root);
            known.retain(|namespace, space, place| match namespace {
                "" => root.contains(&place.id),
                inner => {
                    let parents = &space.packed.common(place).parents;
                    kept.keeps(inner, space.head() == Some(place.id), parents.get("").copied())
                }
            })
        }))
    }

    async fn delete_run(&self, run: &str) -> Result<usize, CheckpointError> {
        let stays = |space: &Namespace, place| !space.is_of_run(place, run);
        let forget = |mut shard: MutexGuard<'_, Shard>| -> usize {
            let mut forgotten = 0;
            shard.threads.retain(|_, known| {
                known.spaces_mut().for_each(|space| space.forget_writes_of(run));
                let of_thread = known.retain(|_, space, place| stays(space, place));
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
            shard.threads.retain(|_, known| {
                let is_expired = self.is_expired(known);
                expired += usize::from(is_expired && known.spaces().next().is_some());
                !is_expired
            });
        }
        Ok(Swept { expired, orphans: 0 })
    }
}
