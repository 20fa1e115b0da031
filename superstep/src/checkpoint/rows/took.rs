//! What a step's only task wrote, in the row of the checkpoint that took it in.
//!
//! Such a checkpoint is based on the one that was the latest when it came, and ids only grow: so it is the next row after
//! that one, and is found without an index.

use super::{Desk, IdBytes, PendingRow, task_from};
use crate::checkpoint::CheckpointError;
use crate::id::CheckpointId;

/// What a row takes in: the task, whether values of it lie in the row's tails, and what is sealed.
pub(crate) fn take_in(pending: &PendingRow) -> Vec<u8> {
    let mut took = Vec::with_capacity(size_of::<IdBytes>() + 1 + pending.body.len());
    took.extend(pending.task.as_u128().to_be_bytes());
    took.push(u8::from(pending.consumed.is_some()));
    took.extend(&pending.body);
    took
}

impl Desk<'_> {
    /// What was written under `base`, as the row of `by` has it.
    pub(crate) fn taken(
        &self,
        by: CheckpointId,
        base: Option<CheckpointId>,
        took: &[u8],
    ) -> Result<PendingRow, CheckpointError> {
        let damaged = |why: &str| self.fail(by, "what it took in", why);
        let checkpoint = base.ok_or_else(|| damaged("it is based on nothing"))?;
        let (task, rest) = took.split_at_checked(size_of::<IdBytes>()).ok_or_else(|| damaged("it is cut off"))?;
        let consumed = match rest.first() {
            Some(0) => None,
            Some(1) => Some(by),
            _ => return Err(damaged("it is neither here nor there")),
        };
        let task = task_from(task).map_err(|why| damaged(&why))?;
        Ok(PendingRow { checkpoint, task, consumed, body: rest[1..].to_vec() })
    }
}
