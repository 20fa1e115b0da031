//! What a batch changes, inside its transaction.

use std::collections::HashMap;

use superstep::store::backend::PreparedOp;
use superstep::{PutIf, StoreError, StoreReply};
use superstep_storage::DatabaseError;
use superstep_storage::clock::lifetime;
use superstep_storage::items::{bytes_of, scopes_of};
use tokio_postgres::Row as SqlRow;
use tokio_postgres::types::{FromSql, Type};

use super::changes::{Changes, Name, Put};
use super::facts;
use super::read::{Reads, Values, run};
use crate::database::{Client, InDatabase, PostgresDatabase};
use crate::sql::store as sql;

/// Writes at one time, alone among those who write.
pub(super) struct Writes<'a> {
    client: &'a Client,
    database: &'a PostgresDatabase,
    now: i64,
    last_version: u64,
}

impl<'a> Writes<'a> {
    /// Waits for the batches before, and takes the versions of `puts` items.
    pub(super) async fn begin(
        client: &'a Client,
        database: &'a PostgresDatabase,
        now: i64,
        puts: usize,
    ) -> Result<Self, StoreError> {
        let rows = run(client, database, sql::TAKE_VERSIONS, &[(&(puts as i64), Type::INT8)]).await?;
        let missing = || {
            StoreError::backend("table `superstep_store_order` has lost its row; insert `(TRUE, <the last version>)`")
        };
        let row = rows.first().ok_or_else(missing)?;
        let last_version: i64 = row.try_get(0).in_database(database)?;
        Ok(Self { client, database, now, last_version: last_version as u64 })
    }

    pub(super) async fn batch(&mut self, ops: Vec<PreparedOp>) -> Result<Vec<StoreReply>, StoreError> {
        self.sweep().await?;
        self.check(&ops).await?;
        // Reads first, so that they see the state before the batch.
        let mut reads = Reads::new(self.client, self.database, self.now);
        let mut replies = reads.answer(&ops).await?;
        let refreshed = reads.refreshed;
        if !refreshed.is_empty() {
            self.refresh(&refreshed).await?;
        }
        self.apply(Changes::of(ops, &mut replies, self.last_version)).await?;
        Ok(replies)
    }

    /// Removes what has expired, and says how many items.
    pub(super) async fn sweep(&mut self) -> Result<usize, StoreError> {
        Ok(self.run(sql::SWEEP, &[(&self.now, Type::INT8)]).await?.len())
    }

    /// Restarts the time to live of the items at these places.
    pub(super) async fn refresh(&self, places: &[u64]) -> Result<(), StoreError> {
        let places: Vec<i64> = places.iter().map(|place| *place as i64).collect();
        self.run(sql::REFRESH, &[(&self.now, Type::INT8), (&places, Type::INT8_ARRAY)]).await?;
        Ok(())
    }

    /// Whether the conditions of all puts hold.
    async fn check(&self, ops: &[PreparedOp]) -> Result<(), StoreError> {
        let conditional = || {
            ops.iter().filter_map(|op| match op {
                PreparedOp::Put(put) if put.only_if != PutIf::Always => Some(put),
                _ => None,
            })
        };
        let (namespaces, keys): (Vec<Vec<u8>>, Vec<&str>) =
            conditional().map(|put| (bytes_of(&put.namespace), put.key.as_str())).unzip();
        if keys.is_empty() {
            return Ok(());
        }
        let values: Values<'_> = &[(&namespaces, Type::BYTEA_ARRAY), (&keys, Type::TEXT_ARRAY)];
        let mut found: HashMap<Name, u64> = HashMap::new();
        for row in self.run(sql::FOUND, values).await? {
            let name = (self.read(&row, 0)?, self.read(&row, 1)?);
            found.insert(name, self.read::<i64>(&row, 2)? as u64);
        }
        conditional().try_for_each(|put| {
            let version = found.get(&(bytes_of(&put.namespace), put.key.clone()));
            put.only_if.check(&put.namespace, &put.key, version.copied())
        })
    }

    async fn apply(&self, changes: Changes) -> Result<(), StoreError> {
        let deleted = changes.0.iter().filter(|(_, change)| change.deleted).map(|(name, _)| name.clone());
        let (namespaces, keys): (Vec<Vec<u8>>, Vec<String>) = deleted.unzip();
        if !keys.is_empty() {
            let values: Values<'_> = &[(&namespaces, Type::BYTEA_ARRAY), (&keys, Type::TEXT_ARRAY)];
            self.run(sql::DELETE, values).await?;
        }
        let puts: Vec<(Name, Put)> =
            changes.0.into_iter().filter_map(|(name, change)| change.put.map(|put| (name, put))).collect();
        if puts.is_empty() {
            return Ok(());
        }
        let places = self.put_items(&puts).await?;
        self.put_scopes(&puts, &places).await?;
        self.put_words(&puts, &places).await?;
        self.put_vectors(&puts, &places).await
    }

