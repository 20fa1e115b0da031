//! What can be chosen before a connection is made.

use std::sync::Arc;

use super::connect::{self, Target};
use super::{Parts, PostgresDatabase};
use crate::database::sql::{self, postgres::Schema};
use crate::database::{Component, DatabaseError};

/// Settings of a [`PostgresDatabase`] that is about to be connected.
///
/// ```no_run
/// use superstep::PostgresDatabase;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), superstep::DatabaseError> {
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
    #[cfg(feature = "postgres-tls")]
    tls: Option<super::PostgresTls>,
}

impl PostgresBuilder {
    pub(super) fn new(address: String) -> Self {
        Self {
            address,
            schema: "superstep".to_owned(),
            pool_size: 8,
            may_set_up: true,
            #[cfg(feature = "postgres-tls")]
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

    /// How connections are encrypted. Whether they are is said by `sslmode` in the address; without it, they must be
    /// once this is called.
    #[cfg(feature = "postgres-tls")]
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
        self.connect_with(sql::POSTGRES).await
    }

    pub(super) async fn connect_with(self, components: &[Component]) -> Result<PostgresDatabase, DatabaseError> {
        let target = Target::parse(&self.address)?;
        let schema = checked_schema(&target.name, &self.schema)?;
        if self.pool_size == 0 {
            return Err(wrong(&target.name, "a pool of no connections has none to give; use `pool_size(1)` or more"));
        }
        let name = target.name.clone();
        #[cfg(feature = "postgres-tls")]
        let pool = connect::pool(target, self.pool_size, self.tls)?;
        #[cfg(not(feature = "postgres-tls"))]
        let pool = connect::pool(target, self.pool_size)?;
        let database = PostgresDatabase(Arc::new(Parts { name, schema, pool }));
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
