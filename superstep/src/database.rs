//! Databases that checkpointers, stores and caches share: one file or one schema may hold all three.
//!
//! Here is what they have in common: connections, transactions, versions of tables, and what can go wrong. All SQL text
//! is below `sql/`, and none of the drivers' types are in the public API.

mod error;
#[cfg(feature = "postgres")]
mod postgres;
pub(crate) mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use error::DatabaseError;
#[cfg(feature = "postgres-tls")]
pub use postgres::PostgresTls;
#[cfg(feature = "postgres")]
pub(crate) use postgres::{Client as PostgresClient, Fault as PostgresFault, Transaction as PostgresTransaction};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresBuilder, PostgresDatabase};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteDatabase;
#[cfg(feature = "sqlite")]
pub(crate) use sqlite::Synced;
#[cfg(all(test, feature = "sqlite"))]
pub(crate) use sqlite::plan::plan;

/// Turns a driver's error into ours.
pub(crate) trait InDatabase<T> {
    /// What knows the database's name.
    type Place;

    /// Says in which database it went wrong.
    fn in_database(self, place: &Self::Place) -> Result<T, DatabaseError>;
}

/// Tables that belong together, with a version of their own.
///
/// The scripts create them from nothing, one after another: script `n` leads from version `n` to `n + 1`. A released
/// script is never changed. Those for PostgreSQL can be run twice (`IF NOT EXISTS`), so that an administrator can
/// bring tables up to date by running all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Component {
    pub(crate) name: &'static str,
    pub(crate) scripts: &'static [&'static str],
}

impl Component {
    /// The version that this release reads and writes.
    fn version(&self) -> i64 {
        self.scripts.len() as i64
    }

    /// The scripts that lead from version `found` to this release's.
    fn scripts_after(&self, database: &str, found: i64) -> Result<&'static [&'static str], DatabaseError> {
        let known = self.version();
        let newer = || DatabaseError::NewerVersion {
            database: database.to_owned(),
            component: self.name.to_owned(),
            found,
            known,
        };
        usize::try_from(found).ok().and_then(|done| self.scripts.get(done..)).ok_or_else(newer)
    }
}
