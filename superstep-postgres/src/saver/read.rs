//! Reading: the rows of a checkpoint come in one statement.

use superstep::{CheckpointError, CheckpointId, ListQuery, SavedCheckpoint};
use superstep_storage::rows::{Found, Listing, Raw, RawPending, RowCodec, StoredRow, source_number};
use tokio_postgres::Row;

use super::work::{Param, Work, bytes, params};
use super::{PostgresSaver, is_kept};
use crate::sql::checkpoints as sql;

impl PostgresSaver {
    pub(super) async fn get_once(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Option<SavedCheckpoint>, CheckpointError> {
        if !is_kept(&[thread, namespace]) {
            return Ok(None);
        }
        let (client, id) = (self.client().await?, checkpoint.map(bytes));
        let params: &[Param<'_>] = params![thread => TEXT, namespace => TEXT, self.ttl => INT8, id => BYTEA];
        let codec = self.codec(thread, namespace);
        let found = self.work(&client).found(codec, sql::GET, params).await?;
        Ok(found.checkpoint(codec, checkpoint)?.1)
    }

    pub(super) async fn list_once(
        &self,
        thread: &str,
        namespace: &str,
        query: &ListQuery,
    ) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        if !is_kept(&[thread, namespace]) {
            return Ok(Vec::new());
        }
        if query.run.as_deref().is_some_and(|run| !is_kept(&[run])) {
            return Ok(Vec::new());
        }
        let (client, codec) = (self.client().await?, self.codec(thread, namespace));
        let mut listing = Listing::new(query);
        loop {
            let found = self.work(&client).page(codec, &listing).await?;
            if let Some(all) = listing.take(codec, &found)? {
                return Ok(all);
            }
        }
    }

    pub(super) async fn namespaces_once(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        if !is_kept(&[thread]) {
            return Ok(Vec::new());
        }
        let client = self.client().await?;
        let rows = self.work(&client).rows(sql::NAMESPACES, params![thread => TEXT, self.ttl => INT8]).await?;
        self.columns(&rows, 0)
    }

    pub(super) async fn threads_once(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, CheckpointError> {
        // Whatever comes after a name with a NUL also comes after what is before the NUL, and is not that.
        let after = after.map(|after| after.split('\0').next().unwrap_or_default());
        let (client, limit) = (self.client().await?, i64::try_from(limit).unwrap_or(i64::MAX));
        let params: &[Param<'_>] = params![after => TEXT, self.ttl => INT8, limit => INT8];
        self.columns(&self.work(&client).rows(sql::THREADS, params).await?, 0)
    }
}

impl Work<'_> {
    /// Runs a statement that gives rows of all kinds.
    pub(super) async fn found(
        &self,
        codec: RowCodec<'_>,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Found, CheckpointError> {
        self.opened(codec, &self.rows(sql, params).await?)
    }

    /// Opens rows of all kinds.
    pub(super) fn opened(&self, codec: RowCodec<'_>, rows: &[Row]) -> Result<Found, CheckpointError> {
        let mut raw = Raw::default();
        let taken = rows.iter().try_for_each(|row| take(&mut raw, row));
        self.saver.done(taken)?;
        raw.open(codec)
    }

    async fn page(&self, codec: RowCodec<'_>, listing: &Listing) -> Result<Found, CheckpointError> {
        let ListQuery { before, only, source, step, ref run, .. } = listing.query;
        let (before, only, source) = (before.map(bytes), only.map(bytes), source.map(source_number));
        let limit = listing.limit();
        let params: &[Param<'_>] = params![
            codec.thread => TEXT, codec.namespace => TEXT, self.saver.ttl => INT8, before => BYTEA, only => BYTEA,
            source => INT8, step => INT8, limit => INT8, run => TEXT,
        ];
        self.found(codec, sql::LIST, params).await
    }
}

fn take(raw: &mut Raw, row: &Row) -> Result<(), tokio_postgres::Error> {
    match row.try_get::<_, i64>(0)? {
        0 => raw.checkpoints.push(stored(row)?),
        1 => raw.pending.push(RawPending {
            checkpoint: row.try_get(1)?,
            task: row.try_get(2)?,
            consumed: row.try_get(3)?,
            body: row.try_get(10)?,
        }),
        2 => raw.shapes.push((row.try_get(1)?, row.try_get(10)?)),
        3 => (raw.head, raw.newest) = (row.try_get(1)?, row.try_get(2)?),
        _ => raw.listed.extend(row.try_get::<_, Option<Vec<u8>>>(1)?),
    }
    Ok(())
}

pub(super) fn stored(row: &Row) -> Result<StoredRow, tokio_postgres::Error> {
    Ok(StoredRow {
        id: row.try_get(1)?,
        parent: row.try_get(2)?,
        base: row.try_get(3)?,
        root: row.try_get(4)?,
        source: row.try_get(5)?,
        step: row.try_get(6)?,
        created_at: row.try_get(7)?,
        run: row.try_get(8)?,
        shape: row.try_get(9)?,
        body: row.try_get(10)?,
        outline: row.try_get(11)?,
        needs_base: row.try_get(12)?,
    })
}

/// What a task wrote, from a row of a statement that gives nothing else.
pub(super) fn pending(row: &Row) -> Result<RawPending, tokio_postgres::Error> {
    let [checkpoint, task] = [row.try_get(0)?, row.try_get(1)?];
    Ok(RawPending { checkpoint, task, consumed: row.try_get(2)?, body: row.try_get(3)? })
}
