//! Writing: claims, checkpoints and what tasks wrote, in one round trip each.

use tokio_postgres::{Error, Row};

use super::PostgresSaver;
use super::work::{Param, Work, bytes, params};
use crate::checkpoint::rows::{NewRow, PendingRow};
use crate::checkpoint::{CheckpointError, Claim, Epoch, Lease, TaskRecord};
use crate::database::sql::{postgres_checkpoints as sql, postgres_steps as steps};
use crate::id::CheckpointId;

/// Where a checkpoint was saved.
pub(super) struct Placed {
    pub(super) space: i64,
    pub(super) depth: i64,
}

impl PostgresSaver {
    pub(super) async fn claim_once(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Claim, CheckpointError> {
        let (client, id) = (self.client().await?, checkpoint.map(bytes));
        let by_name: &[Param<'_>] = params![thread => TEXT];
        let expired: &[Param<'_>] = params![thread => TEXT, self.ttl => INT8];
        let at: &[Param<'_>] = params![thread => TEXT, namespace => TEXT, None::<i64> => INT8, id => BYTEA];
        // The checkpoint is read by a statement of its own: a claim that had to wait does not see what it waited for.
        let all: [(&str, &[Param<'_>]); 4] =
            [(sql::SHUT, by_name), (sql::FORGET_EXPIRED, expired), (sql::CLAIM, by_name), (sql::GET, at)];
        let work = self.work(&client);
        let mut rows = work.transact(if self.ttl.is_some() { &all } else { &all[2..] }).await?;
        let [.., claimed, found] = &rows[..] else { unreachable!("each statement has its rows") };
        let epoch: i64 = self.column(&claimed[0], 1)?;
        let desk = self.desk(thread, namespace);
        let (head, found) = work.opened(desk, found)?.checkpoint(desk, checkpoint)?;
        if self.ttl.is_some() {
            let forgotten: Vec<Option<i64>> = self.columns(&rows.remove(1), 0)?;
            work.clear_all(&forgotten.into_iter().flatten().collect::<Vec<_>>()).await?;
        }
        Ok(Claim::new(Epoch::from_u64(epoch.cast_unsigned()), head, found))
    }

    pub(super) async fn put_once(&self, lease: Lease<'_>, row: &NewRow) -> Result<(), CheckpointError> {
        let mut client = self.client().await?;
        let placed = match self.work(&client).put(lease, row).await? {
            Some(placed) => Some(placed),
            None => self.put_carefully(&mut client, lease, row).await?,
        };
        match placed {
            Some(Placed { space, depth }) if depth >= self.pitch.every => {
                self.outline(&mut client, lease, space, row.id).await
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn put_writes_once(
        &self,
        lease: Lease<'_>,
        checkpoint: CheckpointId,
        task: &TaskRecord,
    ) -> Result<(), CheckpointError> {
        let row = self.desk(lease.thread, lease.namespace).pending_row(checkpoint, task)?;
        let mut client = self.client().await?;
        if self.work(&client).put_writes(lease, &row).await? {
            return Ok(());
        }
        self.put_writes_carefully(&mut client, lease, &row, task).await
    }
}

impl Work<'_> {
    /// Saves a checkpoint, if all is as it should be; nothing is written otherwise.
    async fn put(&self, lease: Lease<'_>, row: &NewRow) -> Result<Option<Placed>, CheckpointError> {
        let (epoch, id) = (lease.epoch.as_u64().cast_signed(), bytes(row.id));
        let [head, parent, base, root] = [row.head, row.parent, row.base, row.root].map(|id| id.map(bytes));
        let tasks: Vec<_> = row.pending.iter().map(|pending| pending.task.as_u128().to_be_bytes().to_vec()).collect();
        let consumed: Vec<_> = row.pending.iter().map(|pending| pending.consumed.map(bytes)).collect();
        let bodies: Vec<_> = row.pending.iter().map(|pending| &pending.body[..]).collect();
        let params: &[Param<'_>] = params![
            lease.thread => TEXT, epoch => INT8, lease.namespace => TEXT, head => BYTEA, id => BYTEA,
            parent => BYTEA, base => BYTEA, root => BYTEA, row.source => INT8, row.step => INT8,
            row.created_at => INT8, row.run.as_deref() => TEXT, &row.shape[..] => BYTEA, row.needs_base => BOOL,
            row.body => BYTEA, row.shape_body => BYTEA, tasks => BYTEA_ARRAY, consumed => BYTEA_ARRAY,
            bodies => BYTEA_ARRAY,
        ];
        let Some(saved) = self.unless_contended(steps::PUT, params).await? else { return Ok(None) };
        Ok(Some(Placed { space: self.saver.column(&saved, 0)?, depth: self.saver.column(&saved, 1)? }))
    }

    /// Saves what a task wrote, if all is as it should be and nothing is known of the task yet.
    async fn put_writes(&self, lease: Lease<'_>, row: &PendingRow) -> Result<bool, CheckpointError> {
        let (epoch, checkpoint) = (lease.epoch.as_u64().cast_signed(), bytes(row.checkpoint));
        let (task, consumed) = (row.task.as_u128().to_be_bytes(), row.consumed.map(bytes));
        let params: &[Param<'_>] = params![
            lease.thread => TEXT, epoch => INT8, lease.namespace => TEXT, checkpoint => BYTEA, &task[..] => BYTEA,
            consumed => BYTEA, row.body => BYTEA,
        ];
        Ok(self.unless_contended(steps::PUT_WRITES, params).await?.is_some())
    }

    /// The row that a statement gives; none if others did the same at the same time, too.
    async fn unless_contended(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, CheckpointError> {
        match self.client.query_typed_opt(&self.saver.text(sql), params).await {
            Err(error) if is_contention(&error) => Ok(None),
            done => self.saver.done(done),
        }
    }
}

/// Whether a statement came to grief with another one: unique violation, serialization failure, deadlock.
fn is_contention(error: &Error) -> bool {
    error.code().is_some_and(|code| matches!(code.code(), "23505" | "40001" | "40P01"))
}
