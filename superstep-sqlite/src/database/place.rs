//! The file of an open database.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use superstep_storage::DatabaseError;

/// Where a database is, and which file that was when it was opened.
///
/// With a log, SQLite goes on writing to a file that was moved or removed, and what it has saved is nowhere.
pub(super) struct Place {
    path: PathBuf,
    file: Identity,
}

impl Place {
    pub(super) fn of(path: &Path, database: &str) -> Result<Self, DatabaseError> {
        let found = fs::metadata(path).map_err(|error| DatabaseError::Open {
            database: database.to_owned(),
            why: "its file was removed at once; open it again".to_owned(),
            source: Some(Arc::new(error)),
        })?;
        Ok(Self { path: path.to_owned(), file: identity(&found) })
    }

    /// Fails if the file is not where it was.
    pub(super) fn check(&self, database: &str) -> Result<(), DatabaseError> {
        match fs::metadata(&self.path) {
            Ok(found) if identity(&found) == self.file => Ok(()),
            other => Err(DatabaseError::Moved {
                database: database.to_owned(),
                source: other.err().map(|error| Arc::new(error) as _),
            }),
        }
    }
}

#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(file: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino())
}

/// Where files cannot be told apart, an open one cannot be removed either.
#[cfg(not(unix))]
type Identity = bool;

#[cfg(not(unix))]
fn identity(file: &Metadata) -> Identity {
    file.is_file()
}
