//! What a batch changes, inside the transaction that its job is.

use rusqlite::{Connection, OptionalExtension, Params, params};
use superstep::store::backend::{PreparedOp, PreparedPut};
use superstep::{StoreError, StoreReply};
use superstep_storage::clock::lifetime;
use superstep_storage::items::{bytes_of, scopes_of, vector_bytes};

use super::read::Reads;
use crate::database::InDatabase;
use crate::sql::store as sql;

/// Writes at one time, in one transaction.
pub(super) struct Writes<'a> {
    connection: &'a Connection,
    now: i64,
}

impl<'a> Writes<'a> {
    pub(super) fn new(connection: &'a Connection, now: i64) -> Self {
        Self { connection, now }
    }

    pub(super) fn batch(&self, ops: Vec<PreparedOp>) -> Result<Vec<StoreReply>, StoreError> {
        self.sweep()?;
        self.check(&ops)?;
        // Reads first, so that they see the state before the batch.
        let mut reads = Reads::new(self.connection, self.now);
        let mut replies = reads.answer(&ops)?;
        self.refresh(&reads.refreshed)?;
        let before: i64 =
            self.connection.query_row(sql::LAST_VERSION, [], |row| row.get(0)).in_database(self.connection)?;
        let mut last_version = before as u64;
        for (op, reply) in ops.into_iter().zip(&mut replies) {
            match op {
                PreparedOp::Put(put) => {
                    last_version += 1;
                    self.put(&put, last_version)?;
                    *reply = StoreReply::Stored(last_version);
                }
                PreparedOp::Delete { namespace, key } => self.delete(&bytes_of(&namespace), &key)?,
                PreparedOp::Get { .. } | PreparedOp::Search(_) | PreparedOp::ListNamespaces(_) => {}
            }
        }
        self.execute(sql::SET_LAST_VERSION, [last_version as i64])?;
        Ok(replies)
    }

    /// Removes what has expired, and says how many items.
    pub(super) fn sweep(&self) -> Result<usize, StoreError> {
        let mut statement = self.connection.prepare_cached(sql::EXPIRED).in_database(self.connection)?;
        let rows =
            statement.query_map([self.now], |row| Ok((row.get(0)?, row.get(1)?))).in_database(self.connection)?;
        let expired: Result<Vec<(i64, Vec<u8>)>, _> = rows.collect();
        let expired = expired.in_database(self.connection)?;
        expired.iter().try_for_each(|(place, namespace)| self.remove(*place, namespace))?;
        Ok(expired.len())
    }

    /// Restarts the time to live of the items at these places.
    pub(super) fn refresh(&self, places: &[u64]) -> Result<(), StoreError> {
        places.iter().try_for_each(|place| self.execute(sql::REFRESH, params![self.now, *place as i64]))
    }

    /// Whether the conditions of all puts hold.
    fn check(&self, ops: &[PreparedOp]) -> Result<(), StoreError> {
        ops.iter().try_for_each(|op| match op {
            PreparedOp::Put(put) => {
                let found = self.found(&bytes_of(&put.namespace), &put.key)?;
                put.only_if.check(&put.namespace, &put.key, found.map(|(_, version)| version as u64))
            }
            _ => Ok(()),
        })
    }

    fn put(&self, put: &PreparedPut, version: u64) -> Result<(), StoreError> {
        let namespace = bytes_of(&put.namespace);
        let value = serde_json::to_string(&put.value).map_err(StoreError::backend)?;
        let ttl = lifetime(put.ttl, self.now);
        let place = match self.found(&namespace, &put.key)? {
            Some((place, _)) => {
                self.execute(sql::UPDATE, params![place, value, version as i64, self.now, ttl])?;
                self.forget_words_and_vectors(place)?;
                place
            }
            None => {
                let place = version as i64;
                self.execute(sql::INSERT, params![place, namespace, put.key, value, self.now, ttl])?;
                scopes_of(&namespace).try_for_each(|scope| self.execute(sql::INSERT_SCOPE, params![scope, place]))?;
                place
            }
        };
        put.words.iter().try_for_each(|word| self.execute(sql::INSERT_WORD, params![word, place]))?;
        for (ordinal, vector) in put.vectors.iter().enumerate() {
            self.execute(sql::INSERT_VECTOR, params![place, ordinal as i64, vector_bytes(vector)])?;
        }
        Ok(())
    }

    fn delete(&self, namespace: &[u8], key: &str) -> Result<(), StoreError> {
        match self.found(namespace, key)? {
            Some((place, _)) => self.remove(place, namespace),
            None => Ok(()),
        }
    }

    fn remove(&self, place: i64, namespace: &[u8]) -> Result<(), StoreError> {
        self.execute(sql::DELETE, [place])?;
        scopes_of(namespace).try_for_each(|scope| self.execute(sql::DELETE_SCOPE, params![scope, place]))?;
        self.forget_words_and_vectors(place)
    }

    fn forget_words_and_vectors(&self, place: i64) -> Result<(), StoreError> {
        self.execute(sql::DELETE_WORDS, [place])?;
        self.execute(sql::DELETE_VECTORS, [place])
    }

    /// The place and version of the item under a key.
    fn found(&self, namespace: &[u8], key: &str) -> Result<Option<(i64, i64)>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql::FOUND).in_database(self.connection)?;
        let found = statement.query_row(params![namespace, key], |row| Ok((row.get(0)?, row.get(1)?))).optional();
        Ok(found.in_database(self.connection)?)
    }

    fn execute(&self, sql: &str, params: impl Params) -> Result<(), StoreError> {
        let run = || self.connection.prepare_cached(sql)?.execute(params).map(drop);
        Ok(run().in_database(self.connection)?)
    }
}
