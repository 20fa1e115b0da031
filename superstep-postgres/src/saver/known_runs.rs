//! The runs that need not be noted again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use superstep::{CheckpointId, Epoch, Lease};

/// The runs that were noted, with the checkpoints that they wrote under: as long as the checkpoint is there, the note is.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownRuns(Arc<Mutex<HashSet<Noted>>>);

/// A run that writes under a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Noted {
    epoch: Epoch,
    under: CheckpointId,
    thread: String,
    namespace: String,
    run: String,
}

impl Noted {
    pub(super) fn new(lease: Lease<'_>, under: CheckpointId, run: &str) -> Self {
        let [thread, namespace, run] = [lease.thread, lease.namespace, run].map(ToOwned::to_owned);
        Self { epoch: lease.epoch, under, thread, namespace, run }
    }
}

impl KnownRuns {
    /// More are not remembered: most of them have ended long ago.
    const MOST: usize = 1000;

    pub(super) fn contains(&self, run: &Noted) -> bool {
        self.lock().contains(run)
    }

    pub(super) fn add(&self, run: Noted) {
        let mut known = self.lock();
        if known.len() >= Self::MOST {
            known.clear();
        }
        known.insert(run);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Noted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
