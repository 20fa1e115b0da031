//! Reading: the rows of a checkpoint come in one statement.

use std::sync::atomic::Ordering;

use rusqlite::{Params, Row, params};
use superstep::{CheckpointError, CheckpointId, ListQuery, SavedCheckpoint};
use superstep_storage::rows::{
    Found, Listing, Raw, RawPending, ReadRows, RowCodec, StoredRow, id_bytes, source_number,
};

use super::Work;
use crate::sql::checkpoints as sql;

impl Work<'_> {
    /// The head of a namespace, and a checkpoint: this one, or the head.
    pub(super) fn get(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<(Option<CheckpointId>, Option<SavedCheckpoint>), CheckpointError> {
        let codec = self.codec(thread, namespace);
        let id = checkpoint.map(id_bytes);
        let found = self.found(codec, sql::GET, params![thread, namespace, self.cutoff, id])?;
        found.checkpoint(codec, checkpoint)
    }

    pub(super) fn list(
        &self,
        thread: &str,
        namespace: &str,
        query: &ListQuery,
    ) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        let codec = self.codec(thread, namespace);
        let mut listing = Listing::new(query);
        loop {
            let ListQuery { before, only, source, step, ref run, .. } = listing.query;
            let (before, only, source) = (before.map(id_bytes), only.map(id_bytes), source.map(source_number));
            let params = params![thread, namespace, self.cutoff, before, only, source, step, listing.limit(), run];
            let found = self.found(codec, sql::LIST, params)?;
            if let Some(all) = listing.take(codec, &found)? {
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
    pub(super) fn found(&self, codec: RowCodec<'_>, sql: &str, params: impl Params) -> Result<Found, CheckpointError> {
        let mut raw = Raw::default();
        let run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params)?;
            while let Some(row) = rows.next()? {
                take(&mut raw, row)?;
            }
            Ok(())
        };
        self.done(run())?;
        self.open(codec, raw)
    }

    /// A row, the one that it cuts values from, and all down to the next outline if wanted.
    pub(super) fn rows_below(
        &self,
        codec: RowCodec<'_>,
        space: i64,
        id: CheckpointId,
        to_outline: bool,
    ) -> Result<ReadRows, CheckpointError> {
        let mut raw = Raw::default();
        let mut read_all = || {
            let mut statement = self.connection.prepare_cached(sql::ROWS_DOWN)?;
            let (mut wanted, mut above) = (Some(id_bytes(id).to_vec()), i64::MAX);
            while let Some(from) = wanted.clone() {
                // Rows mostly stand on the next older one. Where one does not, because there are forks, the search
                // starts anew at its base, and the row in between was read for nothing.
                let mut rows = statement.query(params![space, from])?;
                while let Some(wanted_id) = &wanted
                    && let Some(row) = rows.next()?
                    && row.get_ref(1)?.as_blob().is_ok_and(|id| id == wanted_id)
                {
                    let (row, depth) = (stored(row)?, row.get::<_, i64>(13)?);
                    // Damaged rows may lead in a circle.
                    let goes_on = to_outline && (1..above).contains(&depth);
                    wanted = if goes_on || (row.needs_base && above > 0) { row.base.clone() } else { None };
                    above = if goes_on { depth } else { 0 };
                    raw.checkpoints.push(row);
                }
                if wanted.as_ref() == Some(&from) {
                    break;
                }
            }
            Ok(())
        };
        self.done(read_all())?;
        Ok(self.open(codec, raw)?.read_rows)
    }

    fn open(&self, codec: RowCodec<'_>, raw: Raw) -> Result<Found, CheckpointError> {
        // Writes in the rows of checkpoints are counted with these.
        let rows = raw.checkpoints.len() + raw.pending.len();
        self.rows_read.fetch_add(rows as u64, Ordering::Relaxed);
        raw.open(codec)
    }
}

fn take(raw: &mut Raw, row: &Row<'_>) -> rusqlite::Result<()> {
    match row.get(0)? {
        0 => raw.checkpoints.push(stored(row)?),
        1 => raw.pending.push(RawPending {
            checkpoint: row.get(1)?,
            task: row.get(2)?,
            consumed: row.get(3)?,
            body: row.get(10)?,
        }),
        2 => raw.shapes.push((row.get(1)?, row.get(10)?)),
        3 => (raw.head, raw.newest) = (row.get(1)?, row.get(2)?),
        5 => raw.inlined.push((row.get(1)?, row.get(10)?)),
        _ => raw.listed.extend(row.get::<_, Option<Vec<u8>>>(1)?),
    }
    Ok(())
}

pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<StoredRow> {
    let base: Option<Vec<u8>> = row.get(3)?;
    let parent = row.get::<_, Option<Vec<u8>>>(2)?;
    Ok(StoredRow {
        id: row.get(1)?,
        parent: if parent.as_ref().is_some_and(Vec::is_empty) { base.clone() } else { parent },
        base,
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
