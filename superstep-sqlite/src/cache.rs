//! A cache in a SQLite database.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Params, params};
use superstep::{Cache, CacheError, CacheKey};
use superstep_storage::cached::{namespace_bytes, open_cached, seal_cached};
use superstep_storage::clock::{Clock, lifetime};
use superstep_storage::{DatabaseError, Seal};

use crate::database::{InDatabase, SqliteDatabase, Synced};
use crate::sql::cache as sql;

/// A [`Cache`] in a SQLite database, which outlives the process and can be shared by several.
///
/// What it was told last may be forgotten if the machine loses power; it is a cache.
///
/// ```
/// use bytes::Bytes;
/// use superstep::{Cache, CacheKey};
/// use superstep_sqlite::{SqliteCache, SqliteDatabase};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cache = SqliteCache::new(&SqliteDatabase::memory()?);
/// let key = CacheKey::new(["plan"], "1");
/// cache.set(vec![(key.clone(), Bytes::from("tea"), None)]).await?;
/// assert_eq!(cache.get(&[key]).await?, [Some(Bytes::from("tea"))]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SqliteCache {
    database: SqliteDatabase,
    seal: Seal,
    clock: Clock,
}

impl SqliteCache {
    /// The cache in this database.
    pub fn new(database: &SqliteDatabase) -> Self {
        Self { database: database.clone(), seal: Seal::new(), clock: Clock::system() }
    }

    /// The cache in this file, which is created if there is none.
    ///
    /// ```no_run
    /// let cache = superstep_sqlite::SqliteCache::open("agents.db")?;
    /// # Ok::<(), superstep_storage::DatabaseError>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        Ok(Self::new(&SqliteDatabase::open(path)?))
    }

    /// How values are sealed: compressed or encrypted. Keys and namespaces are not.
    ///
    /// A value that cannot be opened, because its key was taken away or it is not encrypted, counts as one that is not
    /// there.
    ///
    /// ```
    /// use superstep_sqlite::{SqliteCache, SqliteDatabase};
    /// use superstep_storage::Seal;
    ///
    /// let cache = SqliteCache::new(&SqliteDatabase::memory()?).seal(Seal::new());
    /// # Ok::<(), superstep_storage::DatabaseError>(())
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
}

#[async_trait]
impl Cache for SqliteCache {
    async fn get(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>, CacheError> {
        let (keys, now, seal) = (keys.to_vec(), self.clock.microseconds(), self.seal.clone());
        self.database.read(move |connection| keys.iter().map(|key| get(connection, &seal, key, now)).collect()).await
    }

    async fn set(&self, entries: Vec<(CacheKey, Bytes, Option<Duration>)>) -> Result<(), CacheError> {
        let (now, seal) = (self.clock.microseconds(), self.seal.clone());
        let set = move |connection: &Connection| {
            execute(connection, sql::FORGET_EXPIRED, [now])?;
            entries.iter().try_for_each(|(key, value, ttl)| {
                let expires_at = lifetime(*ttl, now).map(|ttl| now + ttl);
                let namespace = namespace_bytes(&key.namespace);
                let sealed = seal_cached(&seal, &namespace, key.key.as_bytes(), value);
                execute(connection, sql::SET, params![namespace, key.key.as_bytes(), sealed, expires_at])
            })
        };
        self.database.write(Synced::No, set).await
    }

    async fn clear(&self, namespaces: Option<&[Vec<String>]>) -> Result<(), CacheError> {
        let namespaces: Option<Vec<_>> = namespaces.map(|list| list.iter().map(|n| namespace_bytes(n)).collect());
        let clear = move |connection: &Connection| match namespaces {
            None => execute(connection, sql::CLEAR_ALL, []),
            Some(list) => list.into_iter().try_for_each(|namespace| execute(connection, sql::CLEAR, [namespace])),
        };
        self.database.write(Synced::No, clear).await
    }

    fn identity(&self) -> usize {
        self.database.address()
    }
}

fn get(connection: &Connection, seal: &Seal, key: &CacheKey, now: i64) -> Result<Option<Bytes>, CacheError> {
    let namespace = namespace_bytes(&key.namespace);
    let run = || {
        let mut statement = connection.prepare_cached(sql::GET)?;
        statement.query_row(params![now, namespace, key.key.as_bytes()], |row| row.get::<_, Vec<u8>>(0)).optional()
    };
    let sealed = run().in_database(connection)?;
    Ok(sealed.and_then(|sealed| open_cached(seal, &namespace, key.key.as_bytes(), &sealed)))
}

fn execute(connection: &Connection, sql: &str, params: impl Params) -> Result<(), CacheError> {
    let run = || connection.prepare_cached(sql)?.execute(params).map(drop);
    Ok(run().in_database(connection)?)
}
