//! Writing: claims, checkpoints and what tasks wrote.

use std::time::SystemTime;

use rusqlite::{OptionalExtension, params};
use superstep::checkpoint::backend::{Decision, Facts};
use superstep::{CheckpointError, CheckpointId, Epoch, Lease, TaskId};
use superstep_storage::rows::{
    NewOutline, NewRow, PendingRow, RawPending, ReadRows, RowCodec, id_bytes, id_from, inlined, micros,
};

use super::Work;
use crate::sql::checkpoints as sql;

/// What someone who holds a thread finds before a save.
struct Found {
    thread: i64,
    space: Option<i64>,
    facts: Facts,
    /// How far the row that was asked for is from an outline, if it is there.
    depth: Option<i64>,
    /// Whether there are pending writes under that row.
    has_pending: bool,
}

impl Work<'_> {
    /// Claims a thread; what is left of one that had expired belongs to nobody from then on.
    pub(super) fn claim(&self, thread: &str) -> Result<(Epoch, Vec<i64>), CheckpointError> {
        let expired = self.forget_expired(thread)?;
        let epoch = self.next_epoch()?;
        self.done(self.run(sql::CLAIM, params![thread, epoch, micros(SystemTime::now())]))?;
        Ok((Epoch::from_u64(epoch.unsigned_abs()), expired))
    }

    pub(super) fn next_epoch(&self) -> Result<i64, CheckpointError> {
        let next = || self.connection.prepare_cached(sql::NEXT_EPOCH)?.query_row([], |row| row.get(0));
        self.done(next())
    }

    /// Adds a row with what its tasks wrote, and an outline if it is time.
    pub(super) fn put(&self, lease: Lease<'_>, row: &NewRow) -> Result<(), CheckpointError> {
        let found = self.find(lease, row.base)?;
        if found.facts.decide_put(lease, row.into())? == Decision::Known {
            return Ok(());
        }
        let space = self.move_head(&found, lease.namespace, row.id)?;
        if let Some(body) = &row.shape_body {
            self.done(self.run(sql::ADD_SHAPE, params![row.shape, body]))?;
        }
        if let Some(run) = &row.run {
            self.done(self.run(sql::ADD_RUN, params![run, space]))?;
        }
        let (codec, depth) = (self.codec(lease.thread, lease.namespace), 1 + found.depth.unwrap_or_default());
        // The row holds what it brings along, or all that was written under its base is in rows of its own.
        let holds_writes = row.base == row.head && !found.has_pending;
        let (held, alone) = if holds_writes { (&row.pending[..], &[][..]) } else { (&[][..], &row.pending[..]) };
        self.add(space, row, depth, inlined(held).as_deref())?;
        for pending in alone {
            self.add_pending(codec, space, pending)?;
        }
        if depth >= self.interval.every { self.add_outline(codec, space, row.id) } else { Ok(()) }
    }

    /// What there is for whoever has a lease, if it still holds.
    fn find(&self, lease: Lease<'_>, row: Option<CheckpointId>) -> Result<Found, CheckpointError> {
        type Columns = (i64, i64, Option<i64>, Option<Vec<u8>>, Option<i64>, bool);
        let find = || {
            let mut statement = self.connection.prepare_cached(sql::LEASED)?;
            let columns = |row: &rusqlite::Row<'_>| Columns::try_from(row);
            statement.query_row(params![lease.thread, lease.namespace, row.map(id_bytes)], columns).optional()
        };
        let found = self.done(find())?;
        lease.check(found.as_ref().map(|found| Epoch::from_u64(found.1.unsigned_abs())))?;
        let (thread, _, space, head, depth, has_pending) = found.expect("a lease is for a thread that is there");
        let damaged = |why| self.codec(lease.thread, lease.namespace).fail("?", "head", why);
        let head = head.as_deref().map(id_from).transpose().map_err(damaged)?;
        let facts = Facts { head, has_base: depth.is_some() };
        Ok(Found { thread, space, facts, depth, has_pending })
    }

    fn move_head(&self, found: &Found, namespace: &str, head: CheckpointId) -> Result<i64, CheckpointError> {
        let (head, now) = (id_bytes(head), micros(SystemTime::now()));
        match found.space {
            Some(space) => self.done(self.run(sql::MOVE_HEAD, params![space, head, now])).map(|_| space),
            None => self.add_space(found.thread, namespace, head.as_slice(), now),
        }
    }

    pub(super) fn add_space(
        &self,
        thread: i64,
        namespace: &str,
        head: &[u8],
        used_at: i64,
    ) -> Result<i64, CheckpointError> {
        let add = || {
            let mut statement = self.connection.prepare_cached(sql::ADD_SPACE)?;
            statement.query_row(params![thread, namespace, head, used_at], |row| row.get(0))
        };
        self.done(add())
    }

    pub(super) fn add(&self, space: i64, row: &NewRow, depth: i64, held: Option<&[u8]>) -> Result<(), CheckpointError> {
        let (base, root) = (row.base.map(id_bytes), row.root.map(id_bytes));
        // Mostly it is the base, and need not be said again.
        let parent =
            row.parent.map(|parent| if row.parent == row.base { Vec::new() } else { id_bytes(parent).to_vec() });
        let params = params![
            space,
            id_bytes(row.id),
            parent,
            base,
            root,
            row.source,
            row.step,
            row.created_at,
            row.run.as_deref(),
            depth,
            row.shape,
            row.needs_base,
            row.body,
            held
        ];
        self.done(self.run(sql::ADD_CHECKPOINT, params)).map(drop)
    }

    /// Gives a row an outline, so that reading need not go further down.
    fn add_outline(&self, codec: RowCodec<'_>, space: i64, id: CheckpointId) -> Result<(), CheckpointError> {
        let mut read_rows = self.rows_below(codec, space, id, true)?;
        self.fetch(codec, space, codec.to_gather(&read_rows, id, self.interval)?, &mut read_rows)?;
        self.set_outline(space, &codec.new_outline(&read_rows, id, self.interval)?)
    }

    pub(super) fn set_outline(&self, space: i64, outline: &NewOutline) -> Result<(), CheckpointError> {
        let owners = outline.owners.iter().copied().flat_map(id_bytes).collect::<Vec<u8>>();
        self.done(self.run(sql::SET_OUTLINE, params![space, id_bytes(outline.id), owners, outline.sealed])).map(drop)
    }

    /// Puts more rows into what was read.
    pub(super) fn fetch(
        &self,
        codec: RowCodec<'_>,
        space: i64,
        ids: impl IntoIterator<Item = CheckpointId>,
        read_rows: &mut ReadRows,
    ) -> Result<(), CheckpointError> {
        for id in ids {
            if read_rows.lacks(id) {
                read_rows.add(self.rows_below(codec, space, id, false)?);
            }
        }
        Ok(())
    }

    pub(super) fn put_writes(
        &self,
        lease: Lease<'_>,
        row: &PendingRow,
        run: Option<&str>,
    ) -> Result<(), CheckpointError> {
        let found = self.find(lease, Some(row.checkpoint))?;
        found.facts.decide_writes(row.checkpoint)?;
        let space = found.space.expect("a checkpoint is in a namespace");
        self.add_pending(self.codec(lease.thread, lease.namespace), space, row)?;
        if let Some(run) = run {
            self.done(self.run(sql::ADD_WRITER, params![run, space]))?;
        }
        self.done(self.run(sql::TOUCH, params![space, micros(SystemTime::now())])).map(drop)
    }

    /// Adds what a task wrote to what is known of it.
    fn add_pending(&self, codec: RowCodec<'_>, space: i64, new: &PendingRow) -> Result<(), CheckpointError> {
        self.take_out(codec, space, new.checkpoint)?;
        if self.pend(sql::ADD_PENDING, space, new)? > 0 {
            return Ok(());
        }
        let Some(known) = self.find_pending(codec, space, new.checkpoint, new.task)? else { return Ok(()) };
        let mut read_rows = ReadRows::default();
        self.fetch(codec, space, known.consumed.into_iter().chain(new.consumed), &mut read_rows)?;
        self.set_pending(space, &codec.merged(&known, new, &read_rows)?)
    }

    /// Gives the writes under a row that the next row holds rows of their own.
    pub(super) fn take_out(&self, codec: RowCodec<'_>, space: i64, under: CheckpointId) -> Result<(), CheckpointError> {
        let find = || {
            let mut statement = self.connection.prepare_cached(sql::INLINED)?;
            let columns = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Vec<u8>>(1)?));
            statement.query_row(params![space, id_bytes(under)], columns).optional()
        };
        let Some((by, writes)) = self.done(find())? else { return Ok(()) };
        let by = id_from(&by).map_err(|why| codec.fail("?", "row", why))?;
        for row in codec.inlined(by, Some(under), &writes)? {
            self.set_pending(space, &row)?;
        }
        self.done(self.run(sql::FORGET_INLINED, params![space, id_bytes(under)])).map(drop)
    }

    fn find_pending(
        &self,
        codec: RowCodec<'_>,
        space: i64,
        checkpoint: CheckpointId,
        task: TaskId,
    ) -> Result<Option<PendingRow>, CheckpointError> {
        let (at, of) = (id_bytes(checkpoint), task.as_u128().to_be_bytes());
        let find = || {
            let mut statement = self.connection.prepare_cached(sql::FIND_PENDING)?;
            let columns = |row: &rusqlite::Row<'_>| {
                let (checkpoint, task) = (at.to_vec(), of.to_vec());
                Ok(RawPending { checkpoint, task, consumed: row.get(0)?, body: row.get(1)? })
            };
            statement.query_row(params![space, at, of], columns).optional()
        };
        self.done(find())?.map(|found| found.row(codec)).transpose()
    }

    pub(super) fn set_pending(&self, space: i64, row: &PendingRow) -> Result<(), CheckpointError> {
        self.pend(sql::SET_PENDING, space, row).map(drop)
    }

    fn pend(&self, sql: &str, space: i64, row: &PendingRow) -> Result<usize, CheckpointError> {
        let (at, of) = (id_bytes(row.checkpoint), row.task.as_u128().to_be_bytes());
        self.done(self.run(sql, params![space, at, of, row.consumed.map(id_bytes), row.body]))
    }

    pub(super) fn run(&self, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(sql)?.execute(params)
    }
}
