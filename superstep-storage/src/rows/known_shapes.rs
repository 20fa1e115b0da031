//! The shapes that need not be sent again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::IdBytes;

/// The digests of shapes that are in the database, sealed as the saver seals now.
#[derive(Debug, Clone, Default)]
pub struct KnownShapes(Arc<Mutex<HashSet<IdBytes>>>);

impl KnownShapes {
    /// Whether the database has it.
    pub fn contains(&self, shape: &IdBytes) -> bool {
        self.lock().contains(shape)
    }

    /// Adds the shape that a row brought along, if it did: the row is saved.
    pub fn add(&self, shape: Option<IdBytes>) {
        if let Some(shape) = shape {
            self.lock().insert(shape);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<IdBytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
