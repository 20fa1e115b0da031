//! Reading: the rows of a checkpoint come in one statement.

use std::collections::HashMap;

use rusqlite::{Params, Row, params};

use super::Reading;
use crate::checkpoint::rows::{Desk, IdBytes, PendingRow, Shelf, StoredRow, id_bytes, id_from, source_number};
use crate::checkpoint::{CheckpointError, ListQuery, SavedCheckpoint, Shape};
use crate::database::sql::checkpoints_sqlite as sql;
use crate::id::{CheckpointId, TaskId};

/// What a statement gave: rows, and what was asked for.
#[derive(Default)]
pub(super) struct Found {
    pub(super) shelf: Shelf,
    pub(super) head: Option<CheckpointId>,
    /// The checkpoints that were asked for, newest first.
    pub(super) listed: Vec<CheckpointId>,
}

impl Reading<'_> {
    /// The head of a namespace, and a checkpoint: this one, or the head.
    pub(super) fn get(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<(Option<CheckpointId>, Option<SavedCheckpoint>), CheckpointError> {
        let desk = self.desk(thread, namespace);
        let id = checkpoint.map(id_bytes);
        let found = self.found(desk, sql::GET, params![thread, namespace, self.cutoff, id])?;
        let wanted = checkpoint.or(found.head);
        let is_there = wanted.is_some_and(|wanted| found.shelf.rows.contains_key(&wanted));
        match wanted {
            // A head that is not there is damage, an id that is not there is none.
            Some(id) if is_there || found.head == Some(id) => Ok((found.head, Some(saved(desk, &found.shelf, id)?))),
            _ => Ok((found.head, None)),
        }
    }

    pub(super) fn list(
        &self,
        thread: &str,
        namespace: &str,
        mut query: ListQuery,
    ) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        /// So many are read at once when only some of them are wanted.
        const PAGE: usize = 256;
        let desk = self.desk(thread, namespace);
        let wanted = query.limit.unwrap_or(usize::MAX);
        let page = if query.metadata.is_empty() { wanted } else { PAGE };
        let mut all = Vec::new();
        loop {
            let limit = i64::try_from(page).unwrap_or(i64::MAX);
            let (before, only) = (query.before.map(id_bytes), query.only.map(id_bytes));
            let (source, step) = (query.source.map(source_number), query.step);
            let params = params![thread, namespace, self.cutoff, before, only, source, step, limit];
            let found = self.found(desk, sql::LIST, params)?;
            for id in &found.listed {
                if query.matches(&found.shelf.row(*id).map_err(|m| damaged(desk, *id, m))?.record) && all.len() < wanted
                {
                    all.push(saved(desk, &found.shelf, *id)?);
                }
            }
            query.before = found.listed.last().copied();
            if found.listed.len() < page || all.len() >= wanted {
                return Ok(all);
            }
        }
    }

    pub(super) fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        let rows = || {
            let mut statement = self.connection.prepare_cached(sql::NAMESPACES)?;
            statement.query_map(params![thread, self.cutoff], |row| row.get(0))?.collect()
        };
        self.done(rows())
    }

    pub(super) fn threads(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, CheckpointError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = || {
            let mut statement = self.connection.prepare_cached(sql::THREADS)?;
            statement.query_map(params![after, self.cutoff, limit], |row| row.get(0))?.collect()
        };
        self.done(rows())
    }

    /// Runs a statement that gives rows of all kinds.
    pub(super) fn found(&self, desk: Desk<'_>, sql: &str, params: impl Params) -> Result<Found, CheckpointError> {
        let mut raw = Raw::default();
        let run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params)?;
            while let Some(row) = rows.next()? {
                raw.take(row)?;
            }
            Ok(())
        };
        self.done(run())?;
        raw.open(desk)
    }
}

/// A checkpoint that is put together from rows.
pub(super) fn saved(desk: Desk<'_>, shelf: &Shelf, id: CheckpointId) -> Result<SavedCheckpoint, CheckpointError> {
    shelf.saved(id).map_err(|missing| damaged(desk, id, missing))
}

pub(super) fn damaged(desk: Desk<'_>, id: CheckpointId, missing: crate::checkpoint::rows::Missing) -> CheckpointError {
    desk.fail(id, missing.0, "it is not in the database; the database is damaged")
}

/// Rows as they came.
#[derive(Default)]
struct Raw {
    checkpoints: Vec<StoredRow>,
    pending: Vec<(Vec<u8>, Vec<u8>, Option<Vec<u8>>, Vec<u8>)>,
    shapes: Vec<(Vec<u8>, Vec<u8>)>,
    head: Option<Vec<u8>>,
    listed: Vec<Vec<u8>>,
}

impl Raw {
    fn take(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        match row.get(0)? {
            0 => self.checkpoints.push(stored(row)?),
            1 => self.pending.push((row.get(1)?, row.get(2)?, row.get(3)?, row.get(10)?)),
            2 => self.shapes.push((row.get(1)?, row.get(10)?)),
            3 => self.head = row.get(1)?,
            _ => self.listed.extend(row.get::<_, Option<Vec<u8>>>(1)?),
        }
        Ok(())
    }

    fn open(self, desk: Desk<'_>) -> Result<Found, CheckpointError> {
        let id = |bytes: &[u8]| id_from(bytes).map_err(|why| desk.fail("?", "row", why));
        let shapes = self.shapes.iter().map(|(digest, body)| desk.open_shape(digest, body));
        let shapes: HashMap<IdBytes, Shape> = shapes.collect::<Result<_, _>>()?;
        let mut found = Found { head: self.head.as_deref().map(id).transpose()?, ..Found::default() };
        for stored in self.checkpoints {
            let (id, row) = desk.open(stored, &shapes)?;
            found.shelf.rows.insert(id, row);
        }
        found.shelf.settle();
        for (checkpoint, task, consumed, body) in self.pending {
            let row = pending_row(desk, &checkpoint, &task, consumed.as_deref(), body)?;
            found.shelf.pending.push(desk.open_pending(&row)?);
        }
        found.listed = self.listed.iter().map(|listed| id(listed)).collect::<Result<_, _>>()?;
        found.listed.sort_unstable_by(|a, b| b.cmp(a));
        Ok(found)
    }
}

pub(super) fn pending_row(
    desk: Desk<'_>,
    checkpoint: &[u8],
    task: &[u8],
    consumed: Option<&[u8]>,
    body: Vec<u8>,
) -> Result<PendingRow, CheckpointError> {
    let id = |bytes: &[u8]| id_from(bytes).map_err(|why| desk.fail("?", "pending writes", why));
    let task = TaskId::from_u128(id(task)?.as_u128());
    Ok(PendingRow { checkpoint: id(checkpoint)?, task, consumed: consumed.map(id).transpose()?, body })
}

pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<StoredRow> {
    Ok(StoredRow {
        id: row.get(1)?,
        parent: row.get(2)?,
        base: row.get(3)?,
        root: row.get(4)?,
        source: row.get(5)?,
        step: row.get(6)?,
        created_at: row.get(7)?,
        run: row.get(8)?,
        shape: row.get(9)?,
        body: row.get(10)?,
        outline: row.get(11)?,
        needs_base: row.get(12)?,
    })
}
