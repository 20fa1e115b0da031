//! Removing rows from a namespace, whatever stands on them.

use superstep::CheckpointError;
use superstep_storage::rows::{PendingRow, Removal, RemovalPlan, Removing, Space};

use super::read::pending;
use super::work::{Param, Work, all, bytes, params};
use crate::sql::checkpoints as sql;

impl Work<'_> {
    /// Removes rows; what stays keeps all its values. What removed steps wrote under rows that stay goes with a run.
    pub(super) async fn remove(&self, space: &Space, removing: &Removing<'_>) -> Result<(), CheckpointError> {
        let codec = removing.codec;
        let staying: Vec<_> = removing.staying().into_iter().map(bytes).collect();
        let params: &[Param<'_>] = params![space.key => INT8, staying => BYTEA_ARRAY];
        let mut read_rows = self.found(codec, sql::CHAINS, params).await?.read_rows;
        self.fetch(codec, space.key, removing.needed(&read_rows)?, &mut read_rows).await?;
        let pending = self.consumed(space.key, removing).await?;
        self.fetch(codec, space.key, pending.iter().filter_map(|row| row.consumed), &mut read_rows).await?;
        self.carry_out(space, removing, &removing.plan(&read_rows, &pending)?).await
    }

    /// What was written under rows that stay and has values in those that go.
    async fn consumed(&self, space: i64, removing: &Removing<'_>) -> Result<Vec<PendingRow>, CheckpointError> {
        let (under, by): (Vec<_>, Vec<_>) =
            removing.consumed().into_iter().map(|(under, by)| (bytes(under), bytes(by))).unzip();
        let params: &[Param<'_>] = params![space => INT8, under => BYTEA_ARRAY, by => BYTEA_ARRAY];
        let found = self.rows(sql::CONSUMED, params).await?;
        found.iter().map(|row| self.saver.done(pending(row))?.row(removing.codec)).collect()
    }

    async fn carry_out(
        &self,
        space: &Space,
        removing: &Removing<'_>,
        plan: &RemovalPlan,
    ) -> Result<(), CheckpointError> {
        all(plan.outlines.iter().map(|outline| self.set_outline(space.key, outline))).await?;
        all(plan.pending.iter().map(|row| self.set_pending(space.key, row))).await?;
        let ids = |ids: &[_]| ids.iter().copied().map(bytes).collect::<Vec<_>>();
        let (forgotten, removed) = (ids(&plan.forgotten), ids(&plan.removed));
        self.run(sql::REMOVE_PENDING, params![space.key => INT8, forgotten => BYTEA_ARRAY]).await?;
        self.run(sql::REMOVE_CHECKPOINTS, params![space.key => INT8, removed => BYTEA_ARRAY]).await?;
        if let Some(latest) = plan.head.map(bytes) {
            return self.run(sql::SET_HEAD, params![space.key => INT8, latest => BYTEA]).await.map(drop);
        }
        self.run(sql::REMOVE_SPACE, params![space.key => INT8]).await?;
        match removing.why {
            Removal::Prune => Ok(()),
            // The thread goes with the last of its namespaces.
            Removal::Run => self.run(sql::FORGET_EMPTY, params![removing.codec.thread => TEXT]).await.map(drop),
        }
    }
}
