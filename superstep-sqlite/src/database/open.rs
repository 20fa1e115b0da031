//! Opening connections, and telling apart what SQLite says went wrong.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use superstep_storage::DatabaseError;

use super::MEMORY;
use crate::database::InDatabase;
use crate::sql::database as sql;

/// How long to wait for locks of other processes.
const PATIENCE: Duration = Duration::from_secs(5);
const STATEMENTS: usize = 64;

/// The path as it stays valid when the process changes its folder: readers connect later.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, DatabaseError> {
    std::path::absolute(path).map_err(|error| DatabaseError::Open {
        database: path.display().to_string(),
        why: "it is no path; give the path of a file".to_owned(),
        source: Some(Arc::new(error)),
    })
}

/// The connection that writes; creates the file if there is none.
pub(super) fn writer(path: &Path, database: &str) -> Result<Connection, DatabaseError> {
    check_place(path, database)?;
    let connection = connect(path, database, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    // SQLite quietly opens for reading what it may not write.
    if connection.is_readonly("main").in_database(&connection)? {
        return Err(DatabaseError::ReadOnly { database: database.to_owned(), source: None });
    }
    connection.execute_batch(sql::WRITER).in_database(&connection)?;
    keep_a_log(&connection, database)?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn reader(path: &Path, database: &str) -> Result<Connection, DatabaseError> {
    let connection = connect(path, database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.execute_batch(sql::READER).in_database(&connection)?;
    Ok(connection)
}

pub(super) fn memory(database: &str) -> Result<Connection, DatabaseError> {
    let connection = Connection::open_in_memory().map_err(|error| cannot_open(database, error))?;
    prepare(&connection, database)?;
    connection.execute_batch(sql::WRITER).in_database(&connection)?;
    Ok(connection)
}

/// Says what is wrong with a place in words that SQLite does not have.
fn check_place(path: &Path, database: &str) -> Result<(), DatabaseError> {
    let wrong = |why| Err(DatabaseError::Open { database: database.to_owned(), why, source: None });
    if path.is_dir() {
        return wrong("it is a folder; give the path of a file".to_owned());
    }
    match path.parent() {
        Some(folder) if !folder.is_dir() => {
            wrong(format!("the folder `{}` does not exist; create it first", folder.display()))
        }
        _ => Ok(()),
    }
}

fn connect(path: &Path, database: &str, access: OpenFlags) -> Result<Connection, DatabaseError> {
    // Each connection stays on its thread.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| cannot_open(database, error))?;
    prepare(&connection, database)?;
    Ok(connection)
}

fn prepare(connection: &Connection, database: &str) -> Result<(), DatabaseError> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Plans must not depend on bound values: SQLite would plan every join anew for each value.
    let is_stable = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true);
    is_stable.and_then(|_| connection.busy_timeout(PATIENCE)).map_err(|error| cannot_open(database, error))
}

/// Turns the write-ahead log on. While another process does the same, SQLite refuses without waiting.
fn keep_a_log(connection: &Connection, database: &str) -> Result<(), DatabaseError> {
    let start = Instant::now();
    loop {
        let mode = connection.query_row(sql::JOURNAL_MODE, [], |row| row.get::<_, String>(0));
        match mode.in_database(connection) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let why = format!("its journal mode stays `{mode}`; put it on a disk of this machine");
                return Err(DatabaseError::Open { database: database.to_owned(), why, source: None });
            }
            Err(DatabaseError::Busy { .. }) if start.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error),
        }
    }
}

fn cannot_open(database: &str, error: rusqlite::Error) -> DatabaseError {
    let why = "check the permissions of the file and of its folder".to_owned();
    DatabaseError::Open { database: database.to_owned(), why, source: Some(Arc::new(error)) }
}

pub(super) fn cannot_start(database: &str, error: std::io::Error) -> DatabaseError {
    let why = "no thread could be started for it".to_owned();
    DatabaseError::Open { database: database.to_owned(), why, source: Some(Arc::new(error)) }
}

impl<T> InDatabase<T> for rusqlite::Result<T> {
    fn in_database(self, connection: &Connection) -> Result<T, DatabaseError> {
        self.map_err(|error| {
            let path = connection.path().filter(|path| !path.is_empty());
            classify(path.unwrap_or(MEMORY).to_owned(), error)
        })
    }
}

fn classify(database: String, error: rusqlite::Error) -> DatabaseError {
    let code = error.sqlite_error_code();
    let source = Arc::new(error);
    match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DatabaseError::Busy { database, source },
        Some(ErrorCode::DiskFull) => DatabaseError::Full { database, source },
        Some(ErrorCode::ReadOnly) => DatabaseError::ReadOnly { database, source: Some(source) },
        Some(ErrorCode::DatabaseCorrupt) => DatabaseError::Damaged { database, source },
        Some(ErrorCode::NotADatabase) => {
            let why = "the file is no SQLite database; give another path".to_owned();
            DatabaseError::Open { database, why, source: Some(source) }
        }
        _ => DatabaseError::Statement { database, source },
    }
}
