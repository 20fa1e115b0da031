//! Writing: claims, checkpoints and what tasks wrote, in one round trip each.

use superstep::checkpoint::backend::Facts;
use superstep::{CheckpointError, CheckpointId, Claim, Epoch, Lease};
use superstep_storage::rows::{NewRow, PendingRow, id_from};
use tokio_postgres::Row;

use super::known_runs::Noted;
use super::work::{Param, Work, bytes, params};
use super::write_queue::Save;
use super::{PostgresSaver, again_if_lost, is_lost};
use crate::database::{Client, Fault};
use crate::sql::{checkpoints as sql, steps};

/// Where the last checkpoint was saved.
pub(super) struct Placed {
    pub(super) space: i64,
    pub(super) depth: i64,
}

/// What a statement that saves has done, and what it found before.
pub(super) struct Answer {
    /// None if it has written nothing.
    pub(super) placed: Option<Placed>,
    pub(super) epoch: Option<Epoch>,
    pub(super) facts: Facts,
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
        let codec = self.codec(thread, namespace);
        let (head, found) = work.opened(codec, found)?.checkpoint(codec, checkpoint)?;
        if self.ttl.is_some() {
            work.clear_all(&self.columns(&rows.remove(1), 0)?).await?;
        }
        Ok(Claim::new(Epoch::from_u64(epoch.cast_unsigned()), head, found))
    }

    /// Notes that a run has written under a checkpoint, which may be another's: so the run is found when it is deleted.
    pub(super) async fn note_run(
        &self,
        lease: Lease<'_>,
        under: CheckpointId,
        run: Option<&str>,
    ) -> Result<(), CheckpointError> {
        let Some(noted) = run.map(|run| Noted::new(lease, under, run)).filter(|noted| !self.runs.contains(noted))
        else {
            return Ok(());
        };
        let client = self.client().await?;
        let params: &[Param<'_>] = params![lease.thread => TEXT, lease.namespace => TEXT, run => TEXT];
        self.work(&client).run(sql::ADD_RUN, params).await?;
        self.runs.add(noted);
        Ok(())
    }

    /// Saves one after another: all in one statement, if nothing stands against it.
    pub(super) async fn save_all(&self, lease: Lease<'_>, saves: &[Save]) -> Vec<Result<(), CheckpointError>> {
        match again_if_lost!(self.save_all_once(lease, saves)) {
            Ok(true) => saves.iter().map(|_| Ok(())).collect(),
            Ok(false) => self.save_each(lease, saves).await,
            Err(error) => saves.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// Whether all is saved. Nothing is, otherwise, or if others do the same at the same time.
    async fn save_all_once(&self, lease: Lease<'_>, saves: &[Save]) -> Result<bool, CheckpointError> {
        let mut client = self.client().await?;
        let (columns, work) = (Columns::of(saves), self.work(&client));
        let answer = match work.save(lease, &columns).await {
            Err(error) if is_contention(&error) => return Ok(false),
            answer => work.answer(lease, &self.done(answer)?)?,
        };
        match answer.placed {
            Some(placed) => self.outline_if_deep(&mut client, lease, placed, columns.new_head).await.map(|()| true),
            // The connection may have been lost after all was saved.
            None => Ok(columns.new_head.is_some() && answer.facts.head == columns.new_head),
        }
    }

    async fn save_each(&self, lease: Lease<'_>, saves: &[Save]) -> Vec<Result<(), CheckpointError>> {
        let mut results = Vec::with_capacity(saves.len());
        for save in saves {
            results.push(again_if_lost!(self.save_one(lease, save)));
        }
        results
    }

    async fn save_one(&self, lease: Lease<'_>, save: &Save) -> Result<(), CheckpointError> {
        let mut client = self.client().await?;
        match self.save_checked(&mut client, lease, save).await? {
            Some(placed) => self.outline_if_deep(&mut client, lease, placed, save.checkpoint().map(|row| row.id)).await,
            None => Ok(()),
        }
    }

    async fn outline_if_deep(
        &self,
        client: &mut Client,
        lease: Lease<'_>,
        placed: Placed,
        id: Option<CheckpointId>,
    ) -> Result<(), CheckpointError> {
        match id.filter(|_| placed.depth >= self.interval.every) {
            Some(id) => self.outline(client, lease, placed.space, id).await,
            None => Ok(()),
        }
    }
}

impl Work<'_> {
    /// Saves them if all is as it should be; nothing is written otherwise.
    pub(super) async fn save(&self, lease: Lease<'_>, columns: &Columns<'_>) -> Result<Row, Fault> {
        let epoch = lease.epoch.as_u64().cast_signed();
        let [old_head, new_head, built_on] =
            [columns.old_head, columns.new_head, columns.built_on].map(|id| id.map(bytes));
        let Columns { rows, pending, .. } = columns;
        let params: &[Param<'_>] = params![
            lease.thread => TEXT, epoch => INT8, lease.namespace => TEXT, old_head => BYTEA, new_head => BYTEA,
            built_on => BYTEA,
            each(rows, |row| bytes(row.id)) => BYTEA_ARRAY, each(rows, |row| row.parent.map(bytes)) => BYTEA_ARRAY,
            each(rows, |row| row.base.map(bytes)) => BYTEA_ARRAY, each(rows, |row| row.root.map(bytes)) => BYTEA_ARRAY,
            each(rows, |row| row.source) => INT8_ARRAY, each(rows, |row| row.step) => INT8_ARRAY,
            each(rows, |row| row.created_at) => INT8_ARRAY, each(rows, |row| row.run.as_deref()) => TEXT_ARRAY,
            each(rows, |row| &row.shape[..]) => BYTEA_ARRAY, columns.shape_bodies() => BYTEA_ARRAY,
            each(rows, |row| row.needs_base) => BOOL_ARRAY, each(rows, |row| &row.body[..]) => BYTEA_ARRAY,
            each(pending, |row| bytes(row.checkpoint)) => BYTEA_ARRAY,
            each(pending, |row| row.task.as_u128().to_be_bytes().to_vec()) => BYTEA_ARRAY,
            each(pending, |row| row.consumed.map(bytes)) => BYTEA_ARRAY,
            each(pending, |row| &row.body[..]) => BYTEA_ARRAY,
        ];
        self.client.query_typed_one(&self.saver.text(steps::SAVE), params).await
    }

    pub(super) fn answer(&self, lease: Lease<'_>, row: &Row) -> Result<Answer, CheckpointError> {
        let column = |place| self.saver.column::<Option<i64>>(row, place);
        let placed = column(0)?.zip(column(1)?).map(|(space, depth)| Placed { space, depth });
        let epoch = column(2)?.map(|epoch| Epoch::from_u64(epoch.cast_unsigned()));
        let head: Option<&[u8]> = self.saver.column(row, 3)?;
        let damaged = |why| self.codec(lease.thread, lease.namespace).fail("?", "head", why);
        let head = head.map(id_from).transpose().map_err(damaged)?;
        Ok(Answer { placed, epoch, facts: Facts { head, has_base: self.saver.column(row, 4)? } })
    }
}

/// Saves as columns, for one statement.
pub(super) struct Columns<'a> {
    old_head: Option<CheckpointId>,
    new_head: Option<CheckpointId>,
    /// What the first of them goes on from.
    built_on: Option<CheckpointId>,
    rows: Vec<&'a NewRow>,
    pending: Vec<&'a PendingRow>,
}

