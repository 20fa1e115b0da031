//! Saves that cannot be done by one statement: they merge, or are refused.
//!
//! Everything is asked again while nobody else can change the thread.

use superstep::checkpoint::backend::Decision;
use superstep::{CheckpointError, CheckpointId, Lease};
use superstep_storage::rows::{NewRow, PendingRow, ReadRows, RowCodec};

use super::PostgresSaver;
use super::read::pending;
use super::work::{Param, Work, bytes, params};
use super::write::{Columns, Placed};
use super::write_queue::Save;
use crate::database::Client;
use crate::sql::checkpoints as sql;

impl PostgresSaver {
    /// Saves it and merges what its tasks wrote with what is known of them, or says why not. A checkpoint that is saved
    /// already is not saved again, and is placed nowhere.
    pub(super) async fn save_checked(
        &self,
        client: &mut Client,
        lease: Lease<'_>,
        save: &Save,
    ) -> Result<Option<Placed>, CheckpointError> {
        let transaction = self.begin(client).await?;
        let work = self.work(transaction.client());
        work.row(sql::HOLD, params![lease.thread => TEXT]).await?;
        let answer = self.done(work.save(lease, &Columns::of_checkpoint(save)).await)?;
        let answer = work.answer(lease, &answer)?;
        lease.check(answer.epoch)?;
        match save {
            Save::Checkpoint(row) if answer.facts.decide_put(lease, row.into())? == Decision::Known => return Ok(None),
            Save::Checkpoint(_) => {}
            Save::Writes(row) => answer.facts.decide_writes(row.checkpoint)?,
        }
        let unexplained = || CheckpointError::backend("the database saves nothing, and does not say why");
        let placed = answer.placed.ok_or_else(unexplained)?;
        for row in save.pending() {
            work.add_pending(self.codec(lease.thread, lease.namespace), placed.space, row).await?;
        }
        transaction.commit().await?;
        Ok(Some(placed))
    }
}

impl Work<'_> {
    pub(super) async fn add_space(
        &self,
        thread: i64,
        namespace: &str,
        head: CheckpointId,
    ) -> Result<i64, CheckpointError> {
        let params: &[Param<'_>] = params![thread => INT8, namespace => TEXT, bytes(head) => BYTEA];
        self.saver.column(&self.rows(sql::ADD_SPACE, params).await?[0], 0)
    }

    pub(super) async fn add(&self, space: i64, row: &NewRow, depth: i64) -> Result<(), CheckpointError> {
        let [parent, base, root] = [row.parent, row.base, row.root].map(|id| id.map(bytes));
        let params: &[Param<'_>] = params![
            space => INT8, bytes(row.id) => BYTEA, parent => BYTEA, base => BYTEA, root => BYTEA, row.source => INT8,
            row.step => INT8, row.created_at => INT8, row.run.as_deref() => TEXT, depth => INT8,
            &row.shape[..] => BYTEA, row.needs_base => BOOL, row.body => BYTEA,
        ];
        self.run(sql::ADD_CHECKPOINT, params).await.map(drop)
    }

    /// Adds what a task wrote to what is known of it.
    async fn add_pending(&self, codec: RowCodec<'_>, space: i64, new: &PendingRow) -> Result<(), CheckpointError> {
        let (at, of) = (bytes(new.checkpoint), new.task.as_u128().to_be_bytes());
        let params: &[Param<'_>] = params![space => INT8, at => BYTEA, &of[..] => BYTEA];
        let Some(known) = self.row(sql::FIND_PENDING, params).await? else {
            return self.set_pending(space, new).await;
        };
        let known = self.saver.done(pending(&known))?.row(codec)?;
        let mut read_rows = ReadRows::default();
        self.fetch(codec, space, known.consumed.into_iter().chain(new.consumed), &mut read_rows).await?;
        self.set_pending(space, &codec.merged(&known, new, &read_rows)?).await
    }

    pub(super) async fn set_pending(&self, space: i64, row: &PendingRow) -> Result<(), CheckpointError> {
        let (at, of) = (bytes(row.checkpoint), row.task.as_u128().to_be_bytes());
        let consumed = row.consumed.map(bytes);
        let params: &[Param<'_>] =
            params![space => INT8, at => BYTEA, &of[..] => BYTEA, consumed => BYTEA, row.body => BYTEA];
        self.run(sql::SET_PENDING, params).await.map(drop)
    }

    /// Puts more rows into what was read.
    pub(super) async fn fetch(
        &self,
        codec: RowCodec<'_>,
        space: i64,
        ids: impl IntoIterator<Item = CheckpointId>,
        read_rows: &mut ReadRows,
    ) -> Result<(), CheckpointError> {
        let ids: Vec<_> = ids.into_iter().filter(|id| read_rows.lacks(*id)).map(bytes).collect();
        if !ids.is_empty() {
            let params: &[Param<'_>] = params![space => INT8, ids => BYTEA_ARRAY];
            read_rows.add(self.found(codec, sql::ROWS, params).await?.read_rows);
        }
        Ok(())
    }
}
