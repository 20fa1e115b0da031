//! Rows from someone who can seal: the fuzz targets read what they make up.

use superstep::{CheckpointError, CheckpointId, TaskId};

use super::{NewRow, PendingRow, RowCodec, StoredRow, pending_columns};
use crate::rows::id_bytes;

impl NewRow {
    /// The row as a database gives it back.
    pub(crate) fn stored(self) -> StoredRow {
        let bytes = |id: CheckpointId| id_bytes(id).to_vec();
        StoredRow {
            id: bytes(self.id),
            parent: self.parent.map(bytes),
            base: self.base.map(bytes),
            root: self.root.map(bytes),
            source: self.source,
            step: self.step,
            created_at: self.created_at,
            run: self.run.map(|run| run.to_string()),
            shape: self.shape.to_vec(),
            body: self.body,
            outline: None,
            needs_base: self.needs_base,
        }
    }
}

impl RowCodec<'_> {
    pub(crate) fn forged_body(&self, row: &StoredRow, body: &[u8]) -> Result<Vec<u8>, CheckpointError> {
        Ok(self.seal.seal(&self.context(b"checkpoint", &self.columns(row)?.bytes()), body))
    }

    pub(crate) fn forged_outline(&self, id: CheckpointId, outline: &[u8]) -> Vec<u8> {
        self.seal.seal(&self.context(b"outline", &id_bytes(id)), outline)
    }

    /// What a task wrote, with values in the tails of a checkpoint.
    pub(crate) fn forged_pending(&self, checkpoint: CheckpointId, consumed: CheckpointId, body: &[u8]) -> PendingRow {
        let (task, consumed) = (TaskId::from_u128(7), Some(consumed));
        let body = self.seal.seal(&self.context(b"pending", &pending_columns(checkpoint, task, consumed)), body);
        PendingRow { checkpoint, task, consumed, body }
    }
}
