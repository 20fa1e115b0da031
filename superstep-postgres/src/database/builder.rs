//! What can be chosen before a connection is made.

use std::sync::Arc;
use std::time::Duration;

use superstep_storage::DatabaseError;
use superstep_storage::database::Component;

use super::connect::{self, Target};
use super::{Parts, PostgresDatabase};
use crate::sql::{self, database::Schema};

/// Settings of a [`PostgresDatabase`] that is about to be connected.
///
/// ```no_run
/// use superstep_postgres::PostgresDatabase;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), superstep_storage::DatabaseError> {
/// let database = PostgresDatabase::builder("postgres://agent@db.example.com/agents?sslmode=require")
///     .schema("support_agents")
///     .pool_size(20)
///     .connect()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is connected before `connect`"]
pub struct PostgresBuilder {
    address: String,
    schema: String,
    pool_size: usize,
    may_set_up: bool,
    answer_timeout: Duration,
    #[cfg(feature = "tls")]
    tls: Option<super::PostgresTls>,
}

/// Without the address, which may hold a password.
impl std::fmt::Debug for PostgresBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { schema, pool_size, answer_timeout, .. } = self;
        let mut shown = f.debug_struct("PostgresBuilder");
        shown.field("schema", schema).field("pool_size", pool_size).field("answer_timeout", answer_timeout);
        shown.finish_non_exhaustive()
    }
}

impl PostgresBuilder {
    pub(super) fn new(address: String) -> Self {
        Self {
            address,
            schema: "superstep".to_owned(),
            pool_size: 8,
            may_set_up: true,
            answer_timeout: Duration::from_secs(30),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// The schema that holds the tables: ASCII letters, digits and `_`. `superstep` if not given.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// How many connections there are at most. 8 if not given.
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections;
        self
    }

    /// Whether missing tables are created and old ones brought up to date. If not, they must be there already: see
    /// [`PostgresDatabase::ddl`].
    pub fn setup(mut self, is_allowed: bool) -> Self {
        self.may_set_up = is_allowed;
        self
    }

    /// How long to wait for the answer to a statement, and for a new connection. 30 seconds if not given.
    ///
    /// A server that is stopped, and a network that loses connections without telling, say nothing for ever. What was not
    /// answered in time fails with [`DatabaseError::Silent`], and its connection is given up. Savers then try once more on
    /// a new connection, as if the old one had been lost: what the server did already is not done twice. Sweeps and the
    /// set-up of tables and indexes may take an hour.
    ///
    /// Servers let statements wait for locks for up to 12 seconds: a shorter limit gives up on them too.
    ///
    /// ```no_run
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), superstep_storage::DatabaseError> {
    /// use std::time::Duration;
    /// use superstep_postgres::PostgresDatabase;
    ///
    /// let address = "postgres://agent:secret@db.example.com/agents";
    /// let database = PostgresDatabase::builder(address).answer_timeout(Duration::from_secs(60)).connect().await?;
    /// # drop(database);
    /// # Ok(())
    /// # }
    /// ```
    pub fn answer_timeout(mut self, limit: Duration) -> Self {
        self.answer_timeout = limit;
        self
    }

    /// How connections are encrypted. Whether they are is said by `sslmode` in the address; without it, they must be
    /// once this is called.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: super::PostgresTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Connects, and sets the schema up.
    ///
    /// # Errors
    ///
    /// If a setting is wrong, no connection can be made, or the tables do not fit this release of superstep.
    pub async fn connect(self) -> Result<PostgresDatabase, DatabaseError> {
        self.connect_with(sql::ALL).await
    }

    pub(super) async fn connect_with(self, components: &[Component]) -> Result<PostgresDatabase, DatabaseError> {
        let target = Target::parse(&self.address)?;
        let schema = checked_schema(&target.name, &self.schema)?;
        if self.pool_size == 0 {
            return Err(wrong(&target.name, "a pool of no connections has none to give; use `pool_size(1)` or more"));
        }
        let patience = self.answer_timeout;
        if patience.is_zero() {
            return Err(wrong(&target.name, "no answer comes in no time; use `answer_timeout` with a longer one"));
        }
        let name = target.name.clone();
        #[cfg(feature = "tls")]
        let pool = connect::pool(target, self.pool_size, patience, self.tls)?;
        #[cfg(not(feature = "tls"))]
        let pool = connect::pool(target, self.pool_size, patience)?;
        let database = PostgresDatabase(Arc::new(Parts { name, schema, pool, patience }));
        database.migrate(components, self.may_set_up).await?;
        Ok(database)
    }
}

pub(super) fn checked_schema(database: &str, name: &str) -> Result<Schema, DatabaseError> {
    Schema::new(name).map_err(|why| wrong(database, format!("schema `{name}` cannot be used: {why}")))
}

pub(super) fn wrong(database: &str, why: impl Into<String>) -> DatabaseError {
    DatabaseError::Open { database: database.to_owned(), why: why.into(), source: None }
}
