//! Removing rows from a namespace, whatever stands on them.

use std::collections::HashSet;

use rusqlite::params;
use superstep::{CheckpointError, CheckpointId};
use superstep_storage::rows::{PendingRow, ReadRows, Removal, RemovalPlan, Removing, Space, id_bytes};

use super::Work;
use crate::sql::checkpoints as sql;

impl Work<'_> {
    /// Removes rows; what stays keeps all its values. What removed steps wrote under rows that stay goes with a run.
    pub(super) fn remove(&self, space: &Space, removing: &Removing<'_>) -> Result<(), CheckpointError> {
        let codec = removing.codec;
        let mut read_rows = ReadRows::default();
        for id in removing.staying() {
            if read_rows.lacks(id) {
                read_rows.add(self.rows_below(codec, space.key, id, true)?);
            }
        }
        self.fetch(codec, space.key, removing.needed(&read_rows)?, &mut read_rows)?;
        let pending = self.consumed(space.key, removing)?;
        self.fetch(codec, space.key, pending.iter().filter_map(|row| row.consumed), &mut read_rows)?;
        self.carry_out(space, removing, &removing.plan(&read_rows, &pending)?)
    }

    /// What was written under rows that stay and has values in those that go.
    fn consumed(&self, space: i64, removing: &Removing<'_>) -> Result<Vec<PendingRow>, CheckpointError> {
        let mut consumed = Vec::new();
        for (under, by) in removing.consumed() {
            self.take_out(removing.codec, space, under)?;
            let params = params![space, id_bytes(under), id_bytes(by)];
            consumed.extend(self.pending(removing.codec, sql::CONSUMED, params)?);
        }
        Ok(consumed)
    }

    fn carry_out(&self, space: &Space, removing: &Removing<'_>, plan: &RemovalPlan) -> Result<(), CheckpointError> {
        plan.outlines.iter().try_for_each(|outline| self.set_outline(space.key, outline))?;
        plan.pending.iter().try_for_each(|row| self.set_pending(space.key, row))?;
        plan.forgotten.iter().try_for_each(|under| self.remove_pending(space.key, *under))?;
        self.remove_rows(space.key, &plan.removed)?;
        if let Some(latest) = plan.head {
            return self.done(self.run(sql::SET_HEAD, params![space.key, id_bytes(latest)])).map(drop);
        }
        self.done(self.run(sql::REMOVE_SPACE, [space.key]))?;
        match removing.why {
            Removal::Prune => Ok(()),
            // The thread goes with the last of its namespaces.
            Removal::Run => self.done(self.run(sql::REMOVE_EMPTY, [removing.codec.thread])).map(drop),
        }
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

    /// Removes what was written under a row.
    fn remove_pending(&self, space: i64, under: CheckpointId) -> Result<(), CheckpointError> {
        self.done(self.run(sql::FORGET_INLINED, params![space, id_bytes(under)]))?;
        self.done(self.run(sql::REMOVE_PENDING, params![space, id_bytes(under)])).map(drop)
    }
}
