//! Saves that cannot be done by one statement: they merge, or say why they are refused.
//!
//! Everything is asked again while nobody else can change the thread.

use super::PostgresSaver;
use super::read::pending;
use super::work::{Param, Work, bytes, params};
use super::write::Placed;
use crate::checkpoint::rows::{Desk, NewRow, PendingRow, Shelf, id_from};
use crate::checkpoint::{CheckpointError, Epoch, Lease, TaskRecord};
use crate::database::PostgresClient;
use crate::database::sql::postgres_checkpoints as sql;
use crate::id::CheckpointId;

/// A thread's namespace that someone may write to.
struct Leased {
    thread: i64,
    space: Option<i64>,
    head: Option<CheckpointId>,
}

impl PostgresSaver {
    /// Saves a checkpoint, or says why not. One that is saved already is not saved again.
    pub(super) async fn put_carefully(
        &self,
        client: &mut PostgresClient,
        lease: Lease<'_>,
        row: &NewRow,
    ) -> Result<Option<Placed>, CheckpointError> {
        let transaction = self.begin(client).await?;
        let work = self.work(transaction.client());
        let leased = work.leased(lease).await?;
        if leased.head == Some(row.id) {
            return Ok(None);
        }
        if leased.head != row.head || leased.head > Some(row.id) {
            return Err(CheckpointError::overtaken(lease.thread, lease.namespace, row.head, leased.head));
        }
        let placed = work.place(lease, &leased, row).await?;
        transaction.commit().await?;
        Ok(Some(placed))
    }

    /// Adds what a task wrote to what is known of it, or says why not.
    pub(super) async fn put_writes_carefully(
        &self,
        client: &mut PostgresClient,
        lease: Lease<'_>,
        row: &PendingRow,
        task: &TaskRecord,
    ) -> Result<(), CheckpointError> {
        let transaction = self.begin(client).await?;
        let work = self.work(transaction.client());
        let leased = work.leased(lease).await?;
        let missing = || CheckpointError::refused(format!("there is no checkpoint {} to write to", row.checkpoint));
        let space = leased.space.ok_or_else(missing)?;
        work.depth(space, row.checkpoint).await?.ok_or_else(missing)?;
        work.add_pending(self.desk(lease.thread, lease.namespace), space, row, Some(task)).await?;
        work.run(sql::TOUCH, params![space => INT8]).await?;
        Ok(transaction.commit().await?)
    }
}

