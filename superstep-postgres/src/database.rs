//! A schema of a PostgreSQL database, and a pool of connections to it.
//!
//! Nothing here or above depends on a session: no named statements, no settings, no locks that outlive a transaction.
//! So connections may come from PgBouncer in transaction mode, where each transaction may have another session.

mod builder;
mod client;
mod connect;
mod fault;
mod migrate;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use superstep_storage::DatabaseError;
use superstep_storage::database::Component;

use crate::sql;
use crate::sql::database::Schema;

pub use self::builder::PostgresBuilder;
pub(crate) use self::client::{Client, Fault};
#[cfg(feature = "tls")]
pub use self::tls::PostgresTls;
pub(crate) use self::transaction::Transaction;

/// Turns an error of the driver into ours.
pub(crate) trait InDatabase<T> {
    /// Says in which database it went wrong.
    fn in_database(self, database: &PostgresDatabase) -> Result<T, DatabaseError>;
}

/// A schema of a PostgreSQL database. Clones are the same database.
///
/// One schema can hold checkpoints, a store and a cache. Its tables are created, or brought up to date, when a
/// connection is first made. PgBouncer in transaction mode may stand between.
///
/// ```no_run
/// use superstep_postgres::PostgresDatabase;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), superstep_storage::DatabaseError> {
/// let database = PostgresDatabase::connect("postgres://agent:secret@db.example.com/agents").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresDatabase(Arc<Parts>);

struct Parts {
    /// The address without secrets.
    name: String,
    schema: Schema,
    pool: Pool,
    /// How long an answer is waited for.
    patience: Duration,
}

impl PostgresDatabase {
    /// Connects to this address, and creates what is missing in schema `superstep`; see
    /// [`builder`](PostgresDatabase::builder) for other ways.
    ///
    /// # Errors
    ///
    /// If the address cannot be read, no connection can be made, or the tables were written by a newer release of
    /// superstep.
    pub async fn connect(address: impl Into<String>) -> Result<Self, DatabaseError> {
        Self::builder(address).connect().await
    }

    /// What can be chosen before a connection is made.
    pub fn builder(address: impl Into<String>) -> PostgresBuilder {
        PostgresBuilder::new(address.into())
    }

    /// The statements that create all tables in this schema, or bring them up to date: for administrators who do not
    /// let programs do so. Connect with [`setup(false)`](PostgresBuilder::setup) then.
    ///
    /// ```
    /// use superstep_postgres::PostgresDatabase;
    /// let ddl = PostgresDatabase::ddl("agents")?;
    /// assert!(ddl.contains("CREATE SCHEMA IF NOT EXISTS \"agents\""));
    /// # Ok::<(), superstep_storage::DatabaseError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the name of the schema cannot be used.
    pub fn ddl(schema: &str) -> Result<String, DatabaseError> {
        Ok(sql::database::ddl(&builder::checked_schema("postgres", schema)?, sql::ALL))
    }

    /// Closes all connections, for all clones of this database. Those in use are closed as soon as they are free.
    ///
    /// ```no_run
    /// # async fn example(database: superstep_postgres::PostgresDatabase) {
    /// database.close();
    /// # }
    /// ```
    pub fn close(&self) {
        self.0.pool.close();
    }

    /// The same for all clones, and for no other database of this process.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// A connection, as soon as one is free.
    pub(crate) async fn client(&self) -> Result<Client, DatabaseError> {
        let pooled = self.0.pool.get().await.map_err(|error| fault::of_pool(self, error))?;
        Ok(Client::new(pooled, self.0.patience))
    }

    /// Forgets the connections that nobody uses: when one was lost, others may be as well.
    pub(crate) fn renew(&self) {
        self.0.pool.retain(|_, _| false);
    }

    /// The schema's name, to be put into SQL texts.
    pub(crate) fn schema(&self) -> &Schema {
        &self.0.schema
    }

    async fn migrate(&self, components: &[Component], may_set_up: bool) -> Result<(), DatabaseError> {
        migrate::migrate(self, components, may_set_up).await
    }
}

impl std::fmt::Debug for PostgresDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PostgresDatabase").field(&self.0.name).finish()
    }
}
