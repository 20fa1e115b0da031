//! What the tasks of a step wrote, in the row of the checkpoint that consumed it.
//!
//! A checkpoint that brings its writes along holds them itself, if nothing is pending under its base. Such a checkpoint is
//! based on the one that was the latest when it came, and ids only grow: so it is the next row after that one, and is found
//! without an index. Rows of pending writes are for steps that did not end.

use superstep::{CheckpointError, CheckpointId};

use super::{IdBytes, PendingRow, RowCodec, task_from};

/// Values of it lie in the tails of the row.
const IN_TAILS: u8 = 1;

/// Another one follows; so its length stands in front of what is sealed.
const FOLLOWED: u8 = 2;

/// The writes as a row holds them: of each task its id, marks, the length unless it is the last, and what is sealed.
pub fn inlined(pending: &[PendingRow]) -> Option<Vec<u8>> {
    let (last, others) = pending.split_last()?;
    let mut bytes = Vec::with_capacity(pending.iter().map(|row| size_of::<IdBytes>() + 5 + row.body.len()).sum());
    for row in others {
        push_head(&mut bytes, row, FOLLOWED);
        bytes.extend((row.body.len() as u32).to_be_bytes());
        bytes.extend(&row.body);
    }
    push_head(&mut bytes, last, 0);
    bytes.extend(&last.body);
    Some(bytes)
}

fn push_head(bytes: &mut Vec<u8>, row: &PendingRow, mark: u8) {
    bytes.extend(row.task.as_u128().to_be_bytes());
    bytes.push(mark | if row.consumed.is_some() { IN_TAILS } else { 0 });
}

impl RowCodec<'_> {
    /// What was written under `base`, as the row of `by` holds it.
    pub fn inlined(
        &self,
        by: CheckpointId,
        base: Option<CheckpointId>,
        bytes: &[u8],
    ) -> Result<Vec<PendingRow>, CheckpointError> {
        let damaged = |why: &str| self.fail(by, "writes", why);
        let checkpoint = base.ok_or_else(|| damaged("it is based on nothing"))?;
        let (mut rows, mut rest, mut is_followed) = (Vec::new(), bytes, true);
        while is_followed {
            let (task, mark, body);
            (task, mark, body, rest) = next(rest).ok_or_else(|| damaged("they are cut off"))?;
            if mark > IN_TAILS | FOLLOWED {
                return Err(damaged("they are of no known kind"));
            }
            let consumed = (mark & IN_TAILS != 0).then_some(by);
            let task = task_from(task).map_err(|why| damaged(&why))?;
            rows.push(PendingRow { checkpoint, task, consumed, body: body.to_vec() });
            is_followed = mark & FOLLOWED != 0;
        }
        Ok(rows)
    }
}

/// The next task's id, marks and sealed writes, and what is behind them.
fn next(bytes: &[u8]) -> Option<(&[u8], u8, &[u8], &[u8])> {
    let (task, rest) = bytes.split_at_checked(size_of::<IdBytes>())?;
    let (mark, rest) = rest.split_first()?;
    if mark & FOLLOWED == 0 {
        return Some((task, *mark, rest, &[]));
    }
    let (len, rest) = rest.split_first_chunk()?;
    let (body, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
    Some((task, *mark, body, rest))
}
