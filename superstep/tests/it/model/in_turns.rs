//! Several savers of one database that are called in turns: each knows less than all do together.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use superstep::{
    CheckpointError, CheckpointId, CheckpointRecord, Checkpointer, Claim, Deletion, Lease, ListQuery, Prune,
    SavedCheckpoint, Swept, TaskRecord,
};

type Answer<T> = Result<T, CheckpointError>;

pub(super) struct InTurns<C> {
    savers: Vec<C>,
    calls: AtomicUsize,
}

impl<C> InTurns<C> {
    pub(super) fn new(savers: Vec<C>) -> Self {
        Self { savers, calls: AtomicUsize::new(0) }
    }

    /// Mostly the same one a few times, then another.
    fn next(&self) -> &C {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        &self.savers[(call / (1 + call / 3 % 5)) % self.savers.len()]
    }
}

#[async_trait]
impl<C: Checkpointer> Checkpointer for InTurns<C> {
    async fn claim(&self, thread: &str, namespace: &str, checkpoint: Option<CheckpointId>) -> Answer<Claim> {
        self.next().claim(thread, namespace, checkpoint).await
    }

    async fn put(&self, lease: Lease<'_>, checkpoint: CheckpointRecord) -> Answer<()> {
        self.next().put(lease, checkpoint).await
    }

    async fn put_writes(&self, lease: Lease<'_>, checkpoint: CheckpointId, task: TaskRecord) -> Answer<()> {
        self.next().put_writes(lease, checkpoint, task).await
    }

    async fn delete_checkpoints(&self, thread: &str, namespace: &str, deletion: &Deletion) -> Answer<usize> {
        self.next().delete_checkpoints(thread, namespace, deletion).await
    }

    async fn get(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Answer<Option<SavedCheckpoint>> {
        self.next().get(thread, namespace, checkpoint).await
    }

    async fn list(&self, thread: &str, namespace: &str, query: &ListQuery) -> Answer<Vec<SavedCheckpoint>> {
        self.next().list(thread, namespace, query).await
    }

    async fn namespaces(&self, thread: &str) -> Answer<Vec<String>> {
        self.next().namespaces(thread).await
    }

    async fn threads(&self, after: Option<&str>, limit: usize) -> Answer<Vec<String>> {
        self.next().threads(after, limit).await
    }

    async fn delete_thread(&self, thread: &str) -> Answer<()> {
        self.next().delete_thread(thread).await
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Answer<()> {
        self.next().copy_thread(from, to).await
    }

    async fn prune(&self, thread: &str, prune: &Prune) -> Answer<usize> {
        self.next().prune(thread, prune).await
    }

    async fn delete_run(&self, run: &str) -> Answer<usize> {
        self.next().delete_run(run).await
    }

    async fn sweep(&self) -> Answer<Swept> {
        self.next().sweep().await
    }
}