impl<'a> Columns<'a> {
    /// Without what tasks wrote.
    pub(super) fn of_checkpoint(save: &'a Save) -> Self {
        Self { pending: Vec::new(), ..Self::of(std::slice::from_ref(save)) }
    }

    fn of(saves: &'a [Save]) -> Self {
        let rows: Vec<&NewRow> = saves.iter().filter_map(Save::checkpoint).collect();
        let pending = saves.iter().flat_map(Save::pending).collect();
        let built_on = saves.first().and_then(Save::built_on);
        let (first, last) = (rows.first(), rows.last());
        Self { old_head: first.and_then(|row| row.head), new_head: last.map(|row| row.id), built_on, rows, pending }
    }

    /// Empty if all shapes are known.
    fn shape_bodies(&self) -> Vec<Option<&[u8]>> {
        let bodies = each(&self.rows, |row| row.shape_body.as_deref());
        if bodies.iter().all(Option::is_none) { Vec::new() } else { bodies }
    }
}

/// A column.
fn each<'a, R, T>(rows: &[&'a R], column: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(|row| column(row)).collect()
}

/// Whether a statement came to grief with another one: unique violation, serialization failure, deadlock.
fn is_contention(error: &Fault) -> bool {
    error.code().is_some_and(|code| matches!(code.code(), "23505" | "40001" | "40P01"))
}
