//! A cache in a PostgreSQL database.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use superstep::{Cache, CacheError, CacheKey};
use superstep_storage::cached::{namespace_bytes, open_cached, seal_cached};
use superstep_storage::clock::{Clock, lifetime};
use superstep_storage::{DatabaseError, Seal};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::database::{InDatabase, PostgresDatabase};
use crate::sql::cache as sql;

/// A [`Cache`] in a PostgreSQL database, shared by all processes that use it.
///
/// ```no_run
/// use superstep_postgres::{PostgresCache, PostgresDatabase};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), superstep_storage::DatabaseError> {
/// let database = PostgresDatabase::connect("postgres://agent:secret@db.example.com/agents").await?;
/// let cache = PostgresCache::new(&database);
/// # drop(cache);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PostgresCache {
    database: PostgresDatabase,
    seal: Seal,
    clock: Clock,
}

impl PostgresCache {
    /// The cache in this database.
    pub fn new(database: &PostgresDatabase) -> Self {
        Self { database: database.clone(), seal: Seal::new(), clock: Clock::system() }
    }

    /// How values are sealed: compressed or encrypted. Keys and namespaces are not.
    ///
    /// A value that cannot be opened, because its key was taken away or it is not encrypted, counts as one that is not
    /// there.
    ///
    /// ```
    /// # fn example(cache: superstep_postgres::PostgresCache) {
    /// use superstep_storage::Seal;
    ///
    /// let cache = cache.seal(Seal::new());
    /// # drop(cache);
    /// # }
    /// ```
    #[must_use = "it gives back the cache"]
    pub fn seal(mut self, seal: Seal) -> Self {
        self.seal = seal;
        self
    }

    /// Entries expire by this clock.
    #[must_use = "it gives back the cache"]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    async fn run(&self, sql: &str, values: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Row>, DatabaseError> {
        let client = self.database.client().await?;
        client.query_typed(&self.database.schema().fill(sql), values).await.in_database(&self.database)
    }
}

#[async_trait]
impl Cache for PostgresCache {
    async fn get(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>, CacheError> {
        let mut found = vec![None; keys.len()];
        if keys.is_empty() {
            return Ok(found);
        }
        let now = self.clock.microseconds();
        let (namespaces, names): (Vec<Vec<u8>>, Vec<&[u8]>) =
            keys.iter().map(|key| (namespace_bytes(&key.namespace), key.key.as_bytes())).unzip();
        let values: &[(&(dyn ToSql + Sync), Type)] =
            &[(&now, Type::INT8), (&namespaces, Type::BYTEA_ARRAY), (&names, Type::BYTEA_ARRAY)];
        for row in self.run(sql::GET, values).await? {
            let ordinal: i64 = row.try_get(0).in_database(&self.database)?;
            let sealed: Vec<u8> = row.try_get(1).in_database(&self.database)?;
            let place = ordinal as usize - 1;
            found[place] = open_cached(&self.seal, &namespaces[place], names[place], &sealed);
        }
        Ok(found)
    }

    async fn set(&self, entries: Vec<(CacheKey, Bytes, Option<Duration>)>) -> Result<(), CacheError> {
        let now = self.clock.microseconds();
        self.run(sql::FORGET_EXPIRED, &[(&now, Type::INT8)]).await?;
        // The last of several entries for one key.
        let entries: BTreeMap<_, _> = entries.into_iter().map(|(key, value, ttl)| (key, (value, ttl))).collect();
        let expiry = |ttl: &Option<Duration>| lifetime(*ttl, now).map(|ttl| now + ttl);
        let expiries: Vec<Option<i64>> = entries.values().map(|(_, ttl)| expiry(ttl)).collect();
        let namespaces: Vec<Vec<u8>> = entries.keys().map(|key| namespace_bytes(&key.namespace)).collect();
        let keys: Vec<&[u8]> = entries.keys().map(|key| key.key.as_bytes()).collect();
        let named = namespaces.iter().zip(&keys).zip(entries.values());
        let sealed = named.map(|((namespace, key), (value, _))| seal_cached(&self.seal, namespace, key, value));
        let bytes: Vec<Vec<u8>> = sealed.collect();
        let values: &[(&(dyn ToSql + Sync), Type)] = &[
            (&namespaces, Type::BYTEA_ARRAY),
            (&keys, Type::BYTEA_ARRAY),
            (&bytes, Type::BYTEA_ARRAY),
            (&expiries, Type::INT8_ARRAY),
        ];
        self.run(sql::SET, values).await?;
        Ok(())
    }

    async fn clear(&self, namespaces: Option<&[Vec<String>]>) -> Result<(), CacheError> {
        match namespaces {
            None => self.run(sql::CLEAR_ALL, &[]).await?,
            Some(list) => {
                let list: Vec<Vec<u8>> = list.iter().map(|namespace| namespace_bytes(namespace)).collect();
                self.run(sql::CLEAR, &[(&list, Type::BYTEA_ARRAY)]).await?
            }
        };
        Ok(())
    }

    fn identity(&self) -> usize {
        self.database.address()
    }
}
