//! Removing rows from a namespace, whatever stands on them.

use std::collections::HashSet;

use rusqlite::params;

use super::Work;
use super::housekeeping::Space;
use crate::checkpoint::CheckpointError;
use crate::checkpoint::rows::{
    Desk, Made, Removal, Shelf, consumed_under, id_bytes, left_by_steps, needed_without, outlines_without,
};
use crate::database::sql::sqlite_checkpoints as sql;
use crate::id::CheckpointId;

impl Work<'_> {
    /// Removes rows; what stays keeps all its values. What removed steps wrote under rows that stay goes with a run.
    pub(super) fn remove(
        &self,
        desk: Desk<'_>,
        space: &Space,
        made: &[Made],
        removed: &HashSet<CheckpointId>,
        why: Removal,
    ) -> Result<(), CheckpointError> {
        self.keep_values(desk, space.key, made, removed)?;
        if why == Removal::Run {
            for left in left_by_steps(made, removed) {
                self.remove_pending(space.key, left)?;
            }
        }
        self.keep_writes(desk, space.key, made, removed)?;
        self.remove_rows(space.key, removed)?;
        match made.iter().map(|made| made.id).filter(|id| !removed.contains(id)).max() {
            Some(latest) => self.done(self.run(sql::SET_HEAD, params![space.key, id_bytes(latest)])).map(drop),
            None => self.remove_space(desk, space.key, why),
        }
    }

    /// Removes rows with what was written under them, and notes of runs that have no others in the namespace.
    fn remove_rows(&self, space: i64, removed: &HashSet<CheckpointId>) -> Result<(), CheckpointError> {
        let mut runs = HashSet::new();
        for id in removed {
            self.remove_pending(space, *id)?;
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

    /// Removes an empty namespace, and with a run the thread whose last one it was.
    fn remove_space(&self, desk: Desk<'_>, space: i64, why: Removal) -> Result<(), CheckpointError> {
        self.done(self.run(sql::REMOVE_SPACE, [space]))?;
        match why {
            Removal::Prune => Ok(()),
            Removal::Run => self.done(self.run(sql::REMOVE_EMPTY, [desk.thread])).map(drop),
        }
    }

    /// Gives outlines to rows that need something of removed ones.
    fn keep_values(
        &self,
        desk: Desk<'_>,
        space: i64,
        made: &[Made],
        removed: &HashSet<CheckpointId>,
    ) -> Result<(), CheckpointError> {
        let stands_on_removed = |made: &Made| made.base.is_some_and(|base| removed.contains(&base));
        let staying = made.iter().filter(|made| !removed.contains(&made.id));
        let staying = staying.filter(|made| made.has_outline || stands_on_removed(made)).map(|made| made.id);
        let staying: Vec<CheckpointId> = staying.collect();
        let mut shelf = Shelf::default();
        for id in &staying {
            if shelf.lacks(*id) {
                shelf.add(self.rows_below(desk, space, *id, true)?.rows);
            }
        }
        let Some(any) = staying.first().copied() else { return Ok(()) };
        let broken = |missing| desk.damaged(any, missing);
        let needed = needed_without(&shelf, removed, &staying).map_err(broken)?;
        self.fetch(desk, space, &needed.into_iter().collect::<Vec<_>>(), &mut shelf)?;
        let outlines = outlines_without(&shelf, removed, staying).map_err(broken)?;
        outlines.iter().try_for_each(|(id, outline)| self.set_outline(desk, space, *id, outline))
    }

    /// Brings values into rows of pending writes that lie in removed rows.
    fn keep_writes(
        &self,
        desk: Desk<'_>,
        space: i64,
        made: &[Made],
        removed: &HashSet<CheckpointId>,
    ) -> Result<(), CheckpointError> {
        for (under, by) in consumed_under(made, removed) {
            self.take_out(desk, space, under)?;
            for row in self.pending(desk, sql::CONSUMED, params![space, id_bytes(under), id_bytes(by)])? {
                let task = self.task(desk, space, &row)?;
                self.set_pending(space, &desk.pending_row(row.checkpoint, &task)?)?;
            }
        }
        Ok(())
    }
}
