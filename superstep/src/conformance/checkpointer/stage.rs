//! Where a clause plays: one checkpointer, and authors who write to its threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::{Broken, Checked, ensure};
use super::difference::{same, same_list};
use super::draft::{Draft, id_at};
use crate::checkpoint::{CheckpointError, Checkpointer, Epoch, Lease, ListQuery, SavedCheckpoint, TaskRecord};
use crate::id::CheckpointId;

/// The checkpointer of a clause, and the clock of its ids.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) saver: Arc<dyn Checkpointer>,
    tick: Arc<AtomicU64>,
}

/// Someone who claimed a thread and goes on from its latest checkpoint.
#[derive(Clone)]
pub(super) struct Author {
    pub(super) stage: Stage,
    pub(super) thread: String,
    pub(super) namespace: String,
    pub(super) epoch: Epoch,
    pub(super) head: Option<CheckpointId>,
    pub(super) step: i64,
}

impl Stage {
    pub(super) fn new(saver: Arc<dyn Checkpointer>) -> Self {
        Self { saver, tick: Arc::default() }
    }

    /// An id that is greater than all before.
    pub(super) fn id(&self) -> CheckpointId {
        id_at(self.tick.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) async fn claim(&self, thread: &str) -> Checked<Author> {
        self.claim_in(thread, "").await
    }

    pub(super) async fn claim_in(&self, thread: &str, namespace: &str) -> Checked<Author> {
        let claim = self.saver.claim(thread, namespace, None).await?;
        Ok(Author {
            stage: self.clone(),
            thread: thread.to_owned(),
            namespace: namespace.to_owned(),
            epoch: claim.epoch,
            head: claim.head,
            step: claim.found.map_or(-1, |saved| saved.record.step + 1),
        })
    }

    pub(super) async fn get(&self, thread: &str, at: CheckpointId) -> Checked<SavedCheckpoint> {
        self.get_in(thread, "", at).await
    }

    pub(super) async fn get_in(&self, thread: &str, namespace: &str, at: CheckpointId) -> Checked<SavedCheckpoint> {
        let found = self.saver.get(thread, namespace, Some(at)).await?;
        found.ok_or_else(|| Broken(format!("thread `{thread}` has lost checkpoint {at}")))
    }

    /// The checkpoints of a namespace, newest first, are these.
    pub(super) async fn holds(&self, thread: &str, namespace: &str, newest_first: &[SavedCheckpoint]) -> Checked {
        let listed = self.list(thread, namespace, &ListQuery::new()).await?;
        same_list("listed", &listed, newest_first)?;
        for expected in newest_first {
            let found = self.get_in(thread, namespace, expected.record.id).await?;
            same("read by id", Some(&found), Some(expected))?;
        }
        let latest = self.saver.get(thread, namespace, None).await?;
        same("read as the latest", latest.as_ref(), newest_first.first())
    }

    pub(super) async fn list(&self, thread: &str, namespace: &str, query: &ListQuery) -> Checked<Vec<SavedCheckpoint>> {
        Ok(self.saver.list(thread, namespace, query).await?)
    }

    pub(super) async fn ids(&self, thread: &str, namespace: &str) -> Checked<Vec<CheckpointId>> {
        self.ids_of(thread, namespace, &ListQuery::new()).await
    }

    pub(super) async fn ids_of(&self, thread: &str, namespace: &str, query: &ListQuery) -> Checked<Vec<CheckpointId>> {
        Ok(self.list(thread, namespace, query).await?.iter().map(|saved| saved.record.id).collect())
    }
}

impl Author {
    /// The same right, in another namespace of the thread that has no checkpoint yet.
    pub(super) fn inside(&self, namespace: &str) -> Author {
        Author { namespace: namespace.to_owned(), head: None, step: -1, ..self.clone() }
    }

    /// A checkpoint that goes on from the latest.
    pub(super) fn draft(&self) -> Draft {
        Draft::new(self.stage.id()).after(self.head).step(self.step)
    }

    pub(super) fn lease(&self) -> Lease<'_> {
        Lease::new(&self.thread, &self.namespace, self.epoch)
    }

    /// Saves a checkpoint behind the latest that this author knows.
    pub(super) async fn put(&mut self, draft: &Draft) -> Result<CheckpointId, CheckpointError> {
        let mut record = draft.0.clone();
        record.head = self.head;
        self.stage.saver.put(self.lease(), record).await?;
        (self.head, self.step) = (Some(draft.id()), self.step + 1);
        Ok(draft.id())
    }

    /// Saves a checkpoint with one field, and gives back how it should read.
    pub(super) async fn add(&mut self, value: &str) -> Checked<SavedCheckpoint> {
        let draft = self.draft().whole("value", value);
        self.put(&draft).await?;
        Ok(draft.saved([super::draft::whole("value", value)]))
    }

    pub(super) async fn write(&self, at: CheckpointId, task: TaskRecord) -> Result<(), CheckpointError> {
        self.stage.saver.put_writes(self.lease(), at, task).await
    }

    /// The checkpoints of this author's namespace, newest first, are these.
    pub(super) async fn holds(&self, newest_first: &[SavedCheckpoint]) -> Checked {
        self.stage.holds(&self.thread, &self.namespace, newest_first).await
    }
}

/// The answer is that someone else has the thread.
pub(super) fn fenced<T>(what: &str, result: Result<T, CheckpointError>) -> Checked {
    match result {
        Err(error) if error.is_fenced() => Ok(()),
        Err(other) => Err(Broken(format!("{what}: expected `Fenced`, but the error is: {other}"))),
        Ok(_) => Err(Broken(format!("{what}: expected `Fenced`, but it was done"))),
    }
}

/// The answer is an error with words, and not that someone else has the thread.
pub(super) fn refused<T>(what: &str, result: Result<T, CheckpointError>) -> Checked {
    match result {
        Err(error) if error.is_fenced() => Err(Broken(format!("{what}: expected an error other than `Fenced`"))),
        Err(error) => {
            ensure!(!error.to_string().trim().is_empty(), "{what}: the error has no words");
            Ok(())
        }
        Ok(_) => Err(Broken(format!("{what}: expected an error, but it was done"))),
    }
}
