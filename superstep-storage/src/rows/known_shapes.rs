//! The shapes that need not be sent again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use superstep::Saving;

use super::IdBytes;

/// The digests of shapes that are in the database, sealed as the saver seals now.
#[derive(Debug, Clone, Default)]
pub struct KnownShapes(Arc<Mutex<HashSet<IdBytes>>>);

impl KnownShapes {
    /// Whether the database has it.
    pub fn contains(&self, shape: &IdBytes) -> bool {
        self.lock().contains(shape)
    }

    /// Adds the shape that a row brings along, if it does, when the row is saved.
    pub fn add_with(&self, saving: Saving, shape: Option<IdBytes>) -> Saving {
        let Some(shape) = shape else { return saving };
        let known = self.clone();
        Saving::later(async move {
            saving.await?;
            known.lock().insert(shape);
            Ok(())
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<IdBytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
