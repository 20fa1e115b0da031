//! Removing rows from a namespace, whatever stands on them.

use superstep::CheckpointError;
use superstep_storage::rows::{PAGE, PendingRow, ReadRows, RemovalPlan, Removing, RowCodec, Space};

use super::read::pending;
use super::work::{Param, Work, all, bytes, params};
use crate::sql::checkpoints as sql;

impl Work<'_> {
    /// Removes rows; what stays keeps all its values.
    pub(super) async fn remove(&self, space: &Space, removing: &Removing<'_>) -> Result<(), CheckpointError> {
        let codec = removing.codec;
        let staying: Vec<_> = removing.staying().into_iter().map(bytes).collect();
        let params: &[Param<'_>] = params![space.key => INT8, staying => BYTEA_ARRAY];
        let mut read_rows = self.found(codec, sql::CHAINS, params).await?.read_rows;
        self.fetch(codec, space.key, removing.needed(&read_rows)?, &mut read_rows).await?;
        let pending = self.written(space.key, removing).await?;
        self.fetch(codec, space.key, pending.iter().filter_map(|row| row.consumed), &mut read_rows).await?;
        self.carry_out(space, codec.thread, &removing.plan(&read_rows, &pending)?).await
    }

    /// What was written under rows that stay and may have values in those that go.
    async fn written(&self, space: i64, removing: &Removing<'_>) -> Result<Vec<PendingRow>, CheckpointError> {
        let under: Vec<_> = removing.built_on().into_iter().map(bytes).collect();
        let found = self.rows(sql::WRITTEN, params![space => INT8, under => BYTEA_ARRAY]).await?;
        found.iter().map(|row| self.saver.done(pending(row))?.row(removing.codec)).collect()
    }

    async fn carry_out(&self, space: &Space, thread: &str, plan: &RemovalPlan) -> Result<(), CheckpointError> {
        all(plan.outlines.iter().map(|outline| self.set_outline(space.key, outline))).await?;
        all(plan.pending.iter().map(|row| self.set_pending(space.key, row))).await?;
        let removed: Vec<_> = plan.removed.iter().copied().map(bytes).collect();
        self.run(sql::REMOVE_PENDING, params![space.key => INT8, removed => BYTEA_ARRAY]).await?;
        self.run(sql::REMOVE_CHECKPOINTS, params![space.key => INT8, removed => BYTEA_ARRAY]).await?;
        if let Some(latest) = plan.head.map(bytes) {
            return self.run(sql::SET_HEAD, params![space.key => INT8, latest => BYTEA]).await.map(drop);
        }
        self.run(sql::REMOVE_SPACE, params![space.key => INT8]).await?;
        self.run(sql::REMOVE_RUNS, params![space.key => INT8]).await?;
        // The thread goes with the last of its namespaces.
        self.run(sql::FORGET_EMPTY, params![thread => TEXT]).await.map(drop)
    }

    /// Removes what a run wrote under rows of a namespace.
    pub(super) async fn forget_written_by(
        &self,
        codec: RowCodec<'_>,
        space: i64,
        run: &str,
    ) -> Result<(), CheckpointError> {
        let (mut after, mut task): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
        loop {
            let params: &[Param<'_>] = params![space => INT8, after => BYTEA, task => BYTEA, PAGE as i64 => INT8];
            let found = self.rows(sql::PENDING_PAGE, params).await?;
            for row in &found {
                let row = self.saver.done(pending(row))?.row(codec)?;
                (after, task) = (Some(bytes(row.checkpoint)), Some(row.task.as_u128().to_be_bytes().to_vec()));
                if codec.is_of_run(&row, run)? {
                    self.forget_part(codec, space, &row, run).await?;
                }
            }
            if found.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Removes what a run wrote from a row of pending writes.
    async fn forget_part(
        &self,
        codec: RowCodec<'_>,
        space: i64,
        row: &PendingRow,
        run: &str,
    ) -> Result<(), CheckpointError> {
        let mut read_rows = ReadRows::default();
        self.fetch(codec, space, row.consumed, &mut read_rows).await?;
        if let Some(left) = codec.without_run(row, run, &read_rows)? {
            return self.set_pending(space, &left).await;
        }
        let (under, task) = (bytes(row.checkpoint), row.task.as_u128().to_be_bytes());
        let params: &[Param<'_>] = params![space => INT8, under => BYTEA, &task[..] => BYTEA];
        self.run(sql::REMOVE_WRITTEN, params).await.map(drop)
    }
}
