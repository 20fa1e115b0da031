//! SQLite: settings of connections, transactions, and the table of versions.

/// Settings of the connection that writes.
///
/// Each commit appends every page that it touched to the log as a whole, so small pages make small commits; of the rows
/// that are typical here (1 to 3 KB) one to four fit into a page. The size must be set before the file has its first
/// page. The log is emptied into the file when it has grown to 4 MB, and then written over from its start: that takes
/// half the time of making it longer, which is a commit of its own for the file system. It is cut back after a large
/// transaction.
pub(crate) const WRITER: &str = "
    PRAGMA page_size = 4096;
    PRAGMA foreign_keys = OFF;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -8192;
    PRAGMA wal_autocheckpoint = 1000;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA synchronous = FULL;
";

/// Settings of a connection that reads.
pub(crate) const READER: &str = "
    PRAGMA query_only = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -4096;
";

pub(crate) const JOURNAL_MODE: &str = "PRAGMA journal_mode = WAL";
pub(crate) const EMPTY_LOG: &str = "PRAGMA wal_checkpoint(PASSIVE)";

// Not for cached statements: they take effect when they are prepared, not when they are run.
pub(crate) const SYNC_EACH_COMMIT: &str = "PRAGMA synchronous = FULL";
pub(crate) const SYNC_LATER: &str = "PRAGMA synchronous = NORMAL";

pub(crate) const BEGIN_WRITE: &str = "BEGIN IMMEDIATE";
pub(crate) const BEGIN_READ: &str = "BEGIN DEFERRED";
pub(crate) const COMMIT: &str = "COMMIT";
pub(crate) const ROLLBACK: &str = "ROLLBACK";

pub(crate) const BEGIN_JOB: &str = "SAVEPOINT job";
pub(crate) const KEEP_JOB: &str = "RELEASE job";
pub(crate) const UNDO_JOB: &str = "ROLLBACK TO job";

pub(crate) const VERSIONS: &str = "
    CREATE TABLE IF NOT EXISTS superstep_versions (
        component TEXT NOT NULL PRIMARY KEY,
        version INTEGER NOT NULL
    ) WITHOUT ROWID
";
pub(crate) const HAS_VERSIONS: &str =
    "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'superstep_versions')";
pub(crate) const VERSION: &str = "SELECT version FROM superstep_versions WHERE component = ?1";
pub(crate) const SET_VERSION: &str = "
    INSERT INTO superstep_versions (component, version) VALUES (?1, ?2)
    ON CONFLICT (component) DO UPDATE SET version = excluded.version
";
