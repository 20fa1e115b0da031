//! A checkpointer that logs what it is asked for, and what it was told.
//!
//! A line about a question is written before it is asked, one about an answer after it came. So if a claim stands before
//! a question, the claim was made before the question was asked, whatever process wrote the lines.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use superstep::{
    CheckpointError, CheckpointId, CheckpointRecord, Checkpointer, Claim, Deletion, Epoch, EventData, Lease, ListQuery,
    Prune, SavedCheckpoint, Swept, TaskId, TaskRecord,
};

use crate::Result;
use crate::log::Log;
use crate::workload::Tally;

/// What a worker does and is told, in the log.
pub(crate) struct Audit {
    log: Log,
    /// The epochs in which this worker has its threads.
    epochs: Mutex<HashMap<String, Epoch>>,
}

impl Audit {
    pub(crate) fn open(log: &Path) -> Result<Self> {
        Ok(Self { log: Log::open(log)?, epochs: Mutex::default() })
    }

    /// Notes that a task of a claimed thread starts, on a state that is so far.
    pub(crate) fn started(&self, thread: &str, task: TaskId, progress: usize) {
        let epoch = self.epoch(thread);
        self.log.add(&format!("start {thread} {task} {epoch} {progress}"));
    }

    /// What is noted when this event of a claimed thread is shown.
    pub(crate) fn shown(&self, thread: &str, event: &EventData) -> Option<String> {
        let what = match event {
            EventData::Updates(update) => format!("task {}", update.task),
            EventData::TaskEnd(end) if end.error.is_none() && end.interrupts.is_empty() => format!("task {}", end.id),
            EventData::Checkpoint(made) => format!("checkpoint {}", made.checkpoint.as_ref()?.id),
            EventData::Values(values) => format!("state {}", values.state::<Tally>()?.progress()),
            EventData::Debug(debug) => return self.shown(thread, &debug.event),
            _ => return None,
        };
        Some(format!("shown {thread} {what} {}", self.epoch(thread)))
    }

    /// Notes what was shown and promised.
    pub(crate) fn promised(&self, shown: &[String]) {
        if !shown.is_empty() {
            self.log.add(&shown.join("\n"));
        }
    }

    fn epoch(&self, thread: &str) -> Epoch {
        let epochs = self.epochs.lock().unwrap_or_else(PoisonError::into_inner);
        *epochs.get(thread).expect("a thread is claimed before its tasks start")
    }

    fn claimed(&self, thread: &str, epoch: Epoch) {
        self.epochs.lock().unwrap_or_else(PoisonError::into_inner).insert(thread.to_owned(), epoch);
        self.log.add(&format!("claimed {thread} {epoch}"));
    }
}

pub(crate) struct Audited {
    pub(crate) inner: Arc<dyn Checkpointer>,
    pub(crate) audit: Arc<Audit>,
}

impl Audited {
    /// Logs that a write is asked for, and what became of it: `told` is what its acknowledgement says.
    async fn logged(
        &self,
        lease: Lease<'_>,
        id: &str,
        mut told: Vec<String>,
        write: impl Future<Output = Result<(), CheckpointError>>,
    ) -> Result<(), CheckpointError> {
        let subject = format!("{} {id} {}", lease.thread, lease.epoch);
        self.audit.log.add(&format!("ask {subject}"));
        told.push(format!("taken {subject}"));
        let saved = write.await;
        match &saved {
            Ok(()) => self.audit.log.add(&told.join("\n")),
            Err(error) if error.is_fenced() => self.audit.log.add(&format!("fenced {subject}")),
            Err(_) => {}
        }
        saved
    }
}

fn saved(lease: Lease<'_>, task: &TaskRecord) -> Option<String> {
    task.is_finished().then(|| format!("saved {} {} {}", lease.thread, task.task(), lease.epoch))
}

#[async_trait]
impl Checkpointer for Audited {
    async fn claim(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Claim, CheckpointError> {
        let claim = self.inner.claim(thread, namespace, checkpoint).await?;
        self.audit.claimed(thread, claim.epoch);
        Ok(claim)
    }

    async fn put(&self, lease: Lease<'_>, checkpoint: CheckpointRecord) -> Result<(), CheckpointError> {
        let id = checkpoint.id().to_string();
        let mut told: Vec<String> = checkpoint.writes().iter().filter_map(|task| saved(lease, task)).collect();
        told.push(format!("checkpoint {} {id} {}", lease.thread, lease.epoch));
        self.logged(lease, &id, told, self.inner.put(lease, checkpoint)).await
    }

    async fn put_writes(
        &self,
        lease: Lease<'_>,
        checkpoint: CheckpointId,
        task: TaskRecord,
    ) -> Result<(), CheckpointError> {
        let (id, told) = (task.task().to_string(), saved(lease, &task).into_iter().collect());
        self.logged(lease, &id, told, self.inner.put_writes(lease, checkpoint, task)).await
    }

    async fn get(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Option<SavedCheckpoint>, CheckpointError> {
        self.inner.get(thread, namespace, checkpoint).await
    }

    async fn list(
        &self,
        thread: &str,
        namespace: &str,
        query: &ListQuery,
    ) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        self.inner.list(thread, namespace, query).await
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        self.inner.namespaces(thread).await
    }

    async fn threads(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, CheckpointError> {
        self.inner.threads(after, limit).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError> {
        self.inner.delete_thread(thread).await
    }

    async fn delete_checkpoints(
        &self,
        thread: &str,
        namespace: &str,
        deletion: &Deletion,
    ) -> Result<usize, CheckpointError> {
        self.inner.delete_checkpoints(thread, namespace, deletion).await
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), CheckpointError> {
        self.inner.copy_thread(from, to).await
    }

    async fn prune(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError> {
        self.inner.prune(thread, prune).await
    }

    async fn delete_run(&self, run: &str) -> Result<usize, CheckpointError> {
        self.inner.delete_run(run).await
    }

    async fn sweep(&self) -> Result<Swept, CheckpointError> {
        self.inner.sweep().await
    }
}
