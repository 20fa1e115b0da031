//! Removing rows from a namespace, whatever stands on them.

use std::collections::HashSet;

use rusqlite::params;
use superstep::{CheckpointError, CheckpointId};
use superstep_storage::rows::{PAGE, PendingRow, ReadRows, RemovalPlan, Removing, RowCodec, Space, id_bytes};

use super::Work;
use crate::sql::checkpoints as sql;

impl Work<'_> {
    /// Removes rows; what stays keeps all its values.
    pub(super) fn remove(&self, space: &Space, removing: &Removing<'_>) -> Result<(), CheckpointError> {
        let codec = removing.codec;
        let mut read_rows = ReadRows::default();
        for id in removing.staying() {
            if read_rows.lacks(id) {
                read_rows.add(self.rows_below(codec, space.key, id, true)?);
            }
        }
        self.fetch(codec, space.key, removing.needed(&read_rows)?, &mut read_rows)?;
        let pending = self.written(space.key, removing)?;
        self.fetch(codec, space.key, pending.iter().filter_map(|row| row.consumed), &mut read_rows)?;
        self.carry_out(space, codec.thread, &removing.plan(&read_rows, &pending)?)
    }

    /// What was written under rows that stay and may have values in those that go.
    fn written(&self, space: i64, removing: &Removing<'_>) -> Result<Vec<PendingRow>, CheckpointError> {
        let mut written = Vec::new();
        for under in removing.built_on() {
            self.take_out(removing.codec, space, under)?;
            written.extend(self.pending(removing.codec, sql::WRITTEN, params![space, id_bytes(under)])?);
        }
        Ok(written)
    }

    fn carry_out(&self, space: &Space, thread: &str, plan: &RemovalPlan) -> Result<(), CheckpointError> {
        plan.outlines.iter().try_for_each(|outline| self.set_outline(space.key, outline))?;
        plan.pending.iter().try_for_each(|row| self.set_pending(space.key, row))?;
        plan.removed.iter().try_for_each(|under| self.remove_pending(space.key, *under))?;
        self.remove_rows(space.key, &plan.removed)?;
        if let Some(latest) = plan.head {
            return self.done(self.run(sql::SET_HEAD, params![space.key, id_bytes(latest)])).map(drop);
        }
        self.done(self.run(sql::REMOVE_SPACE, [space.key]))?;
        self.done(self.run(sql::REMOVE_WRITERS, [space.key]))?;
        // The thread goes with the last of its namespaces.
        self.done(self.run(sql::REMOVE_EMPTY, [thread])).map(drop)
    }

    /// Removes rows, and notes of runs that have no others in the namespace.
    fn remove_rows(&self, space: i64, removed: &[CheckpointId]) -> Result<(), CheckpointError> {
        let mut runs = HashSet::new();
        for id in removed {
            let removed: Vec<Option<String>> = self.column(sql::REMOVE_CHECKPOINT, params![space, id_bytes(*id)])?;
            runs.extend(removed.into_iter().flatten());
        }
        if !runs.is_empty() {
            for left in self.column::<String>(sql::RUNS, [space])? {
                runs.remove(&left);
            }
        }
        runs.iter().try_for_each(|run| self.done(self.run(sql::REMOVE_RUN, params![run, space])).map(drop))
    }

    /// Removes what a run wrote under rows of a namespace.
    pub(super) fn forget_written_by(&self, codec: RowCodec<'_>, space: i64, run: &str) -> Result<(), CheckpointError> {
        let mut after = (Vec::new(), Vec::new());
        loop {
            let rows = self.pending(codec, sql::PENDING_PAGE, params![space, after.0, after.1, PAGE as i64])?;
            let Some(last) = rows.last() else { break };
            after = (id_bytes(last.checkpoint).to_vec(), last.task.as_u128().to_be_bytes().to_vec());
            for row in rows {
                if codec.is_of_run(&row, run)? {
                    self.forget_part(codec, space, &row, run)?;
                }
            }
        }
        self.done(self.run(sql::REMOVE_WRITER, params![run, space])).map(drop)
    }

    /// Removes what a run wrote from a row of pending writes.
    fn forget_part(&self, codec: RowCodec<'_>, space: i64, row: &PendingRow, run: &str) -> Result<(), CheckpointError> {
        let mut read_rows = ReadRows::default();
        self.fetch(codec, space, row.consumed, &mut read_rows)?;
        if let Some(left) = codec.without_run(row, run, &read_rows)? {
            return self.set_pending(space, &left);
        }
        let params = params![space, id_bytes(row.checkpoint), row.task.as_u128().to_be_bytes()];
        self.done(self.run(sql::REMOVE_WRITTEN, params)).map(drop)
    }

    /// Removes what was written under a row.
    fn remove_pending(&self, space: i64, under: CheckpointId) -> Result<(), CheckpointError> {
        self.done(self.run(sql::FORGET_INLINED, params![space, id_bytes(under)]))?;
        self.done(self.run(sql::REMOVE_PENDING, params![space, id_bytes(under)])).map(drop)
    }
}
