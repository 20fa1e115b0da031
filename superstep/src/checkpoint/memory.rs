//! Checkpoints in memory: for tests, and for threads that need not survive the process.

mod namespace;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use self::namespace::Namespace;
use super::backend::{Deletion, plan_prune};
use super::{
    CheckpointError, CheckpointRecord, Checkpointer, Claim, Epoch, Lease, ListQuery, Prune, SavedCheckpoint, Swept,
    TaskRecord, check_name,
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

    fn namespaces(&self) -> impl Iterator<Item = (&str, &Namespace)> {
        let inner = self.inner.iter().map(|(name, space)| (&**name, space));
        std::iter::once(("", &self.root)).chain(inner).filter(|(_, space)| !space.is_empty())
    }

    fn is_empty(&self) -> bool {
        self.namespaces().next().is_none()
    }

    /// Takes out of a namespace what goes, and says how many checkpoints that were.
    fn delete(&mut self, namespace: &str, deletion: &Deletion) -> usize {
        let deleted = self.get_mut(namespace).delete(deletion);
        self.inner.retain(|_, space| !space.is_empty());
        deleted
    }

    fn delete_run(&mut self, run: &str) -> usize {
        let root = self.root.delete_run(run);
        let inner: usize = self.inner.values_mut().map(|space| space.delete_run(run)).sum();
        self.inner.retain(|_, space| !space.is_empty());
        root + inner
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

    /// What someone who claimed a thread works on.
    fn claimed<'a>(&self, shard: &'a mut Shard, lease: Lease<'_>) -> Result<&'a mut Namespace, CheckpointError> {
        let thread = shard.threads.get_mut(lease.thread);
        lease.check(thread.as_ref().map(|thread| Epoch::from_u64(thread.epoch)))?;
        let thread = thread.expect("a lease is for a thread that is there");
        thread.used_at = self.ttl.map(|_| Instant::now());
        Ok(thread.get_mut(lease.namespace))
    }

    fn shard(&self, thread: &str) -> MutexGuard<'_, Shard> {
        let shard = xxhash_rust::xxh3::xxh3_64(thread.as_bytes()) as usize % self.shards.len();
        self.shards[shard].lock()
    }

    fn each_shard(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(Locked::lock)
    }

    fn read<T>(&self, thread: &str, f: impl FnOnce(&Thread) -> T) -> Option<T> {
        let shard = self.shard(thread);
        shard.threads.get(thread).filter(|thread| !self.is_expired(thread)).map(f)
    }

    fn is_expired(&self, thread: &Thread) -> bool {
        self.ttl.zip(thread.used_at).is_some_and(|(ttl, used_at)| used_at.elapsed() >= ttl)
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
        let mut shard = self.shard(thread);
        shard.epoch += 1;
        let (epoch, used_at) = (shard.epoch, self.ttl.map(|_| Instant::now()));
        let Some(known) = shard.threads.get_mut(thread) else {
            shard.threads.insert(thread.into(), Thread { epoch, used_at, ..Thread::default() });
            return Ok(Claim::new(Epoch::from_u64(epoch), None, None));
        };
        if self.is_expired(known) {
            *known = Thread::default();
        }
        (known.epoch, known.used_at) = (epoch, used_at);
        let space = known.get(namespace);
        let found = space.and_then(|space| space.find(checkpoint));
        Ok(Claim::new(Epoch::from_u64(epoch), space.and_then(Namespace::head), found))
    }

    async fn put(&self, lease: Lease<'_>, checkpoint: CheckpointRecord) -> Result<(), CheckpointError> {
        let mut shard = self.shard(lease.thread);
        self.claimed(&mut shard, lease)?.put(lease, checkpoint)
    }

    async fn put_writes(
        &self,
        lease: Lease<'_>,
        checkpoint: CheckpointId,
        task: TaskRecord,
    ) -> Result<(), CheckpointError> {
        let mut shard = self.shard(lease.thread);
        self.claimed(&mut shard, lease)?.put_writes(checkpoint, task)
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
        let names = |known: &Thread| known.namespaces().map(|(name, _)| name.to_owned()).collect();
        Ok(self.read(thread, names).unwrap_or_default())
    }

    async fn threads(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, CheckpointError> {
        let mut names = Vec::new();
        for shard in self.each_shard() {
            let alive = shard.threads.iter().filter(|(_, thread)| !self.is_expired(thread) && !thread.is_empty());
            let wanted = alive.filter(|(name, _)| after.is_none_or(|after| &***name > after));
            names.extend(wanted.map(|(name, _)| name.to_string()));
        }
        names.sort_unstable();
        names.truncate(limit);
        Ok(names)
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError> {
        self.shard(thread).threads.remove(thread);
        Ok(())
    }

    async fn delete_checkpoints(
        &self,
        thread: &str,
        namespace: &str,
        deletion: &Deletion,
    ) -> Result<usize, CheckpointError> {
        let mut shard = self.shard(thread);
        let Some(known) = shard.threads.get_mut(thread) else { return Ok(0) };
        let deleted = known.delete(namespace, deletion);
        if deleted > 0 && known.is_empty() {
            shard.threads.remove(thread);
        }
        Ok(deleted)
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), CheckpointError> {
        check_name(to)?;
        let all = |known: &Thread| (!known.is_empty()).then(|| (known.root.clone(), known.inner.clone()));
        let (root, inner) = self.read(from, all).flatten().ok_or_else(|| CheckpointError::nothing_to_copy(from))?;
        let mut shard = self.shard(to);
        if shard.threads.get(to).is_some_and(|known| !self.is_expired(known) && !known.is_empty()) {
            return Err(CheckpointError::name_taken(to));
        }
        shard.epoch += 1;
        let (epoch, used_at) = (shard.epoch, self.ttl.map(|_| Instant::now()));
        shard.threads.insert(to.into(), Thread { epoch, used_at, root, inner });
        Ok(())
    }

    async fn prune(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError> {
        let mut shard = self.shard(thread);
        let Some(known) = shard.threads.get_mut(thread) else { return Ok(0) };
        let summaries = known.namespaces().map(|(name, space)| (name.to_owned(), space.summaries())).collect();
        let plan = plan_prune(&summaries, prune);
        let deleted = plan.into_iter().map(|(namespace, gone)| known.delete(&namespace, &Deletion::of(gone))).sum();
        if deleted > 0 && known.is_empty() {
            shard.threads.remove(thread);
        }
        Ok(deleted)
    }

    async fn delete_run(&self, run: &str) -> Result<usize, CheckpointError> {
        let mut deleted = 0;
        for mut shard in self.each_shard() {
            shard.threads.retain(|_, known| {
                let of_thread = known.delete_run(run);
                deleted += of_thread;
                of_thread == 0 || !known.is_empty()
            });
        }
        Ok(deleted)
    }

    async fn sweep(&self) -> Result<Swept, CheckpointError> {
        let mut expired = 0;
        for mut shard in self.each_shard() {
            shard.threads.retain(|_, known| {
                let is_expired = self.is_expired(known);
                expired += usize::from(is_expired && !known.is_empty());
                !is_expired
            });
        }
        Ok(Swept { expired, orphans: 0 })
    }
}
