//! Copying a thread, while its writers go on.

use std::collections::HashMap;

use superstep::CheckpointError;
use superstep_storage::rows::{IdBytes, NewOutline, NewRow, PAGE, RowCodec};

use super::read::{pending, stored};
use super::work::{Param, Work, all, bytes, params};
use super::{PostgresSaver, is_kept};
use crate::database::Client;
use crate::sql::checkpoints as sql;

impl PostgresSaver {
    pub(super) async fn copy(&self, from: &str, to: &str) -> Result<(), CheckpointError> {
        if !is_kept(&[from]) {
            return Err(CheckpointError::nothing_to_copy(from));
        }
        let mut client = self.client().await?;
        let epoch = self.take_name(&mut client, from, to).await?;
        let shapes = self.work(&client).copy_shapes(self.codec(from, ""), self.codec(to, "")).await?;
        let transaction = self.database.begin_fixed(&mut client).await?;
        let work = self.work(transaction.client());
        let held = work.row(sql::HOLD, params![to => TEXT]).await?;
        let (thread, found) = match &held {
            Some(row) => (self.column(row, 0)?, Some(self.column::<i64>(row, 1)?)),
            None => (0, None),
        };
        if found != Some(epoch) {
            return Err(CheckpointError::backend(format!("thread `{to}` was claimed by someone else; copy it again")));
        }
        let spaces = work.spaces(from).await?;
        if spaces.is_empty() {
            return Err(CheckpointError::nothing_to_copy(from));
        }
        for space in &spaces {
            let copy = work.add_space(thread, &space.name, space.head).await?;
            work.run(sql::COPY_RUNS, params![space.key => INT8, copy => INT8]).await?;
            let (source, target) = (self.codec(from, &space.name), self.codec(to, &space.name));
            work.copy_checkpoints(source, target, space.key, copy, &shapes).await?;
            work.copy_pending(source, target, space.key, copy).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Claims the name of a copy, if it is free and there is something to copy. Nobody who claimed it before can write
    /// there from then on.
    async fn take_name(&self, client: &mut Client, from: &str, to: &str) -> Result<i64, CheckpointError> {
        let transaction = self.begin(client).await?;
        let work = self.work(transaction.client());
        if !work.is_alive(from).await? {
            return Err(CheckpointError::nothing_to_copy(from));
        }
        let by_name: &[Param<'_>] = params![to => TEXT];
        work.rows(sql::CLAIM, by_name).await?;
        if work.is_alive(to).await? {
            return Err(CheckpointError::name_taken(to));
        }
        let expired: Vec<i64> = self.columns(&work.rows(sql::FORGET, by_name).await?, 0)?;
        let claimed = work.rows(sql::CLAIM, by_name).await?;
        let epoch = self.column(&claimed[0], 1)?;
        transaction.commit().await?;
        self.work(client).clear_all(&expired).await?;
        Ok(epoch)
    }
}

fn new_shape(from: &str) -> CheckpointError {
    let why = format!("thread `{from}` has a shape that was not there; copy it again, or the database is damaged");
    CheckpointError::backend(why)
}

impl Work<'_> {
    async fn is_alive(&self, thread: &str) -> Result<bool, CheckpointError> {
        let found = self.rows(sql::IS_ALIVE, params![thread => TEXT, self.saver.ttl => INT8]).await?;
        self.saver.column(&found[0], 0)
    }

    /// Copies rows, each sealed for the thread it belongs to.
    async fn copy_checkpoints(
        &self,
        from: RowCodec<'_>,
        to: RowCodec<'_>,
        space: i64,
        copy: i64,
        shapes: &HashMap<Vec<u8>, IdBytes>,
    ) -> Result<(), CheckpointError> {
        let mut after = None;
        loop {
            let params: &[Param<'_>] = params![space => INT8, after => BYTEA, PAGE as i64 => INT8];
            let found = self.rows(sql::PAGE, params).await?;
            let mut rows = Vec::with_capacity(found.len());
            for row in &found {
                let stored = self.saver.done(stored(row))?;
                let shape = *shapes.get(&stored.shape).ok_or_else(|| new_shape(from.thread))?;
                let (new, outline) = from.resealed(stored, to, shape)?;
                rows.push((new, outline, self.saver.column(row, 13)?));
            }
            after = rows.last().map(|(row, _, _)| bytes(row.id));
            all(rows.iter().map(|(row, outline, depth)| self.add_copy(copy, row, outline.as_ref(), *depth))).await?;
            if rows.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// The names of a thread's shapes where they are sealed as the saver seals now. Not in the transaction of the copy: all
    /// who save a graph for the first time would wait for its end.
    async fn copy_shapes(
        &self,
        from: RowCodec<'_>,
        to: RowCodec<'_>,
    ) -> Result<HashMap<Vec<u8>, IdBytes>, CheckpointError> {
        let mut shapes = HashMap::new();
        for row in &self.rows(sql::SHAPES, params![from.thread => TEXT]).await? {
            let (digest, sealed): (&[u8], &[u8]) = (self.saver.column(row, 0)?, self.saver.column(row, 1)?);
            let (copy, sealed) = from.resealed_shape(digest, Some(sealed), to)?;
            self.run(sql::ADD_SHAPE, params![&copy[..] => BYTEA, sealed => BYTEA]).await?;
            shapes.insert(digest.to_vec(), copy);
        }
        Ok(shapes)
    }

    async fn add_copy(
        &self,
        space: i64,
        row: &NewRow,
        outline: Option<&NewOutline>,
        depth: i64,
    ) -> Result<(), CheckpointError> {
        self.add(space, row, depth).await?;
        match outline {
            Some(outline) => self.set_outline(space, outline).await,
            None => Ok(()),
        }
    }

    async fn copy_pending(
        &self,
        from: RowCodec<'_>,
        to: RowCodec<'_>,
        space: i64,
        copy: i64,
    ) -> Result<(), CheckpointError> {
        let (mut after, mut task): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
        loop {
            let params: &[Param<'_>] = params![space => INT8, after => BYTEA, task => BYTEA, PAGE as i64 => INT8];
            let found = self.rows(sql::PENDING_PAGE, params).await?;
            let mut rows = Vec::with_capacity(found.len());
            for row in &found {
                rows.push(from.resealed_pending(&self.saver.done(pending(row))?.row(from)?, to)?);
            }
            after = rows.last().map(|row| bytes(row.checkpoint));
            task = rows.last().map(|row| row.task.as_u128().to_be_bytes().to_vec());
            all(rows.iter().map(|row| self.set_pending(copy, row))).await?;
            if rows.len() < PAGE {
                return Ok(());
            }
        }
    }
}
