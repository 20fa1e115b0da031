//! Inputs that were saved and will be merged into the state next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::checkpoint::{Blob, CheckpointRecord, Lease, Source};
use crate::id::CheckpointId;

/// The control parts of checkpoints that hold an input, until the next checkpoint of their namespace: its tails hold the
/// same bytes, and need not be saved again. A help only: what is not here is saved twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inputs(Arc<Mutex<HashMap<(String, String), (CheckpointId, Blob)>>>);

impl Inputs {
    /// So many threads may be between their input and their first step; at more, those before are forgotten.
    const MOST: usize = 4096;
    const WORTH_KEEPING: usize = 64;

    /// What the base of a checkpoint holds, if it is an input; remembers the checkpoint's own.
    pub(crate) fn take(&self, lease: Lease<'_>, record: &CheckpointRecord) -> Blob {
        let is_input = record.source == Source::Input && record.control.len() >= Self::WORTH_KEEPING;
        let mut inputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_input && inputs.is_empty() {
            return Blob::default();
        }
        let place = (lease.thread.to_owned(), lease.namespace.to_owned());
        let before = inputs.remove(&place).filter(|(id, _)| Some(*id) == record.base);
        if is_input {
            if inputs.len() >= Self::MOST {
                inputs.clear();
            }
            inputs.insert(place, (record.id, record.control.clone()));
        }
        before.map(|(_, control)| control).unwrap_or_default()
    }
}
