//! Threads as a whole: forgetting, pruning and sweeping, in batches beside those who write.

use std::collections::HashSet;

use superstep::{CheckpointError, CheckpointId, Deletion, Prune};
use superstep_storage::rows::{BATCH, Pruning, Removing, RowCodec, RowSummary, Space, id_from, moment};
use tokio_postgres::Row;

use super::work::{Param, Work, params};
use super::{PostgresSaver, is_kept};
use crate::sql::checkpoints as sql;

impl PostgresSaver {
    pub(super) async fn forget(&self, thread: &str) -> Result<(), CheckpointError> {
        if !is_kept(&[thread]) {
            return Ok(());
        }
        let client = self.client().await?;
        let work = self.work(&client);
        let by_name: &[Param<'_>] = params![thread => TEXT];
        let rows = work.transact(&[(sql::SHUT, by_name), (sql::FORGET, by_name)]).await?;
        work.clear_all(&self.columns(&rows[1], 0)?).await
    }

    /// Forgets threads whose time has come, and says how many.
    pub(super) async fn forget_all_expired(&self) -> Result<usize, CheckpointError> {
        if self.ttl.is_none() {
            return Ok(0);
        }
        let client = self.client().await?.unhurried();
        let work = self.work(&client);
        let mut forgotten = 0;
        let expired: Vec<String> = self.columns(&work.rows(sql::EXPIRED, params![self.ttl => INT8]).await?, 0)?;
        for thread in &expired {
            let by_name: &[Param<'_>] = params![thread => TEXT];
            let expired: &[Param<'_>] = params![thread => TEXT, self.ttl => INT8];
            let rows = work.transact(&[(sql::SHUT, by_name), (sql::FORGET_EXPIRED, expired)]).await?;
            let gone: Vec<i64> = self.columns(&rows[1], 0)?;
            // One that was used meanwhile, or forgotten by someone else, had none; nor had a claim that was never used.
            forgotten += usize::from(!gone.is_empty());
            work.clear_all(&gone).await?;
        }
        Ok(forgotten)
    }

    /// Forgets claims of long ago that were never used, if threads do not expire.
    pub(super) async fn forget_idle(&self) -> Result<(), CheckpointError> {
        let client = self.client().await?.unhurried();
        let work = self.work(&client);
        let idle: Vec<String> = self.columns(&work.rows(sql::IDLE, &[]).await?, 0)?;
        for thread in &idle {
            let by_name: &[Param<'_>] = params![thread => TEXT];
            work.transact(&[(sql::SHUT, by_name), (sql::FORGET_IDLE, by_name)]).await?;
        }
        Ok(())
    }

    /// Removes what belongs to no thread, and says how many rows that were.
    pub(super) async fn remove_orphans(&self) -> Result<usize, CheckpointError> {
        let client = self.client().await?.unhurried();
        let work = self.work(&client);
        let mut removed = work.run(sql::ORPHANED_SPACES, &[]).await?;
        let lost: Vec<i64> = self.columns(&work.rows(sql::LOST_SPACES, &[]).await?, 0)?;
        for space in lost {
            removed += work.clear(space).await?;
        }
        Ok(removed + work.run(sql::ORPHANED_PENDING, &[]).await?)
    }

    /// Forgets at most a batch of what a rule does not keep, and says how many.
    pub(super) async fn prune_some(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError> {
        if !is_kept(&[thread]) {
            return Ok(0);
        }
        let mut client = self.client().await?;
        let transaction = self.begin(&mut client).await?;
        let work = self.work(transaction.client());
        work.row(sql::HOLD, params![thread => TEXT]).await?;
        let spaces = work.spaces(thread).await?;
        let root = match spaces.iter().find(|space| space.name.is_empty()) {
            Some(root) => work.summaries(self.codec(thread, ""), root.key).await?,
            None => Vec::new(),
        };
        let pruning = Pruning::new(prune, &root);
        for space in &spaces {
            let codec = self.codec(thread, &space.name);
            let all = work.summaries(codec, space.key).await?;
            let removed = pruning.doomed(space, &all);
            if !removed.is_empty() {
                work.remove(space, &Removing { codec, all: &all, removed: &removed }).await?;
                transaction.commit().await?;
                return Ok(removed.len());
            }
        }
        Ok(0)
    }

    /// Forgets checkpoints of a namespace, and what a run wrote under others; says how many checkpoints those were.
    pub(super) async fn delete(
        &self,
        thread: &str,
        namespace: &str,
        deletion: &Deletion,
    ) -> Result<usize, CheckpointError> {
        if !is_kept(&[thread, namespace]) {
            return Ok(0);
        }
        let mut client = self.client().await?;
        let transaction = self.begin(&mut client).await?;
        let work = self.work(transaction.client());
        work.row(sql::HOLD, params![thread => TEXT]).await?;
        let Some(space) = work.spaces(thread).await?.into_iter().find(|space| space.name == namespace) else {
            return Ok(0);
        };
        let codec = self.codec(thread, namespace);
        let all = work.summaries(codec, space.key).await?;
        let removed: HashSet<_> = all.iter().map(|row| row.id).filter(|id| deletion.takes(*id)).collect();
        if !removed.is_empty() {
            work.remove(&space, &Removing { codec, all: &all, removed: &removed }).await?;
        }
        if let Some(run) = deletion.run() {
            work.forget_written_by(codec, space.key, run).await?;
        }
        transaction.commit().await?;
        Ok(removed.len())
    }

    pub(super) async fn forget_run(&self, run: &str) -> Result<usize, CheckpointError> {
        if !is_kept(&[run]) {
            return Ok(0);
        }
        let client = self.client().await?;
        let found = self.work(&client).rows(sql::SPACES_OF_RUN, params![run => TEXT]).await?;
        drop(client);
        let mut forgotten = 0;
        for row in &found {
            let (thread, space): (String, i64) = (self.column(row, 0)?, self.column(row, 1)?);
            loop {
                match self.forget_some_of_run(&thread, space, run).await? {
                    0 => break,
                    some => forgotten += some,
                }
            }
        }
        Ok(forgotten)
    }

    /// Forgets at most a batch of a run's checkpoints in a namespace, and says how many.
    async fn forget_some_of_run(&self, thread: &str, key: i64, run: &str) -> Result<usize, CheckpointError> {
        let mut client = self.client().await?;
        let transaction = self.begin(&mut client).await?;
        let work = self.work(transaction.client());
        work.row(sql::HOLD, params![thread => TEXT]).await?;
        let Some(space) = work.spaces(thread).await?.into_iter().find(|space| space.key == key) else {
            return Ok(0);
        };
        let codec = self.codec(thread, &space.name);
        let params: &[Param<'_>] = params![key => INT8, run => TEXT, BATCH as i64 => INT8];
        let rows = work.rows(sql::OF_RUN, params).await?;
        let ids = rows.iter().map(|row| work.id(codec, row, 0));
        let removed: HashSet<CheckpointId> = ids.collect::<Result<_, _>>()?;
        if !removed.is_empty() {
            let all = work.summaries(codec, key).await?;
            work.remove(&space, &Removing { codec, all: &all, removed: &removed }).await?;
        }
        work.forget_written_by(codec, key, run).await?;
        transaction.commit().await?;
        Ok(removed.len())
    }
}

impl Work<'_> {
    pub(super) async fn spaces(&self, thread: &str) -> Result<Vec<Space>, CheckpointError> {
        let rows = self.rows(sql::SPACES, params![thread => TEXT]).await?;
        let space = |row: &Row| {
            let name: String = self.saver.column(row, 1)?;
            let head = self.id(self.saver.codec(thread, &name), row, 2)?;
            Ok(Space { key: self.saver.column(row, 0)?, name, head })
        };
        rows.iter().map(space).collect()
    }

    pub(super) async fn summaries(&self, codec: RowCodec<'_>, space: i64) -> Result<Vec<RowSummary>, CheckpointError> {
        let rows = self.rows(sql::SUMMARIES, params![space => INT8]).await?;
        let summary = |row: &Row| {
            Ok(RowSummary {
                id: self.id(codec, row, 0)?,
                base: self.optional_id(codec, row, 1)?,
                root: self.optional_id(codec, row, 2)?,
                created_at: moment(self.saver.column(row, 3)?),
                has_outline: self.saver.column(row, 4)?,
            })
        };
        rows.iter().map(summary).collect()
    }

    fn id(&self, codec: RowCodec<'_>, row: &Row, place: usize) -> Result<CheckpointId, CheckpointError> {
        id_from(self.saver.column(row, place)?).map_err(|why| codec.fail("?", "row", why))
    }

    fn optional_id(
        &self,
        codec: RowCodec<'_>,
        row: &Row,
        place: usize,
    ) -> Result<Option<CheckpointId>, CheckpointError> {
        let bytes: Option<&[u8]> = self.saver.column(row, place)?;
        bytes.map(id_from).transpose().map_err(|why| codec.fail("?", "row", why))
    }

    pub(super) async fn clear_all(&self, spaces: &[i64]) -> Result<(), CheckpointError> {
        for space in spaces {
            self.clear(*space).await?;
        }
        Ok(())
    }

    /// Removes the rows of a namespace that nobody has, and says how many there were.
    async fn clear(&self, space: i64) -> Result<usize, CheckpointError> {
        let mut cleared = 0;
        self.run(sql::REMOVE_RUNS, params![space => INT8]).await?;
        for sql in [sql::SOME_PENDING, sql::SOME_CHECKPOINTS] {
            loop {
                let removed = self.run(sql, params![space => INT8, BATCH as i64 => INT8]).await?;
                cleared += removed;
                if removed < BATCH {
                    break;
                }
            }
        }
        Ok(cleared)
    }
}
