//! Removing rows from a namespace, whatever stands on them.

use std::collections::HashSet;

use super::housekeeping::Space;
use super::read::pending;
use super::work::{Param, Work, all, bytes, params};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::rows::{
    Desk, Made, PendingRow, Removal, Shelf, consumed_under, left_by_steps, needed_without, outlines_without,
};
use crate::database::sql::postgres_checkpoints as sql;
use crate::id::CheckpointId;

impl Work<'_> {
    /// Removes rows; what stays keeps all its values. What removed steps wrote under rows that stay goes with a run.
    pub(super) async fn remove(
        &self,
        desk: Desk<'_>,
        space: &Space,
        made: &[Made],
        removed: &HashSet<CheckpointId>,
        why: Removal,
    ) -> Result<(), CheckpointError> {
        self.keep_values(desk, space.key, made, removed).await?;
        if why == Removal::Run {
            let left: Vec<_> = left_by_steps(made, removed).into_iter().map(bytes).collect();
            self.run(sql::REMOVE_PENDING, params![space.key => INT8, left => BYTEA_ARRAY]).await?;
        }
        self.keep_writes(desk, space.key, made, removed).await?;
        let ids: Vec<_> = removed.iter().copied().map(bytes).collect();
        let gone: &[Param<'_>] = params![space.key => INT8, ids => BYTEA_ARRAY];
        self.run(sql::REMOVE_PENDING, gone).await?;
        self.run(sql::REMOVE_CHECKPOINTS, gone).await?;
        match made.iter().map(|made| made.id).filter(|id| !removed.contains(id)).max() {
            Some(latest) if latest != space.head => {
                let params: &[Param<'_>] = params![space.key => INT8, bytes(latest) => BYTEA];
                self.run(sql::SET_HEAD, params).await.map(drop)
            }
            Some(_) => Ok(()),
            None => self.remove_space(desk, space.key, why).await,
        }
    }

    /// Removes an empty namespace, and with a run the thread whose last one it was.
    async fn remove_space(&self, desk: Desk<'_>, space: i64, why: Removal) -> Result<(), CheckpointError> {
        self.run(sql::REMOVE_SPACE, params![space => INT8]).await?;
        match why {
            Removal::Prune => Ok(()),
            Removal::Run => self.run(sql::FORGET_EMPTY, params![desk.thread => TEXT]).await.map(drop),
        }
    }

    /// Gives outlines to rows that need something of removed ones.
    async fn keep_values(
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
        let Some(any) = staying.first().copied() else { return Ok(()) };
        let broken = |missing| desk.damaged(any, missing);
        let ids: Vec<_> = staying.iter().copied().map(bytes).collect();
        let params: &[Param<'_>] = params![space => INT8, ids => BYTEA_ARRAY];
        let mut shelf = self.found(desk, sql::CHAINS, params).await?.shelf;
        let needed = needed_without(&shelf, removed, &staying).map_err(broken)?;
        self.fetch(desk, space, needed, &mut shelf).await?;
        let outlines = outlines_without(&shelf, removed, staying).map_err(broken)?;
        all(outlines.iter().map(|(id, outline)| self.set_outline(desk, space, *id, outline))).await.map(drop)
    }

    /// Brings values into rows of pending writes that lie in the tails of removed rows.
    async fn keep_writes(
        &self,
        desk: Desk<'_>,
        space: i64,
        made: &[Made],
        removed: &HashSet<CheckpointId>,
    ) -> Result<(), CheckpointError> {
        let (under, by): (Vec<_>, Vec<_>) =
            consumed_under(made, removed).into_iter().map(|(under, by)| (bytes(under), bytes(by))).unzip();
        let params: &[Param<'_>] = params![space => INT8, under => BYTEA_ARRAY, by => BYTEA_ARRAY];
        let found = self.rows(sql::CONSUMED, params).await?;
        let rows = found.iter().map(|row| self.saver.done(pending(row))?.row(desk));
        let rows: Vec<PendingRow> = rows.collect::<Result<_, _>>()?;
        let mut shelf = Shelf::default();
        self.fetch(desk, space, rows.iter().filter_map(|row| row.consumed), &mut shelf).await?;
        let mut whole = Vec::with_capacity(rows.len());
        for row in &rows {
            let task = shelf.task(&desk.open_pending(row)?);
            let task = task.map_err(|missing| desk.damaged(row.checkpoint, missing))?;
            whole.push(desk.pending_row(row.checkpoint, &task)?);
        }
        all(whole.iter().map(|row| self.set_pending(space, row))).await.map(drop)
    }
}
