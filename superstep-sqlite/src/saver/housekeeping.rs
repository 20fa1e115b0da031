//! Threads as a whole: forgetting, copying, pruning and sweeping, in batches beside those who write.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use rusqlite::params;
use rusqlite::types::FromSql;
use superstep::{CheckpointError, Deletion, Prune};
use superstep_storage::rows::{
    BATCH, IdBytes, PAGE, PendingRow, Pruning, RawPending, Removing, RowCodec, RowSummary, Space, id_bytes, id_from,
    inlined, micros, moment,
};

use super::Work;
use super::read::stored;
use crate::sql::checkpoints as sql;

/// After so long a claim without checkpoints is forgotten, if threads do not expire.
const IDLE: Duration = Duration::from_hours(24);

impl Work<'_> {
    /// Forgets a thread; what its namespaces hold belongs to nobody from then on.
    pub(super) fn forget(&self, thread: &str) -> Result<Vec<i64>, CheckpointError> {
        self.forget_by(sql::REMOVE_THREAD, [thread])
    }

    /// Forgets a thread if its time has come, whatever it looked like before.
    pub(super) fn forget_expired(&self, thread: &str) -> Result<Vec<i64>, CheckpointError> {
        let Some(cutoff) = self.cutoff else { return Ok(Vec::new()) };
        self.forget_by(sql::REMOVE_EXPIRED, params![thread, cutoff])
    }

    fn forget_by(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<i64>, CheckpointError> {
        match self.column::<i64>(sql, params)?.pop() {
            Some(thread) => self.column(sql::REMOVE_SPACES, [thread]),
            None => Ok(Vec::new()),
        }
    }

    /// Removes some rows of a namespace that nobody has, and says how many.
    pub(super) fn clear_some(&self, space: i64) -> Result<usize, CheckpointError> {
        let runs: Vec<Option<String>> = self.column(sql::SOME_CHECKPOINTS, params![space, BATCH as i64])?;
        let checkpoints = runs.len();
        for run in runs.into_iter().flatten().collect::<HashSet<_>>() {
            self.done(self.run(sql::REMOVE_RUN, params![run, space]))?;
        }
        self.done(self.run(sql::REMOVE_WRITERS, [space]))?;
        let pending = self.done(self.run(sql::SOME_PENDING, params![space, BATCH as i64]))?;
        Ok(checkpoints + pending)
    }

    pub(super) fn spaces(&self, thread: &str) -> Result<Vec<Space>, CheckpointError> {
        let find = || {
            let mut statement = self.connection.prepare_cached(sql::SPACES)?;
            let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            statement.query_map([thread], columns)?.collect::<rusqlite::Result<Vec<(i64, String, Vec<u8>)>>>()
        };
        let opened = |(key, name, head): (i64, String, Vec<u8>)| {
            let head = id_from(&head).map_err(|why| self.codec(thread, &name).fail("?", "head", why))?;
            Ok(Space { key, name, head })
        };
        self.done(find())?.into_iter().map(opened).collect()
    }

    /// Copies a thread; what is left of an expired one of that name belongs to nobody from then on.
    pub(super) fn copy(&self, from: &str, to: &str) -> Result<Vec<i64>, CheckpointError> {
        if !self.is_alive(from)? {
            return Err(CheckpointError::nothing_to_copy(from));
        }
        if self.is_alive(to)? {
            return Err(CheckpointError::name_taken(to));
        }
        let expired = self.forget(to)?;
        let epoch = self.next_epoch()?;
        self.done(self.run(sql::CLAIM, params![to, epoch, micros(SystemTime::now())]))?;
        let thread = self.done(self.connection.query_row(sql::THREAD, [to], |row| row.get(0)))?;
        let mut shapes = HashMap::new();
        for space in &self.spaces(from)? {
            let (head, now) = (id_bytes(space.head), micros(SystemTime::now()));
            let key = self.add_space(thread, &space.name, head.as_slice(), now)?;
            self.done(self.run(sql::COPY_RUNS, [space.key, key]))?;
            self.done(self.run(sql::COPY_WRITERS, [space.key, key]))?;
            self.copy_space(self.codec(from, &space.name), self.codec(to, &space.name), space.key, key, &mut shapes)?;
        }
        Ok(expired)
    }

    fn is_alive(&self, thread: &str) -> Result<bool, CheckpointError> {
        let ask =
            || self.connection.prepare_cached(sql::IS_ALIVE)?.query_row(params![thread, self.cutoff], |row| row.get(0));
        self.done(ask())
    }

    /// Copies row by row: each is sealed for the thread it belongs to.
    fn copy_space(
        &self,
        from: RowCodec<'_>,
        to: RowCodec<'_>,
        space: i64,
        copy: i64,
        shapes: &mut HashMap<Vec<u8>, IdBytes>,
    ) -> Result<(), CheckpointError> {
        let mut after = Vec::new();
        loop {
            let page = || {
                let mut statement = self.connection.prepare_cached(sql::PAGE)?;
                let columns = |row: &rusqlite::Row<'_>| {
                    Ok((stored(row)?, row.get::<_, i64>(13)?, row.get::<_, Option<Vec<u8>>>(14)?))
                };
                statement.query_map(params![space, after, PAGE as i64], columns)?.collect::<rusqlite::Result<Vec<_>>>()
            };
            let rows = self.done(page())?;
            let Some((last, _, _)) = rows.last() else { return self.copy_pending(from, to, space, copy) };
            after.clone_from(&last.id);
            for (stored, depth, writes) in rows {
                let shape = match shapes.get(&stored.shape) {
                    Some(shape) => *shape,
                    None => *shapes.entry(stored.shape.clone()).or_insert(self.copy_shape(from, to, &stored.shape)?),
                };
                let (row, outline) = from.resealed(stored, to, shape)?;
                let writes = writes.map_or(Ok(Vec::new()), |writes| from.inlined(row.id, row.base, &writes))?;
                let writes = writes.iter().map(|row| from.resealed_pending(row, to)).collect::<Result<Vec<_>, _>>()?;
                self.add(copy, &row, depth, inlined(&writes).as_deref())?;
                if let Some(outline) = outline {
                    self.set_outline(copy, &outline)?;
                }
            }
        }
    }

    /// The name of a shape where it is sealed as the saver seals now.
    fn copy_shape(&self, from: RowCodec<'_>, to: RowCodec<'_>, digest: &[u8]) -> Result<IdBytes, CheckpointError> {
        let sealed: Vec<Vec<u8>> = self.column(sql::SHAPE, [digest])?;
        let (digest, sealed) = from.resealed_shape(digest, sealed.first().map(Vec::as_slice), to)?;
        self.done(self.run(sql::ADD_SHAPE, params![digest, sealed])).map(|_| digest)
    }

    fn copy_pending(&self, from: RowCodec<'_>, to: RowCodec<'_>, space: i64, copy: i64) -> Result<(), CheckpointError> {
        let mut after = (Vec::new(), Vec::new());
        loop {
            let rows = self.pending(from, sql::PENDING_PAGE, params![space, after.0, after.1, PAGE as i64])?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = (id_bytes(last.checkpoint).to_vec(), last.task.as_u128().to_be_bytes().to_vec());
            for row in &rows {
                self.set_pending(copy, &from.resealed_pending(row, to)?)?;
            }
        }
    }

    /// Rows of what tasks wrote in a namespace.
    pub(super) fn pending(
        &self,
        codec: RowCodec<'_>,
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
        self.done(find())?.into_iter().map(|found| found.row(codec)).collect()
    }

    /// Forgets at most a batch of what a rule does not keep, and says how many.
    pub(super) fn prune_some(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError> {
        let spaces = self.spaces(thread)?;
        let root = match spaces.iter().find(|space| space.name.is_empty()) {
            Some(root) => self.summaries(self.codec(thread, ""), root.key)?,
            None => Vec::new(),
        };
        let pruning = Pruning::new(prune, &root);
        for space in &spaces {
            let (codec, all) =
                (self.codec(thread, &space.name), self.summaries(self.codec(thread, &space.name), space.key)?);
            let removed = pruning.doomed(space, &all);
            if !removed.is_empty() {
                self.remove(space, &Removing { codec, all: &all, removed: &removed })?;
                return Ok(removed.len());
            }
        }
        Ok(0)
    }

    pub(super) fn summaries(&self, codec: RowCodec<'_>, space: i64) -> Result<Vec<RowSummary>, CheckpointError> {
        type Columns = (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>, [i64; 2]);
        let find = || {
            let mut statement = self.connection.prepare_cached(sql::SUMMARIES)?;
            let columns = |row: &rusqlite::Row<'_>| {
                let numbers = [row.get(3)?, row.get(4)?];
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, numbers))
            };
            statement.query_map([space], columns)?.collect::<rusqlite::Result<Vec<Columns>>>()
        };
        let id = |bytes: &[u8]| id_from(bytes).map_err(|why| codec.fail("?", "row", why));
        let summary = |(own, base, root, [created_at, depth]): Columns| {
            Ok(RowSummary {
                id: id(&own)?,
                base: base.as_deref().map(id).transpose()?,
                root: root.as_deref().map(id).transpose()?,
                created_at: moment(created_at),
                has_outline: depth == 0,
            })
        };
        self.done(find())?.into_iter().map(summary).collect()
    }

    /// The namespaces that hold checkpoints of a run, with their threads.
    pub(super) fn spaces_of_run(&self, run: &str) -> Result<Vec<(String, i64)>, CheckpointError> {
        let find = || {
            let mut statement = self.connection.prepare_cached(sql::SPACES_OF_RUN)?;
            statement.query_map([run], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        self.done(find())
    }

    /// Forgets checkpoints of a namespace, and what a run wrote under others; says how many checkpoints those were.
    pub(super) fn delete(&self, thread: &str, namespace: &str, deletion: &Deletion) -> Result<usize, CheckpointError> {
        let Some(space) = self.spaces(thread)?.into_iter().find(|space| space.name == namespace) else { return Ok(0) };
        let codec = self.codec(thread, namespace);
        let all = self.summaries(codec, space.key)?;
        let removed = all.iter().map(|row| row.id).filter(|id| deletion.takes(*id)).collect::<HashSet<_>>();
        if !removed.is_empty() {
            self.remove(&space, &Removing { codec, all: &all, removed: &removed })?;
        }
        if let Some(run) = deletion.run() {
            self.forget_written_by(codec, space.key, run)?;
        }
        Ok(removed.len())
    }

    /// Forgets at most a batch of a run's checkpoints in a namespace, and says how many.
    pub(super) fn forget_some_of_run(&self, thread: &str, key: i64, run: &str) -> Result<usize, CheckpointError> {
        let Some(space) = self.spaces(thread)?.into_iter().find(|space| space.key == key) else { return Ok(0) };
        let codec = self.codec(thread, &space.name);
        let id = |bytes: &Vec<u8>| id_from(bytes).map_err(|why| codec.fail("?", "row", why));
        let found = self.column(sql::OF_RUN, params![key, run, BATCH as i64])?;
        let removed = found.iter().map(id).collect::<Result<HashSet<_>, _>>()?;
        if !removed.is_empty() {
            let all = self.summaries(codec, key)?;
            self.remove(&space, &Removing { codec, all: &all, removed: &removed })?;
        }
        self.forget_written_by(codec, key, run)?;
        Ok(removed.len())
    }

    pub(super) fn expired(&self) -> Result<Vec<String>, CheckpointError> {
        let Some(cutoff) = self.cutoff else { return Ok(Vec::new()) };
        self.column(sql::EXPIRED, [cutoff])
    }

    /// Forgets some claims of long ago that were never used, and says how many.
    pub(super) fn forget_idle(&self) -> Result<usize, CheckpointError> {
        let before = SystemTime::now().checked_sub(IDLE).unwrap_or(SystemTime::UNIX_EPOCH);
        self.done(self.run(sql::REMOVE_IDLE, params![micros(before), BATCH as i64]))
    }

    /// The namespaces that nobody has, but whose rows are there.
    pub(super) fn lost_spaces(&self) -> Result<Vec<i64>, CheckpointError> {
        self.column(sql::LOST_SPACES, [])
    }

    /// The first column of what a statement gives.
    pub(super) fn column<T: FromSql>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<T>, CheckpointError> {
        let find = || self.connection.prepare_cached(sql)?.query_map(params, |row| row.get(0))?.collect();
        self.done(find())
    }

    /// Removes at most a batch of what belongs to nobody, and says how many rows that were.
    pub(super) fn remove_some(&self, sql: &str) -> Result<usize, CheckpointError> {
        self.done(self.run(sql, [BATCH as i64]))
    }
}