    /// The place of each put item.
    async fn put_items(&self, puts: &[(Name, Put)]) -> Result<Vec<i64>, StoreError> {
        let texts: Vec<String> = puts.iter().map(|(_, put)| put.item.value.to_string()).collect();
        let facts: Vec<Option<String>> =
            puts.iter().zip(&texts).map(|((_, put), text)| facts::of(&put.item.value, text)).collect();
        let new_places: Vec<i64> = puts.iter().map(|(_, put)| put.first_version as i64).collect();
        let versions: Vec<i64> = puts.iter().map(|(_, put)| put.version as i64).collect();
        let ttls: Vec<Option<i64>> = puts.iter().map(|(_, put)| lifetime(put.item.ttl, self.now)).collect();
        let (namespaces, keys): (Vec<&[u8]>, Vec<&str>) =
            puts.iter().map(|((namespace, key), _)| (namespace.as_slice(), key.as_str())).unzip();
        let values: Values<'_> = &[
            (&self.now, Type::INT8),
            (&new_places, Type::INT8_ARRAY),
            (&namespaces, Type::BYTEA_ARRAY),
            (&keys, Type::TEXT_ARRAY),
            (&texts, Type::TEXT_ARRAY),
            (&facts, Type::TEXT_ARRAY),
            (&versions, Type::INT8_ARRAY),
            (&ttls, Type::INT8_ARRAY),
        ];
        let mut by_version: HashMap<i64, i64> = HashMap::new();
        for row in self.run(sql::PUT, values).await? {
            by_version.insert(self.read(&row, 0)?, self.read(&row, 1)?);
        }
        Ok(versions.iter().filter_map(|version| by_version.get(version).copied()).collect())
    }

    async fn put_scopes(&self, puts: &[(Name, Put)], places: &[i64]) -> Result<(), StoreError> {
        let of_each = puts.iter().zip(places);
        let (scopes, places): (Vec<&[u8]>, Vec<i64>) =
            of_each.flat_map(|((name, _), place)| scopes_of(&name.0).map(move |scope| (scope, *place))).unzip();
        self.run(sql::PUT_SCOPES, &[(&scopes, Type::BYTEA_ARRAY), (&places, Type::INT8_ARRAY)]).await?;
        Ok(())
    }

    async fn put_words(&self, puts: &[(Name, Put)], places: &[i64]) -> Result<(), StoreError> {
        self.run(sql::DELETE_WORDS, &[(&places, Type::INT8_ARRAY)]).await?;
        let of_each = puts.iter().zip(places);
        let (words, places): (Vec<&str>, Vec<i64>) = of_each
            .flat_map(|((_, put), place)| put.item.words.iter().map(move |word| (word.as_str(), *place)))
            .unzip();
        if !words.is_empty() {
            self.run(sql::PUT_WORDS, &[(&words, Type::TEXT_ARRAY), (&places, Type::INT8_ARRAY)]).await?;
        }
        Ok(())
    }

    async fn put_vectors(&self, puts: &[(Name, Put)], places: &[i64]) -> Result<(), StoreError> {
        self.run(sql::DELETE_VECTORS, &[(&places, Type::INT8_ARRAY)]).await?;
        let (mut of, mut ordinals, mut vectors) = (Vec::new(), Vec::new(), Vec::new());
        for ((_, put), place) in puts.iter().zip(places) {
            for (ordinal, vector) in put.item.vectors.iter().enumerate() {
                of.push(*place);
                ordinals.push(ordinal as i64);
                vectors.push(vector_text(vector));
            }
        }
        if !vectors.is_empty() {
            let values: Values<'_> =
                &[(&of, Type::INT8_ARRAY), (&ordinals, Type::INT8_ARRAY), (&vectors, Type::TEXT_ARRAY)];
            self.run(sql::PUT_VECTORS, values).await?;
        }
        Ok(())
    }

    fn read<'r, T: FromSql<'r>>(&self, row: &'r SqlRow, column: usize) -> Result<T, DatabaseError> {
        row.try_get(column).in_database(self.database)
    }

    async fn run(&self, sql: &str, values: Values<'_>) -> Result<Vec<SqlRow>, DatabaseError> {
        run(self.client, self.database, sql, values).await
    }
}

/// As an array in PostgreSQL's words. The shortest digits of a number are read back as the same number.
fn vector_text(vector: &[f32]) -> String {
    format!("{{{}}}", vector.iter().map(f32::to_string).collect::<Vec<_>>().join(","))
}
