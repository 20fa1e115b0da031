//! What a statement gave, opened.

use std::collections::HashMap;

use superstep::{Blob, CheckpointError, CheckpointId, SavedCheckpoint};

use super::{IdBytes, Missing, PendingRow, ReadRows, RowCodec, StoredRow, id_from, task_from};

/// Rows as they came.
#[derive(Debug, Default)]
pub struct Raw {
    /// Rows of checkpoints.
    pub checkpoints: Vec<StoredRow>,
    /// What tasks wrote.
    pub pending: Vec<RawPending>,
    /// Rows, and the writes of tasks that they hold.
    pub inlined: Vec<(Vec<u8>, Vec<u8>)>,
    /// Digests and bodies.
    pub shapes: Vec<(Vec<u8>, Vec<u8>)>,
    /// The latest checkpoint of the namespace.
    pub head: Option<Vec<u8>>,
    /// The newest row of the namespace, which the head must be.
    pub newest: Option<Vec<u8>>,
    /// The checkpoints that were asked for.
    pub listed: Vec<Vec<u8>>,
}

/// What a task wrote, as it came.
#[derive(Debug)]
pub struct RawPending {
    /// The checkpoint that it was written under.
    pub checkpoint: Vec<u8>,
    /// The task.
    pub task: Vec<u8>,
    /// The checkpoint whose tails hold values of it.
    pub consumed: Option<Vec<u8>>,
    /// What is sealed.
    pub body: Vec<u8>,
}

/// Rows, and what was asked for.
#[derive(Debug, Default)]
pub struct Found {
    /// The rows, opened.
    pub read_rows: ReadRows,
    /// The latest checkpoint of the namespace.
    pub head: Option<CheckpointId>,
    /// The checkpoints that were asked for, newest first.
    pub listed: Vec<CheckpointId>,
}

impl Raw {
    /// Opens all rows.
    pub fn open(self, codec: RowCodec<'_>) -> Result<Found, CheckpointError> {
        let id = |bytes: &[u8]| id_from(bytes).map_err(|why| codec.fail("?", "row", why));
        let shapes = self.shapes.iter().map(|(digest, body)| codec.open_shape(digest, body));
        let shapes: HashMap<IdBytes, Blob> = shapes.collect::<Result<_, _>>()?;
        let mut found = Found { head: self.head.as_deref().map(id).transpose()?, ..Found::default() };
        if let Some(head) = found.head
            && self.newest.as_deref().map(id).transpose()? > Some(head)
        {
            return Err(codec.fail(
                head,
                "head",
                "there is a newer checkpoint; the database was changed or is damaged",
            ));
        }
        for stored in self.checkpoints {
            let (id, row) = codec.open(stored, &shapes)?;
            found.read_rows.rows.insert(id, row);
        }
        found.read_rows.settle();
        for pending in self.pending {
            found.read_rows.pending.push(codec.open_pending(&pending.row(codec)?)?);
        }
        for (by, inlined) in &self.inlined {
            let by = id(by)?;
            // The row is sealed together with its base.
            let base = found.read_rows.row(by).map_err(|missing| codec.damaged(by, missing))?.record.base();
            for pending in codec.inlined(by, base, inlined)? {
                found.read_rows.pending.push(codec.open_pending(&pending)?);
            }
        }
        found.listed = self.listed.iter().map(|listed| id(listed)).collect::<Result<_, _>>()?;
        found.listed.sort_unstable_by(|a, b| b.cmp(a));
        Ok(found)
    }
}

impl RawPending {
    /// The row, opened or as it is sealed.
    pub fn row(self, codec: RowCodec<'_>) -> Result<PendingRow, CheckpointError> {
        let id = |bytes: &[u8]| id_from(bytes).map_err(|why| codec.fail("?", "pending writes", why));
        let task = task_from(&self.task).map_err(|why| codec.fail("?", "pending writes", why))?;
        let consumed = self.consumed.as_deref().map(id).transpose()?;
        Ok(PendingRow { checkpoint: id(&self.checkpoint)?, task, consumed, body: self.body })
    }
}

impl Found {
    /// The head, and a checkpoint: this one, or the head.
    pub fn checkpoint(
        &self,
        codec: RowCodec<'_>,
        checkpoint: Option<CheckpointId>,
    ) -> Result<(Option<CheckpointId>, Option<SavedCheckpoint>), CheckpointError> {
        let wanted = checkpoint.or(self.head);
        let is_there = wanted.is_some_and(|wanted| self.read_rows.rows.contains_key(&wanted));
        match wanted {
            // A head that is not there is damage, an id that is not there is none.
            Some(id) if is_there || self.head == Some(id) => Ok((self.head, Some(self.saved(codec, id)?))),
            _ => Ok((self.head, None)),
        }
    }

    /// A checkpoint that is put together from rows.
    pub(crate) fn saved(&self, codec: RowCodec<'_>, id: CheckpointId) -> Result<SavedCheckpoint, CheckpointError> {
        self.read_rows.saved(id).map_err(|missing| codec.damaged(id, missing))
    }
}

impl RowCodec<'_> {
    /// Something that a checkpoint needs is missing.
    pub(crate) fn damaged(&self, id: impl ToString, missing: Missing) -> CheckpointError {
        self.fail(id, missing.0, "it is not in the database; the database is damaged")
    }
}
