//! A store in a SQLite database.
//!
//! A batch that writes is one job of the database's writer: all of it is committed, or nothing.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::path::Path;

use async_trait::async_trait;
use superstep::store::backend::{PreparedOp, StoreSetup};
use superstep::{Store, StoreError, StoreIndex, StoreOp, StoreReply, TtlConfig};
use superstep_storage::{Clock, DatabaseError};

use self::read::Reads;
use self::write::Writes;
use crate::database::{SqliteDatabase, Synced};

/// A [`Store`] in a SQLite database: in a file, for several processes, or in memory.
///
/// ```
/// use superstep::Store;
/// use superstep_sqlite::{SqliteDatabase, SqliteStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = SqliteStore::new(&SqliteDatabase::memory()?);
/// store.put(["users"], "ada", "tea").await?;
/// assert_eq!(store.get_as::<String>(["users"], "ada").await?.as_deref(), Some("tea"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SqliteStore {
    database: SqliteDatabase,
    setup: StoreSetup,
    clock: Clock,
}

impl SqliteStore {
    /// The store in this database.
    pub fn new(database: &SqliteDatabase) -> Self {
        Self { database: database.clone(), setup: StoreSetup::default(), clock: Clock::system() }
    }

    /// The store in this file, which is created if there is none.
    ///
    /// ```no_run
    /// let store = superstep_sqlite::SqliteStore::open("agents.db")?;
    /// # Ok::<(), superstep_storage::DatabaseError>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        Ok(Self::new(&SqliteDatabase::open(path)?))
    }

    /// Items live as long as `ttl` says, from the next put on.
    #[must_use = "it gives back the store"]
    pub fn with_ttl(mut self, ttl: TtlConfig) -> Self {
        self.setup.ttl = ttl;
        self
    }

    /// Items can be searched for as `index` says, from the next put on.
    #[must_use = "it gives back the store"]
    pub fn with_index(mut self, index: StoreIndex) -> Self {
        self.setup.index = index;
        self
    }

    /// Items expire by this clock.
    #[must_use = "it gives back the store"]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Removes the items whose time has passed and says how many.
    ///
    /// Reads never return such an item and each batch that writes removes them, so this is for a store that is only
    /// read.
    pub async fn sweep(&self) -> Result<usize, StoreError> {
        let now = self.clock.microseconds();
        self.database.write(Synced::Yes, move |connection| Writes::new(connection, now).sweep()).await
    }

    async fn read(&self, ops: Vec<PreparedOp>, now: i64) -> Result<Vec<StoreReply>, StoreError> {
        let (replies, refreshed) = self
            .database
            .read(move |connection| {
                let mut reads = Reads::new(connection, now);
                let replies = reads.answer(&ops)?;
                Ok::<_, StoreError>((replies, reads.refreshed))
            })
            .await?;
        if !refreshed.is_empty() {
            let refresh = move |connection: &_| Writes::new(connection, now).refresh(&refreshed);
            self.database.write(Synced::No, refresh).await?;
        }
        Ok(replies)
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreReply>, StoreError> {
        let ops = self.setup.prepare(ops).await?;
        let now = self.clock.microseconds();
        if !ops.iter().any(PreparedOp::is_write) {
            return self.read(ops, now).await;
        }
        self.database.write(Synced::Yes, move |connection| Writes::new(connection, now).batch(ops)).await
    }
}
