//! A checkpointer over [`MemorySaver`] whose calls pass through a hook.

use std::pin::Pin;

use async_trait::async_trait;
use superstep::{
    CheckpointError, CheckpointId, CheckpointRecord, Checkpointer, Claim, Deletion, Lease, ListQuery, MemorySaver,
    Prune, SavedCheckpoint, Swept, TaskId, TaskRecord,
};

/// A call of the checkpointer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    /// A checkpoint is saved, with the results of these tasks.
    Put(Vec<TaskId>),
    /// What a task wrote is saved.
    PutWrites {
        task: TaskId,
        finished: bool,
    },
    Get,
    List,
}

impl Call {
    /// The tasks whose results are saved by the call.
    pub(crate) fn finished(&self) -> &[TaskId] {
        match self {
            Call::Put(tasks) => tasks,
            Call::PutWrites { task, finished: true } => std::slice::from_ref(task),
            _ => &[],
        }
    }
}

/// A call that is being served.
pub(crate) type Serving<'a> = Pin<Box<dyn Future<Output = Result<(), CheckpointError>> + Send + 'a>>;

/// What happens around the calls of a checkpointer.
#[async_trait]
pub(crate) trait Hook: Send + Sync + 'static {
    /// Serves a call, or does something else; what it says is what the caller is told.
    async fn around(&self, _: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        serving.await
    }

    /// Whether the checkpointer says that it keeps the order of saves by itself.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Something is saved with this right.
    fn saves(&self, _: Lease<'_>) {}

    /// Changes what is saved.
    fn write(&self, record: CheckpointRecord) -> CheckpointRecord {
        record
    }

    /// Changes what is given back.
    fn read(&self, saved: SavedCheckpoint) -> SavedCheckpoint {
        saved
    }
}

#[derive(Clone, Default)]
pub(crate) struct Hooked<H> {
    pub(crate) inner: MemorySaver,
    pub(crate) hook: H,
}

impl<H: Hook> Hooked<H> {
    pub(crate) fn new(hook: H) -> Self {
        Self { inner: MemorySaver::new(), hook }
    }

    async fn serve<T: Send>(
        &self,
        call: Call,
        inner: impl Future<Output = Result<T, CheckpointError>> + Send,
    ) -> Result<T, CheckpointError> {
        let mut found = None;
        let serving = async {
            found = Some(inner.await?);
            Ok(())
        };
        self.hook.around(&call, Box::pin(serving)).await?;
        Ok(found.expect("a hook that says that a call was served has served it"))
    }
}

#[async_trait]
impl<H: Hook + Clone> Checkpointer for Hooked<H> {
    async fn claim(&self, thread: &str, ns: &str, at: Option<CheckpointId>) -> Result<Claim, CheckpointError> {
        let mut claim = self.serve(Call::Get, self.inner.claim(thread, ns, at)).await?;
        claim.found = claim.found.map(|saved| self.hook.read(saved));
        Ok(claim)
    }

    async fn put(&self, lease: Lease<'_>, checkpoint: CheckpointRecord) -> Result<(), CheckpointError> {
        self.hook.saves(lease);
        let checkpoint = self.hook.write(checkpoint);
        let call = Call::Put(checkpoint.writes().iter().map(TaskRecord::task).collect());
        self.serve(call, self.inner.put(lease, checkpoint)).await
    }

    async fn put_writes(&self, lease: Lease<'_>, at: CheckpointId, task: TaskRecord) -> Result<(), CheckpointError> {
        self.hook.saves(lease);
        let call = Call::PutWrites { task: task.task(), finished: task.is_finished() };
        self.serve(call, self.inner.put_writes(lease, at, task)).await
    }

    fn keeps_order(&self) -> bool {
        self.hook.keeps_order()
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        at: Option<CheckpointId>,
    ) -> Result<Option<SavedCheckpoint>, CheckpointError> {
        let saved = self.serve(Call::Get, self.inner.get(thread, ns, at)).await?;
        Ok(saved.map(|saved| self.hook.read(saved)))
    }

    async fn list(&self, thread: &str, ns: &str, query: &ListQuery) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        self.serve(Call::List, self.inner.list(thread, ns, query)).await
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        self.inner.namespaces(thread).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError> {
        self.inner.delete_thread(thread).await
    }

    async fn delete_checkpoints(&self, thread: &str, ns: &str, deletion: &Deletion) -> Result<usize, CheckpointError> {
        self.inner.delete_checkpoints(thread, ns, deletion).await
    }

    async fn threads(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, CheckpointError> {
        self.inner.threads(after, limit).await
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
