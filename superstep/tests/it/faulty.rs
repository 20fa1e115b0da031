//! A checkpointer that fails at one of its calls, and an audit of what ran and what was saved.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use superstep::{
    CheckpointError, CheckpointId, CheckpointRecord, Checkpointer, ListQuery, MemorySaver, SavedCheckpoint, TaskRecord,
};
use tokio::sync::Notify;

/// How a call of the checkpointer goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// Nothing was done, and the caller is told.
    Refused,
    /// It was done, but the caller is told that it was not.
    Unacknowledged,
    /// The process is gone before it is done.
    Death,
}

/// What happened outside the graph, in order; nothing is ever taken back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    Ran(String),
    Saved(String),
}

pub(crate) type Audit = Arc<Mutex<Vec<Seen>>>;

pub(crate) fn note(audit: &Audit, seen: Seen) {
    audit.lock().expect("nobody panics with the audit").push(seen);
}

/// A checkpointer over [`MemorySaver`] with a fault at one of its calls.
#[derive(Clone)]
pub(crate) struct Faulty {
    inner: MemorySaver,
    pub(crate) audit: Audit,
    calls: Arc<AtomicUsize>,
    fault: Option<(usize, Fault)>,
    /// Whether calls wait before they are served, so that they overlap with the run.
    slow: bool,
    pub(crate) died: Arc<Notify>,
    is_dead: Arc<AtomicBool>,
}

impl Faulty {
    pub(crate) fn new(fault: Option<(usize, Fault)>, slow: bool) -> Self {
        Self {
            inner: MemorySaver::new(),
            audit: Audit::default(),
            calls: Arc::default(),
            fault,
            slow,
            died: Arc::default(),
            is_dead: Arc::default(),
        }
    }

    /// The same storage, without the fault.
    pub(crate) fn mended(self) -> Self {
        Self { fault: None, is_dead: Arc::default(), ..self }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    async fn serve<T>(&self, call: impl Future<Output = Result<T, CheckpointError>>) -> Result<T, CheckpointError> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        if self.slow {
            tokio::task::yield_now().await;
        }
        let lost = || CheckpointError::backend(format!("the disk failed at call {number}"));
        match self.fault.filter(|(at, _)| *at == number) {
            None if self.is_dead.load(Ordering::SeqCst) => std::future::pending().await,
            None => call.await,
            Some((_, Fault::Refused)) => Err(lost()),
            Some((_, Fault::Unacknowledged)) => call.await.and_then(|_| Err(lost())),
            Some((_, Fault::Death)) => {
                self.is_dead.store(true, Ordering::SeqCst);
                self.died.notify_one();
                std::future::pending().await
            }
        }
    }
}

#[async_trait]
impl Checkpointer for Faulty {
    async fn put(&self, thread: &str, namespace: &str, checkpoint: CheckpointRecord) -> Result<(), CheckpointError> {
        let saves = async {
            let finished: Vec<String> = checkpoint.writes.iter().map(|task| task.task.to_string()).collect();
            self.inner.put(thread, namespace, checkpoint).await?;
            finished.into_iter().for_each(|id| note(&self.audit, Seen::Saved(id)));
            Ok(())
        };
        self.serve(saves).await
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        at: CheckpointId,
        task: TaskRecord,
    ) -> Result<(), CheckpointError> {
        let saves = async {
            let (id, finished) = (task.task.to_string(), task.is_finished());
            self.inner.put_writes(thread, ns, at, task).await?;
            if finished {
                note(&self.audit, Seen::Saved(id));
            }
            Ok(())
        };
        self.serve(saves).await
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        at: Option<CheckpointId>,
    ) -> Result<Option<SavedCheckpoint>, CheckpointError> {
        self.serve(self.inner.get(thread, ns, at)).await
    }

    async fn list(&self, thread: &str, ns: &str, query: &ListQuery) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        self.serve(self.inner.list(thread, ns, query)).await
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        self.inner.namespaces(thread).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError> {
        self.inner.delete_thread(thread).await
    }
}

/// No task runs after its writes were saved.
pub(crate) fn check_audit(audit: &Audit, story: &str) {
    let mut saved = HashSet::new();
    for seen in audit.lock().expect("nobody panics with the audit").iter() {
        match seen {
            Seen::Saved(task) => drop(saved.insert(task.clone())),
            Seen::Ran(task) => {
                assert!(!saved.contains(task), "{story}: task {task} ran again after its writes were saved");
            }
        }
    }
}
