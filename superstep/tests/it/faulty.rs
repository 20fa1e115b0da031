//! A checkpointer that fails at one of its calls, and an audit of what ran and what was saved.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use superstep::{CheckpointError, MemorySaver};
use tokio::sync::Notify;

use crate::support::hooked::{Call, Hook, Hooked, Serving};

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
pub(crate) type Faulty = Hooked<Faults>;

/// Counts calls, and fails at one of them.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    pub(crate) audit: Audit,
    calls: Arc<AtomicUsize>,
    fault: Option<(usize, Fault)>,
    /// Whether calls wait before they are served, so that they overlap with the run.
    slow: bool,
    pub(crate) died: Arc<Notify>,
    is_dead: Arc<AtomicBool>,
}

impl Faulty {
    /// A new storage that fails at this call, counted from 0.
    pub(crate) fn failing(fault: Option<(usize, Fault)>, slow: bool) -> Self {
        Self::over(MemorySaver::new(), fault, slow)
    }

    /// The same over a storage.
    pub(crate) fn over(inner: MemorySaver, fault: Option<(usize, Fault)>, slow: bool) -> Self {
        Self { inner, hook: Faults { fault, slow, ..Faults::default() } }
    }

    /// The same storage, without the fault.
    pub(crate) fn mended(mut self) -> Self {
        (self.hook.fault, self.hook.is_dead) = (None, Arc::default());
        self
    }

    pub(crate) fn calls(&self) -> usize {
        self.hook.calls.load(Ordering::SeqCst)
    }
}

impl Faults {
    async fn serve(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        serving.await?;
        call.finished().iter().for_each(|task| note(&self.audit, Seen::Saved(task.to_string())));
        Ok(())
    }
}

#[async_trait]
impl Hook for Faults {
    async fn around(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        if self.slow {
            tokio::task::yield_now().await;
        }
        let lost = || CheckpointError::backend(format!("the disk failed at call {number}"));
        match self.fault.filter(|(at, _)| *at == number) {
            None if self.is_dead.load(Ordering::SeqCst) => std::future::pending().await,
            None => self.serve(call, serving).await,
            Some((_, Fault::Refused)) => Err(lost()),
            Some((_, Fault::Unacknowledged)) => self.serve(call, serving).await.and_then(|()| Err(lost())),
            Some((_, Fault::Death)) => {
                self.is_dead.store(true, Ordering::SeqCst);
                self.died.notify_one();
                std::future::pending().await
            }
        }
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
