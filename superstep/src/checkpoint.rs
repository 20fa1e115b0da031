//! Checkpoints: what is saved, and where.
//!
//! A checkpointer works on bytes and plain records; a state's types stop at the [`Codec`](crate::Codec).
//! A checkpoint names its parent and its base, which is mostly the parent too, and holds the fields
//! that changed; all others are the base's. What a task wrote is saved as soon as the task has finished, under the
//! checkpoint that the step started from.

pub mod backend;
mod error;
mod interrupt;
mod lease;
mod memory;
mod provided;
mod prune;
mod record;

use async_trait::async_trait;

use crate::id::CheckpointId;

pub use backend::Deletion;
pub use error::{CheckpointError, CheckpointErrorKind};
pub use interrupt::Interrupt;
pub use lease::{Claim, Epoch, Lease};
pub use memory::MemorySaver;
pub use prune::{Prune, Swept};
pub(crate) use record::{Ancestors, FORMAT, Metadata};
pub use record::{
    CheckpointRecord, FieldRecord, FieldValue, ListQuery, SavedCheckpoint, SavedField, Source, TaskRecord, WriteRecord,
};

/// Where checkpoints are kept.
///
/// Nine methods are to be written, as plain `async fn`s under [`async_trait`](crate::async_trait); the others work by them,
/// and a database that can do better overrides them. [`backend`] has the rules as functions. Implementations give back
/// exactly what they were given, and keep these rules:
/// - a checkpoint inherits the fields it does not hold from its `base`;
/// - the task records that come with it are added to the pending writes of the base, together with it or not at all;
/// - of a task's ordinary writes the first ones saved stay, while its error, questions and answers are replaced;
/// - whoever writes holds a [`Lease`]: with an epoch that is not the thread's current one, or a checkpoint whose
///   `head` is not the latest of its namespace or that is not newer than it, nothing is written and the answer is
///   [`Fenced`](CheckpointErrorKind::Fenced);
/// - saving the same checkpoint again, as after a lost answer, changes nothing;
/// - what else cannot be done is [refused](CheckpointErrorKind::Refused), and nothing is written: a checkpoint whose base is
///   not there, writes under a checkpoint that is not there (any more), a copy of a thread without checkpoints or to a
///   thread that has some;
/// - with its last checkpoint a thread is gone, and so is the right of whoever has claimed it;
/// - checkpoints that stay keep all their values when those are deleted that they build on.
///
/// It must not panic: a panic may go through the run to whoever started it. Whether all is kept the suite of the
/// feature `conformance` tells.
///
/// ```
/// use superstep::{Checkpointer, MemorySaver};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), superstep::CheckpointError> {
/// let saver = MemorySaver::new();
/// assert!(saver.get("no such thread", "", None).await?.is_none());
/// let (first, second) = (saver.claim("t", "", None).await?, saver.claim("t", "", None).await?);
/// assert!(first.epoch < second.epoch, "who claims later fences who claimed before");
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Checkpointer: Send + Sync + 'static {
    /// Takes over a thread: what others who claimed it before write from now on is refused. Gives the checkpoint
    /// to resume from: this one, or the latest.
    async fn claim(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Claim, CheckpointError>;

    /// Adds a checkpoint to a namespace of a thread.
    async fn put(&self, lease: Lease<'_>, checkpoint: CheckpointRecord) -> Result<(), CheckpointError>;

    /// Adds what a task wrote, under the checkpoint that its step started from.
    async fn put_writes(
        &self,
        lease: Lease<'_>,
        checkpoint: CheckpointId,
        task: TaskRecord,
    ) -> Result<(), CheckpointError>;

    /// A checkpoint with all its fields and pending writes: this one, or the latest.
    async fn get(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Option<SavedCheckpoint>, CheckpointError>;

    /// The checkpoints of a namespace, newest first.
    async fn list(
        &self,
        thread: &str,
        namespace: &str,
        query: &ListQuery,
    ) -> Result<Vec<SavedCheckpoint>, CheckpointError>;

    /// The namespaces of a thread, sorted: the root's is empty, subgraphs have their own.
    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError>;

    /// At most `limit` of the threads that have checkpoints, sorted by name, beginning after a name.
    async fn threads(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, CheckpointError>;

    /// Forgets a thread with all its namespaces; whoever writes to it is fenced.
    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError>;

    /// Forgets checkpoints of a namespace with all that was written under them, and what a run wrote under others; says how
    /// many checkpoints those were. The latest that stays is the latest from then on.
    async fn delete_checkpoints(
        &self,
        thread: &str,
        namespace: &str,
        deletion: &Deletion,
    ) -> Result<usize, CheckpointError>;

    /// Whether saves of one namespace take effect in the order in which they were first polled, also if nobody waited for
    /// those before, and whether one whose predecessor failed fails too. With durability `async` a run then has several of
    /// them under way, which can share a commit.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Copies a thread with all its namespaces to a name that no thread has.
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), CheckpointError> {
        provided::copy_thread(self, from, to).await
    }

    /// Forgets old checkpoints of a thread, and says how many; those that stay keep all their values.
    async fn prune(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError> {
        provided::prune(self, thread, prune).await
    }

    /// Forgets all that a run saved, in all threads: its checkpoints, and what its tasks wrote, asked and were answered under
    /// others. Says how many checkpoints those were.
    async fn delete_run(&self, run: &str) -> Result<usize, CheckpointError> {
        provided::delete_run(self, run).await
    }

    /// Forgets threads whose time has come, and whatever belongs to no thread.
    async fn sweep(&self) -> Result<Swept, CheckpointError> {
        Ok(Swept::default())
    }
}

#[async_trait]
impl<C: Checkpointer + ?Sized> Checkpointer for std::sync::Arc<C> {
    async fn claim(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Claim, CheckpointError> {
        (**self).claim(thread, namespace, checkpoint).await
    }
    async fn put(&self, lease: Lease<'_>, checkpoint: CheckpointRecord) -> Result<(), CheckpointError> {
        (**self).put(lease, checkpoint).await
    }
    async fn put_writes(
        &self,
        lease: Lease<'_>,
        checkpoint: CheckpointId,
        task: TaskRecord,
    ) -> Result<(), CheckpointError> {
        (**self).put_writes(lease, checkpoint, task).await
    }
    async fn get(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Option<SavedCheckpoint>, CheckpointError> {
        (**self).get(thread, namespace, checkpoint).await
    }
    async fn list(
        &self,
        thread: &str,
        namespace: &str,
        query: &ListQuery,
    ) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        (**self).list(thread, namespace, query).await
    }
    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        (**self).namespaces(thread).await
    }
    async fn threads(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, CheckpointError> {
        (**self).threads(after, limit).await
    }
    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError> {
        (**self).delete_thread(thread).await
    }
    async fn delete_checkpoints(
        &self,
        thread: &str,
        namespace: &str,
        deletion: &Deletion,
    ) -> Result<usize, CheckpointError> {
        (**self).delete_checkpoints(thread, namespace, deletion).await
    }
    fn keeps_order(&self) -> bool {
        (**self).keeps_order()
    }
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), CheckpointError> {
        (**self).copy_thread(from, to).await
    }
    async fn prune(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError> {
        (**self).prune(thread, prune).await
    }
    async fn delete_run(&self, run: &str) -> Result<usize, CheckpointError> {
        (**self).delete_run(run).await
    }
    async fn sweep(&self) -> Result<Swept, CheckpointError> {
        (**self).sweep().await
    }
}

/// When a step is saved.
///
/// ```
/// assert_eq!(superstep::Durability::default(), superstep::Durability::Async);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Before the next step starts, and before its events are shown.
    Sync,
    /// While the next steps run, in order: one save at a time, or up to 64 if the checkpointer
    /// [keeps their order](Checkpointer::keeps_order). A crash may lose the steps that they are of. A save that has
    /// begun goes on to its end, even if the run is dropped.
    #[default]
    Async,
    /// When the run ends, pauses or fails; a crash loses the run.
    Exit,
}

/// A thread's name is any text that every database can keep.
pub fn check_name(thread: &str) -> Result<(), CheckpointError> {
    if thread.contains('\0') {
        let shown = thread.escape_debug();
        return Err(CheckpointError::refused(format!("thread `{shown}` holds a NUL character; remove it")));
    }
    Ok(())
}