impl Work<'_> {
    /// Whether a checkpoint is the head of its namespace.
    pub(super) async fn is_head(&self, lease: Lease<'_>, id: Option<CheckpointId>) -> Result<bool, CheckpointError> {
        match self.leased(lease).await {
            Err(CheckpointError::Fenced { .. }) => Ok(false),
            leased => Ok(id.is_some() && leased?.head == id),
        }
    }

    /// The namespace that a lease gives, if it is still the latest.
    async fn leased(&self, lease: Lease<'_>) -> Result<Leased, CheckpointError> {
        let held = self.row(sql::HOLD, params![lease.thread => TEXT]).await?;
        let (thread, current) = match &held {
            Some(row) => (Some(self.saver.column::<i64>(row, 0)?), Some(self.saver.column::<i64>(row, 1)?)),
            None => (None, None),
        };
        let current = current.map(|epoch| Epoch::from_u64(epoch.cast_unsigned()));
        let Some(thread) = thread.filter(|_| current == Some(lease.epoch)) else {
            return Err(CheckpointError::fenced(lease.thread, lease.epoch, current));
        };
        let Some(space) = self.row(sql::SPACE, params![thread => INT8, lease.namespace => TEXT]).await? else {
            return Ok(Leased { thread, space: None, head: None });
        };
        let damaged = |why| self.desk(lease.thread, lease.namespace).fail("?", "head", why);
        let head = id_from(self.saver.column(&space, 1)?).map_err(damaged)?;
        Ok(Leased { thread, space: Some(self.saver.column(&space, 0)?), head: Some(head) })
    }

    /// Saves a checkpoint behind the head of its namespace.
    async fn place(&self, lease: Lease<'_>, leased: &Leased, row: &NewRow) -> Result<Placed, CheckpointError> {
        let depth = self.depth_on(leased.space, row).await?;
        let head = bytes(row.id);
        let space = match leased.space {
            Some(space) => self.run(sql::MOVE_HEAD, params![space => INT8, head => BYTEA]).await.map(|_| space)?,
            None => self.add_space(leased.thread, lease.namespace, row.id).await?,
        };
        if let Some(body) = &row.shape_body {
            self.run(sql::ADD_SHAPE, params![&row.shape[..] => BYTEA, body => BYTEA]).await?;
        }
        self.add(space, row, depth).await?;
        let desk = self.desk(lease.thread, lease.namespace);
        for pending in &row.pending {
            self.add_pending(desk, space, pending, None).await?;
        }
        Ok(Placed { space, depth })
    }

    async fn depth_on(&self, space: Option<i64>, row: &NewRow) -> Result<i64, CheckpointError> {
        let Some(base) = row.base else { return Ok(1) };
        let missing = || CheckpointError::refused(format!("checkpoint {} builds on one that is not there", row.id));
        let depth = self.depth(space.ok_or_else(missing)?, base).await?;
        depth.map(|depth| depth + 1).ok_or_else(missing)
    }

    async fn depth(&self, space: i64, id: CheckpointId) -> Result<Option<i64>, CheckpointError> {
        let found = self.row(sql::DEPTH, params![space => INT8, bytes(id) => BYTEA]).await?;
        found.map(|row| self.saver.column(&row, 0)).transpose()
    }

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
    async fn add_pending(
        &self,
        desk: Desk<'_>,
        space: i64,
        new: &PendingRow,
        task: Option<&TaskRecord>,
    ) -> Result<(), CheckpointError> {
        let (at, of) = (bytes(new.checkpoint), new.task.as_u128().to_be_bytes());
        let params: &[Param<'_>] = params![space => INT8, at => BYTEA, &of[..] => BYTEA];
        let Some(known) = self.row(sql::FIND_PENDING, params).await? else {
            return self.set_pending(space, new).await;
        };
        let known = self.saver.done(pending(&known))?.row(desk)?;
        let record = match task {
            Some(task) => task.clone(),
            None => self.task(desk, space, new).await?,
        };
        let mut all = self.task(desk, space, &known).await?;
        all.absorb(record);
        self.set_pending(space, &desk.pending_row(new.checkpoint, &all)?).await
    }

    /// What a row says that a task wrote, with the values that lie in the checkpoint that consumed them.
    async fn task(&self, desk: Desk<'_>, space: i64, row: &PendingRow) -> Result<TaskRecord, CheckpointError> {
        let pending = desk.open_pending(row)?;
        let mut shelf = Shelf::default();
        self.fetch(desk, space, row.consumed, &mut shelf).await?;
        shelf.task(&pending).map_err(|missing| desk.damaged(row.checkpoint, missing))
    }

    pub(super) async fn set_pending(&self, space: i64, row: &PendingRow) -> Result<(), CheckpointError> {
        let (at, of) = (bytes(row.checkpoint), row.task.as_u128().to_be_bytes());
        let consumed = row.consumed.map(bytes);
        let params: &[Param<'_>] =
            params![space => INT8, at => BYTEA, &of[..] => BYTEA, consumed => BYTEA, row.body => BYTEA];
        self.run(sql::SET_PENDING, params).await.map(drop)
    }

    /// Puts more rows on a shelf.
    pub(super) async fn fetch(
        &self,
        desk: Desk<'_>,
        space: i64,
        ids: impl IntoIterator<Item = CheckpointId>,
        shelf: &mut Shelf,
    ) -> Result<(), CheckpointError> {
        let ids: Vec<_> = ids.into_iter().filter(|id| shelf.lacks(*id)).map(bytes).collect();
        if !ids.is_empty() {
            let params: &[Param<'_>] = params![space => INT8, ids => BYTEA_ARRAY];
            shelf.add(self.found(desk, sql::ROWS, params).await?.shelf.rows);
        }
        Ok(())
    }
}
