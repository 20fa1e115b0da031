//! A checkpointer that logs what it was told, after it was told.

use std::sync::Arc;

use async_trait::async_trait;
use superstep::{
    CheckpointError, CheckpointId, CheckpointRecord, Checkpointer, Claim, Lease, ListQuery, Prune, SavedCheckpoint,
    Saving, Swept, TaskRecord,
};

use crate::log::Log;

pub(crate) struct Audited {
    pub(crate) inner: Arc<dyn Checkpointer>,
    pub(crate) log: Arc<Log>,
}

/// Logs lines when a save was acknowledged, and that a thread was lost when it was refused.
fn logged(log: &Arc<Log>, thread: &str, saving: Saving, lines: Vec<String>) -> Saving {
    let (log, thread) = (log.clone(), thread.to_owned());
    Saving::later(async move {
        let saved = saving.await;
        match &saved {
            Ok(()) => lines.iter().for_each(|line| log.add(line)),
            Err(CheckpointError::Fenced { .. }) => log.add(&format!("fenced {thread}")),
            Err(_) => {}
        }
        saved
    })
}

#[async_trait]
impl Checkpointer for Audited {
    async fn claim(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Claim, CheckpointError> {
        self.inner.claim(thread, namespace, checkpoint).await
    }

    fn put(&self, lease: Lease<'_>, checkpoint: CheckpointRecord) -> Saving {
        let thread = lease.thread;
        let finished = checkpoint.writes.iter().filter(|task| task.is_finished());
        let mut lines: Vec<String> = finished.map(|task| format!("saved {thread} {}", task.task)).collect();
        lines.push(format!("ack {thread} {} {}", checkpoint.id, lease.epoch));
        logged(&self.log, thread, self.inner.put(lease, checkpoint), lines)
    }

    fn put_writes(&self, lease: Lease<'_>, checkpoint: CheckpointId, task: TaskRecord) -> Saving {
        let line = task.is_finished().then(|| format!("saved {} {}", lease.thread, task.task));
        let saving = self.inner.put_writes(lease, checkpoint, task);
        logged(&self.log, lease.thread, saving, line.into_iter().collect())
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
