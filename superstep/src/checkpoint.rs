//! Checkpoints: what is saved, and where.
//!
//! A checkpointer works on bytes and plain records; a state's types stop at the [`Codec`](crate::Codec).
//! A checkpoint names its parent and its base, which is mostly the parent too, and holds the fields
//! that changed; all others are the base's. What a task wrote is saved as soon as the task has finished, under the
//! checkpoint that the step started from.

pub mod backend;
mod decide;
mod error;
mod few;
mod interrupt;
mod lease;
mod memory;
mod name;
mod prune;
mod record;
mod shared_map;

use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;

use crate::id::CheckpointId;

pub use error::{CheckpointError, CheckpointErrorKind};
pub(crate) use few::Refill;
pub use few::{Few, FewIntoIter};
pub use interrupt::Interrupt;
pub use lease::{Claim, Epoch, Lease};
pub use memory::MemorySaver;
pub(crate) use name::{Labels, Texts};
pub use name::{Name, Shape};
pub use prune::{Prune, Swept};
pub(crate) use record::FORMAT;
pub use record::{
    CheckpointRecord, FieldRecord, FieldValue, ListQuery, SavedCheckpoint, SavedField, Source, TaskRecord, WriteRecord,
};
pub use shared_map::SharedMap;

/// Where checkpoints are kept.
///
/// Implementations must give back exactly what they were given, and keep these rules:
/// - a checkpoint inherits the fields it does not hold from its `base`;
/// - the task records that come with it are added to the pending writes of the base, together with it or not at all;
/// - of a task's ordinary writes the first ones saved stay, while its error, questions and answers are replaced;
/// - whoever writes holds a [`Lease`]: with an epoch that is not the thread's current one, or a checkpoint whose
///   `head` is not the latest of its namespace or that is not newer than it, nothing is written and the answer is
///   [`Fenced`](CheckpointErrorKind::Fenced);
/// - saving the same checkpoint again, as after a lost answer, changes nothing;
/// - what else cannot be done is [refused](CheckpointError::refused), and nothing is written: a checkpoint whose base is
///   not there, writes under a checkpoint that is not there (any more), a copy of a thread without checkpoints or to a
///   thread that has some;
/// - with its last checkpoint a thread is gone, and so is the right of whoever has claimed it;
/// - `delete_run` also forgets what the run's steps wrote: for each checkpoint of a step (its source is
///   [`Source::Loop`]), the pending writes of its base, if that is of the step just before. Writes that no checkpoint of
///   the run took up stay.
///
/// It must not panic: a panic may go through the run to whoever started it. The trait is written with
/// [`async_trait`](https://docs.rs/async-trait), and so are its implementations. Whether all is kept the suite of the
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
    /// to go on from: this one, or the latest.
    async fn claim(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Claim, CheckpointError>;

    /// Adds a checkpoint to a namespace of a thread: at once, or [`later`](Saving::later). The record is lent, to be filled
    /// anew for the next one: what is kept of it, or saved later, is cloned. Clones share large values.
    fn put(&self, lease: Lease<'_>, checkpoint: &CheckpointRecord) -> Saving;

    /// Adds what a task wrote, under the checkpoint that its step started from.
    fn put_writes(&self, lease: Lease<'_>, checkpoint: CheckpointId, task: TaskRecord) -> Saving;

    /// Whether saves of one namespace take effect in the order in which they were begun, also if nobody waited for those
    /// before, and whether one whose predecessor failed fails too. With durability `async` a run then has several of
    /// them under way, which can share a commit.
    fn keeps_order(&self) -> bool {
        false
    }

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

    /// Copies a thread with all its namespaces to a name that no thread has.
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), CheckpointError>;

    /// Forgets old checkpoints of a thread, and says how many; those that stay keep all their values.
    async fn prune(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError>;

    /// Forgets the checkpoints that a run made, in all threads, and says how many.
    async fn delete_run(&self, run: &str) -> Result<usize, CheckpointError>;

    /// Forgets threads whose time has come, and whatever belongs to no thread.
    async fn sweep(&self) -> Result<Swept, CheckpointError>;
}

/// A save that is done, or on its way. The next save of the namespace begins when it has ended, unless the checkpointer
/// [keeps the order](Checkpointer::keeps_order) by itself.
///
/// ```
/// use superstep::{CheckpointError, Saving};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), CheckpointError> {
/// Saving::done(Ok(())).await?;
/// let lost = Saving::later(async { Err(CheckpointError::backend("the disk is full")) });
/// assert!(lost.await.is_err());
/// # Ok(())
/// # }
/// ```
#[must_use = "a save that goes on later does nothing unless it is awaited"]
pub struct Saving(Progress);

enum Progress {
    Done(Result<(), CheckpointError>),
    Later(Pin<Box<dyn Future<Output = Result<(), CheckpointError>> + Send>>),
}

impl Saving {
    /// It was saved, or could not be.
    pub fn done(result: Result<(), CheckpointError>) -> Self {
        Self(Progress::Done(result))
    }

    /// It is saved by this future.
    pub fn later(save: impl Future<Output = Result<(), CheckpointError>> + Send + 'static) -> Self {
        Self(Progress::Later(Box::pin(save)))
    }
}

impl Future for Saving {
    type Output = Result<(), CheckpointError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Progress::Done(result) => Poll::Ready(std::mem::replace(result, Ok(()))),
            Progress::Later(save) => save.as_mut().poll(cx),
        }
    }
}

impl std::fmt::Debug for Saving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Progress::Done(result) => f.debug_tuple("Done").field(result).finish(),
            Progress::Later(_) => f.write_str("Later"),
        }
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
    fn put(&self, lease: Lease<'_>, checkpoint: &CheckpointRecord) -> Saving {
        (**self).put(lease, checkpoint)
    }
    fn put_writes(&self, lease: Lease<'_>, checkpoint: CheckpointId, task: TaskRecord) -> Saving {
        (**self).put_writes(lease, checkpoint, task)
    }
    fn keeps_order(&self) -> bool {
        (**self).keeps_order()
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
