//! Threads as a whole: forgetting, copying, pruning and sweeping.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension, params};

use super::Work;
use super::read::stored;
use crate::checkpoint::prune::Kept;
use crate::checkpoint::rows::{Desk, Made, PendingRow, RawPending, Removal, id_bytes, id_from, micros, moment};
use crate::checkpoint::{CheckpointError, Prune};
use crate::database::sql::sqlite_checkpoints as sql;
use crate::id::CheckpointId;

/// So many rows are removed in one transaction, so that others who write need not wait long.
const BATCH: i64 = 1000;

/// After so long a claim without checkpoints is forgotten, if threads do not expire.
const IDLE: Duration = Duration::from_hours(24);

/// A namespace of a thread.
pub(super) struct Space {
    pub(super) key: i64,
    pub(super) name: String,
    pub(super) head: CheckpointId,
}

impl Work<'_> {
    /// Forgets a thread; what its namespaces hold belongs to nobody from then on.
    pub(super) fn forget(&self, thread: &str) -> Result<Vec<i64>, CheckpointError> {
        Ok(self.forget_by(sql::REMOVE_THREAD, [thread])?.unwrap_or_default())
    }

    /// Forgets a thread whose time has come, whatever it looked like before; none if it has not.
    pub(super) fn forget_expired(&self, thread: &str) -> Result<Option<Vec<i64>>, CheckpointError> {
        let Some(cutoff) = self.cutoff else { return Ok(None) };
        self.forget_by(sql::REMOVE_EXPIRED, params![thread, cutoff])
    }

    fn forget_by(&self, sql: &str, params: impl rusqlite::Params) -> Result<Option<Vec<i64>>, CheckpointError> {
        let remove = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let Some(key) = statement.query_row(params, |row| row.get::<_, i64>(0)).optional()? else {
                return Ok(None);
            };
            let mut statement = self.connection.prepare_cached(sql::REMOVE_SPACES)?;
            let spaces: rusqlite::Result<Vec<i64>> = statement.query_map([key], |row| row.get(0))?.collect();
            spaces.map(Some)
        };
        self.done(remove())
    }

    /// Removes some rows of a namespace that nobody has; whether there were any.
    pub(super) fn clear_some(&self, space: i64) -> Result<bool, CheckpointError> {
        let checkpoints = self.done(self.run(sql::SOME_CHECKPOINTS, params![space, BATCH]))?;
        let pending = self.done(self.run(sql::SOME_PENDING, params![space, BATCH]))?;
        Ok(checkpoints + pending > 0)
    }

    pub(super) fn spaces(&self, thread: &str) -> Result<Vec<Space>, CheckpointError> {
        let find = || {
            let mut statement = self.connection.prepare_cached(sql::SPACES)?;
            let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            statement.query_map([thread], columns)?.collect::<rusqlite::Result<Vec<(i64, String, Vec<u8>)>>>()
        };
        let opened = |(key, name, head): (i64, String, Vec<u8>)| {
            let head = id_from(&head).map_err(|why| self.desk(thread, &name).fail("?", "head", why))?;
            Ok(Space { key, name, head })
        };
        self.done(find())?.into_iter().map(opened).collect()
    }

    pub(super) fn copy(&self, from: &str, to: &str) -> Result<(), CheckpointError> {
        if !self.is_alive(from)? {
            return Err(CheckpointError::backend(format!("there is no thread `{from}` to copy")));
        }
        if self.is_alive(to)? {
            return Err(CheckpointError::backend(format!("there is a thread `{to}` already; delete it first")));
        }
        for space in self.forget(to)? {
            while self.clear_some(space)? {}
        }
        let epoch = self.next_epoch()?;
        self.done(self.run(sql::CLAIM, params![to, epoch, micros(SystemTime::now())]))?;
        let thread = self.done(self.connection.query_row(sql::LEASED, params![to, ""], |row| row.get(0)))?;
        for space in &self.spaces(from)? {
            let (head, now) = (id_bytes(space.head), micros(SystemTime::now()));
            let key = self.add_space(thread, &space.name, head.as_slice(), now)?;
            self.copy_space(self.desk(from, &space.name), self.desk(to, &space.name), space.key, key)?;
        }
        Ok(())
    }

    fn is_alive(&self, thread: &str) -> Result<bool, CheckpointError> {
        let ask =
            || self.connection.prepare_cached(sql::IS_ALIVE)?.query_row(params![thread, self.cutoff], |row| row.get(0));
        self.done(ask())
    }

    /// Copies row by row: each is sealed for the thread it belongs to.
    fn copy_space(&self, from: Desk<'_>, to: Desk<'_>, space: i64, copy: i64) -> Result<(), CheckpointError> {
        let rows = || {
            let mut statement = self.connection.prepare_cached(sql::ALL_ROWS)?;
            statement.query_map([space], |row| Ok((stored(row)?, row.get::<_, i64>(13)?)))?.collect()
        };
        let rows: Vec<_> = self.done(rows())?;
        for (stored, depth) in rows {
            let (row, outline) = from.resealed(stored, to)?;
            self.add(copy, &row, depth)?;
            if let Some(outline) = outline {
                self.set_outline(to, copy, row.id, &outline)?;
            }
        }
        for row in self.pending(from, sql::ALL_PENDING, [space])? {
            self.set_pending(copy, &from.resealed_pending(&row, to)?)?;
        }
        Ok(())
    }

    /// Rows of what tasks wrote in a namespace.
    pub(super) fn pending(
        &self,
        desk: Desk<'_>,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<PendingRow>, CheckpointError> {
        let find = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let columns = |row: &rusqlite::Row<'_>| {
                let [checkpoint, task] = [row.get(0)?, row.get(1)?];
                Ok(RawPending { checkpoint, task, consumed: row.get(2)?, body: row.get(3)? })
            };
            statement.query_map(params, columns)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        self.done(find())?.into_iter().map(|found| found.row(desk)).collect()
    }

    /// Forgets at most a batch of what a rule does not keep, and says how many.
    pub(super) fn prune_some(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError> {
        let spaces = self.spaces(thread)?;
        let root = match spaces.iter().find(|space| space.name.is_empty()) {
            Some(root) => self.made(self.desk(thread, ""), root.key)?,
            None => Vec::new(),
        };
        let kept_of_root = prune.kept(&root.iter().map(|made| (made.id, made.created_at)).collect::<Vec<_>>());
        let kept = Kept::new(&kept_of_root);
        let mut root = Some(root);
        for space in &spaces {
            let desk = self.desk(thread, &space.name);
            let made = match root.take() {
                Some(root) if space.name.is_empty() => root,
                other => {
                    root = other;
                    self.made(desk, space.key)?
                }
            };
            let stays = |made: &Made| match &*space.name {
                "" => kept_of_root.contains(&made.id),
                inner => kept.keeps(inner, made.id == space.head, made.root),
            };
            let doomed = made.iter().filter(|made| !stays(made)).map(|made| made.id);
            let doomed: HashSet<CheckpointId> = doomed.take(BATCH as usize).collect();
            if !doomed.is_empty() {
                self.remove(desk, space, &made, &doomed, Removal::Prune)?;
                return Ok(doomed.len());
            }
        }
        Ok(0)
    }

    pub(super) fn made(&self, desk: Desk<'_>, space: i64) -> Result<Vec<Made>, CheckpointError> {
        type Columns = (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>, [i64; 4]);
        let find = || {
            let mut statement = self.connection.prepare_cached(sql::MADE)?;
            let columns = |row: &rusqlite::Row<'_>| {
                let numbers = [row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?];
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, numbers))
            };
            statement.query_map([space], columns)?.collect::<rusqlite::Result<Vec<Columns>>>()
        };
        let id = |bytes: &[u8]| id_from(bytes).map_err(|why| desk.fail("?", "row", why));
        let made = |(own, base, root, [created_at, source, step, depth]): Columns| {
            Ok(Made {
                id: id(&own)?,
                base: base.as_deref().map(id).transpose()?,
                root: root.as_deref().map(id).transpose()?,
                created_at: moment(created_at),
                source,
                step,
                has_outline: depth == 0,
            })
        };
        self.done(find())?.into_iter().map(made).collect()
    }

    pub(super) fn delete_run(&self, run: &str) -> Result<usize, CheckpointError> {
        let find = || {
            let mut statement = self.connection.prepare_cached(sql::OF_RUN)?;
            let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            statement.query_map([run], columns)?.collect::<rusqlite::Result<Vec<(String, String, i64, Vec<u8>)>>>()
        };
        let found = self.done(find())?;
        for of_space in found.chunk_by(|a, b| a.2 == b.2) {
            let (thread, namespace, key, _) = &of_space[0];
            let desk = self.desk(thread, namespace);
            let id = |bytes: &[u8]| id_from(bytes).map_err(|why| desk.fail("?", "row", why));
            let doomed = of_space.iter().map(|(_, _, _, bytes)| id(bytes)).collect::<Result<HashSet<_>, _>>()?;
            let made = self.made(desk, *key)?;
            if let Some(space) = self.spaces(thread)?.into_iter().find(|space| space.key == *key) {
                self.remove(desk, &space, &made, &doomed, Removal::Run)?;
            }
        }
        Ok(found.len())
    }

    pub(super) fn expired(&self) -> Result<Vec<String>, CheckpointError> {
        let Some(cutoff) = self.cutoff else { return Ok(Vec::new()) };
        let find = || {
            let mut statement = self.connection.prepare_cached(sql::EXPIRED)?;
            statement.query_map([cutoff], |row| row.get(0))?.collect()
        };
        self.done(find())
    }

    /// Forgets some claims of long ago that came to nothing; whether there may be more.
    pub(super) fn forget_idle(&self) -> Result<bool, CheckpointError> {
        let before = SystemTime::now().checked_sub(IDLE).unwrap_or(SystemTime::UNIX_EPOCH);
        let forgotten = self.done(self.run(sql::REMOVE_IDLE, params![micros(before), BATCH]))?;
        Ok(forgotten == BATCH as usize)
    }

    /// Removes what belongs to no thread, and says how many rows that were.
    pub(super) fn remove_orphans(&self) -> Result<usize, CheckpointError> {
        let all = [sql::ORPHANED_SPACES, sql::ORPHANED_CHECKPOINTS, sql::ORPHANED_PENDING];
        all.into_iter().map(|sql| self.done(self.run(sql, []))).sum()
    }
}
