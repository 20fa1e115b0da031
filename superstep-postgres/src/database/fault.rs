//! Telling apart what PostgreSQL and the pool say went wrong.

use std::error::Error as _;
use std::io;
use std::sync::Arc;

use deadpool_postgres::{PoolError, TimeoutType};
use superstep_storage::DatabaseError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::{Fault, PostgresDatabase};
use crate::database::InDatabase;

impl<T> InDatabase<T> for Result<T, Error> {
    fn in_database(self, database: &PostgresDatabase) -> Result<T, DatabaseError> {
        self.map_err(|error| of_statement(database.0.name.clone(), error))
    }
}

impl<T> InDatabase<T> for Result<T, Fault> {
    fn in_database(self, database: &PostgresDatabase) -> Result<T, DatabaseError> {
        match self {
            Err(Fault::Silent(limit)) => Err(DatabaseError::Silent { database: database.0.name.clone(), limit }),
            Err(Fault::Told(error)) => Err(error).in_database(database),
            Ok(done) => Ok(done),
        }
    }
}

/// Why there is no connection.
pub(super) fn of_pool(place: &PostgresDatabase, error: PoolError) -> DatabaseError {
    let database = place.0.name.clone();
    match error {
        PoolError::Timeout(TimeoutType::Create) => DatabaseError::Silent { database, limit: place.0.patience },
        PoolError::Closed => DatabaseError::Closed { database },
        PoolError::Timeout(TimeoutType::Wait) => DatabaseError::Busy { database, source: Arc::new(error) },
        PoolError::Backend(error) => of_connecting(database, error),
        error => DatabaseError::Connection { database, source: Arc::new(error) },
    }
}

fn of_connecting(database: String, error: Error) -> DatabaseError {
    let refused = |why: &str| why.to_owned();
    let why = match error.code() {
        Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            refused("it does not accept this user or password; check the address")
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => refused("the server has no database of this name; create it first"),
        Some(_) => return of_statement(database, error),
        None if is_of_network(&error) => return DatabaseError::Connection { database, source: Arc::new(error) },
        None => refused("no connection can be agreed on; check the user, `sslmode` and certificates"),
    };
    DatabaseError::Open { database, why, source: Some(Arc::new(error)) }
}

fn of_statement(database: String, error: Error) -> DatabaseError {
    let kind = error.code().cloned();
    let source = Arc::new(error);
    let Some(code) = kind else {
        return if source.is_closed() || is_of_network(&source) {
            DatabaseError::Connection { database, source }
        } else {
            DatabaseError::Statement { database, source }
        };
    };
    match code.code() {
        code if code.starts_with("08") => DatabaseError::Connection { database, source },
        // Shut down, crashed, not up yet, too many connections, ended because nobody went on.
        "57P01" | "57P02" | "57P03" | "53300" | "25P03" => DatabaseError::Connection { database, source },
        "53100" => DatabaseError::Full { database, source },
        // Serialization failure, deadlock, lock not available.
        "40001" | "40P01" | "55P03" => DatabaseError::Busy { database, source },
        "25006" => DatabaseError::ReadOnly { database, source: Some(source) },
        "XX001" | "XX002" => DatabaseError::Damaged { database, source },
        _ => DatabaseError::Statement { database, source },
    }
}

/// Whether an error that the server did not send comes from below: refused, reset, timed out, no such host.
fn is_of_network(error: &Error) -> bool {
    let kind = error.source().and_then(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind);
    kind.is_some_and(|kind| kind != io::ErrorKind::InvalidData)
}
