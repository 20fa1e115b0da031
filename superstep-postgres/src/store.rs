//! A store in a PostgreSQL database.
//!
//! A batch that writes is one transaction, which waits for those before it; see `sql/postgres_store.rs`. A batch that
//! reads is on one snapshot.

mod changes;
mod facts;
mod pgvector;
mod read;
#[cfg(test)]
mod tests;
mod write;

use async_trait::async_trait;
use superstep::store::backend::{PreparedOp, StoreSetup};
use superstep::{Store, StoreError, StoreIndex, StoreOp, StoreReply, TtlConfig};
use superstep_storage::Clock;

use self::pgvector::Pgvector;
use self::read::Reads;
use self::write::Writes;
use crate::database::{Client, PostgresDatabase};

pub use self::pgvector::VectorSearch;

/// A [`Store`] in a PostgreSQL database.
///
/// Batches that write wait for each other, so that pages miss nothing and versions grow in the order of commits; reads
/// wait for nobody.
///
/// ```no_run
/// use superstep::Store;
/// use superstep_postgres::{PostgresDatabase, PostgresStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let database = PostgresDatabase::connect("postgres://agent:secret@db.example.com/agents").await?;
/// let store = PostgresStore::new(&database);
/// store.put(["users"], "ada", "tea").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PostgresStore {
    database: PostgresDatabase,
    setup: StoreSetup,
    clock: Clock,
    pgvector: Option<Pgvector>,
}

impl PostgresStore {
    /// The store in this database.
    pub fn new(database: &PostgresDatabase) -> Self {
        Self { database: database.clone(), setup: StoreSetup::default(), clock: Clock::system(), pgvector: None }
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

    /// Finds what is near in this way. Call it after [`with_index`](PostgresStore::with_index): an HNSW index is created
    /// for its embedder and metric, which may take a while if there are many vectors.
    ///
    /// # Errors
    ///
    /// If the database has no pgvector, or the index cannot be created.
    pub async fn with_vector_search(mut self, how: VectorSearch) -> Result<Self, StoreError> {
        let client = self.database.client().await?.unhurried();
        self.pgvector = Pgvector::set_up(&client, &self.database, how, &self.setup).await?;
        Ok(self)
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
        let mut client = self.database.client().await?;
        let transaction = self.database.begin(&mut client).await?;
        let mut writes = Writes::begin(transaction.client(), &self.database, now, 0).await?;
        let removed = writes.sweep().await?;
        transaction.commit().await?;
        Ok(removed)
    }

    async fn write(&self, ops: Vec<PreparedOp>, now: i64) -> Result<Vec<StoreReply>, StoreError> {
        let mut client = self.database.client().await?;
        let transaction = self.database.begin(&mut client).await?;
        let puts = ops.iter().filter(|op| matches!(op, PreparedOp::Put(_))).count();
        let mut writes = Writes::begin(transaction.client(), &self.database, now, puts).await?;
        let replies = writes.batch(ops).await?;
        transaction.commit().await?;
        Ok(replies)
    }

    async fn read(&self, ops: &[PreparedOp], now: i64) -> Result<Vec<StoreReply>, StoreError> {
        let mut client = self.database.client().await?;
        let (replies, refreshed) = match ops {
            // One statement is a snapshot by itself.
            [PreparedOp::Get { .. }] => answers(Reads::new(&client, &self.database, now), ops).await?,
            _ => self.read_snapshot(&mut client, ops, now).await?,
        };
        if !refreshed.is_empty() {
            let transaction = self.database.begin(&mut client).await?;
            // In the order of all writes: two that change the same items in another order would block each other.
            let writes = Writes::begin(transaction.client(), &self.database, now, 0).await?;
            writes.refresh(&refreshed).await?;
            transaction.commit().await?;
        }
        Ok(replies)
    }

    async fn read_snapshot(&self, client: &mut Client, ops: &[PreparedOp], now: i64) -> Result<Answers, StoreError> {
        let transaction = self.database.begin_reading(client).await?;
        let reads = Reads::new(transaction.client(), &self.database, now).with(self.pgvector.as_ref());
        let answers = answers(reads, ops).await?;
        transaction.commit().await?;
        Ok(answers)
    }
}

/// The replies to reads, and the places of items whose time to live is to be restarted.
type Answers = (Vec<StoreReply>, Vec<u64>);

async fn answers(mut reads: Reads<'_>, ops: &[PreparedOp]) -> Result<Answers, StoreError> {
    let replies = reads.answer(ops).await?;
    Ok((replies, reads.refreshed))
}

#[async_trait]
impl Store for PostgresStore {
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreReply>, StoreError> {
        let ops = self.setup.prepare(ops).await?;
        let now = self.clock.microseconds();
        if ops.iter().any(PreparedOp::is_write) { self.write(ops, now).await } else { self.read(&ops, now).await }
    }
}
