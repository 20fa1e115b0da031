//! What can go wrong with a database, told apart by what one can do about it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use superstep::{CacheError, CheckpointError, StoreError};

/// The driver's own error. Several waiting callers may get the same one.
type Cause = Arc<dyn Error + Send + Sync>;

/// What went wrong with a database.
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// use superstep_sqlite::SqliteDatabase;
/// use superstep_storage::DatabaseError;
///
/// let error = SqliteDatabase::open("/no/such/folder/agents.db").unwrap_err();
/// assert!(matches!(error, DatabaseError::Open { .. }));
/// assert_eq!(
///     error.to_string(),
///     "cannot open database `/no/such/folder/agents.db`: the folder `/no/such/folder` does not exist; create it first"
/// );
/// # }
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// It could not be opened.
    #[error("cannot open database `{database}`: {why}")]
    Open {
        /// The path or address, without secrets.
        database: String,
        /// Why, and the way out.
        why: String,
        /// What the driver said.
        source: Option<Cause>,
    },
    /// The file cannot be written to.
    #[error("database `{database}` cannot be written to; check the permissions of the file and of its folder")]
    ReadOnly {
        /// The path or address.
        database: String,
        /// What the driver said.
        source: Option<Cause>,
    },
    /// Its file was moved or removed while it was open.
    #[error("the file of database `{database}` was moved or removed while it was open; put it back, or open it anew")]
    Moved {
        /// The path.
        database: String,
        /// What the system said.
        source: Option<Cause>,
    },
    /// The disk is full.
    #[error("database `{database}` has no space left; free some on its disk")]
    Full {
        /// The path or address.
        database: String,
        /// What the driver said.
        source: Cause,
    },
    /// Others held its locks, or all connections to it, for too long. It may work when tried again.
    #[error("database `{database}` was kept busy by others for too long; try again")]
    Busy {
        /// The path or address.
        database: String,
        /// What the driver said.
        source: Cause,
    },
    /// Its contents are damaged.
    #[error("database `{database}` is damaged; restore it from a backup")]
    Damaged {
        /// The path or address.
        database: String,
        /// What the driver said.
        source: Cause,
    },
    /// It was written by a newer release.
    #[error(
        "the tables of `{component}` in database `{database}` have version {found}, this release knows up to {known}; update superstep"
    )]
    NewerVersion {
        /// The path or address.
        database: String,
        /// What the tables are for.
        component: String,
        /// The version found.
        found: i64,
        /// The newest version that this release knows.
        known: i64,
    },
    /// Its tables are missing or of an older release, and superstep was told not to change them.
    #[error(
        "the tables of `{component}` in database `{database}` have version {found}, this release needs {known}; run the statements that `PostgresDatabase::ddl` gives, or connect with `setup(true)`"
    )]
    OlderVersion {
        /// The path or address.
        database: String,
        /// What the tables are for.
        component: String,
        /// The version found; 0 if there are none.
        found: i64,
        /// The version that this release needs.
        known: i64,
    },
    /// The connection was lost, or could not be made. It may work when tried again.
    #[error("the connection to database `{database}` was lost or could not be made; try again")]
    Connection {
        /// The path or address.
        database: String,
        /// What the driver said.
        source: Cause,
    },
    /// It said nothing for too long: it is stopped, or the network lost the connection without telling. What became of the
    /// statement is not known; it may work when tried again.
    #[error(
        "database `{database}` did not answer within {limit:?}; try again, or allow more with `PostgresBuilder::answer_timeout`"
    )]
    Silent {
        /// The path or address.
        database: String,
        /// How long it had.
        limit: Duration,
    },
    /// It was closed.
    #[error("database `{database}` is closed; open it again")]
    Closed {
        /// The path or address.
        database: String,
    },
    /// Other work in the same transaction failed and took this work with it. It may work when tried again.
    #[error("work on database `{database}` was taken back, because other work in its transaction failed; try again")]
    RolledBack {
        /// The path or address.
        database: String,
    },
    /// Code that used the database panicked; what it did there was taken back.
    #[error("work on database `{database}` panicked: {message}")]
    Panicked {
        /// The path or address.
        database: String,
        /// The message of the panic.
        message: String,
    },
    /// A statement failed.
    #[error("a statement failed on database `{database}`")]
    Statement {
        /// The path or address.
        database: String,
        /// What the driver said.
        source: Cause,
    },
}

impl DatabaseError {
    /// Whether the same may work when it is tried again, with nothing changed by hand.
    ///
    /// ```
    /// use superstep_storage::DatabaseError;
    /// let closed = DatabaseError::Closed { database: "agents.db".to_owned() };
    /// assert!(!closed.is_transient());
    /// ```
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Connection { .. } | Self::Silent { .. } | Self::RolledBack { .. })
    }
}

impl fmt::Debug for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        superstep::explain(self, f)
    }
}

impl DatabaseError {
    /// Whether the same work may succeed if it is tried again, as the database is: not if it is damaged, closed, or of
    /// another release.
    ///
    /// ```
    /// use superstep::CheckpointError;
    /// use superstep_storage::DatabaseError;
    /// let (closed, undone) = ["a.db", "b.db"].map(str::to_owned).into();
    /// let closed = DatabaseError::Closed { database: closed };
    /// assert!(!closed.is_retryable() && !CheckpointError::from(closed).is_retryable());
    /// let undone = DatabaseError::RolledBack { database: undone };
    /// assert!(undone.is_retryable() && CheckpointError::from(undone).is_retryable());
    /// ```
    pub fn is_retryable(&self) -> bool {
        !matches!(
            self,
            Self::Damaged { .. } | Self::NewerVersion { .. } | Self::OlderVersion { .. } | Self::Closed { .. }
        )
    }
}

impl From<DatabaseError> for CheckpointError {
    fn from(error: DatabaseError) -> Self {
        let is_retryable = error.is_retryable();
        Self::backend(error).retryable(is_retryable)
    }
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        Self::backend(error)
    }
}

impl From<DatabaseError> for CacheError {
    fn from(error: DatabaseError) -> Self {
        Self::backend(error)
    }
}
