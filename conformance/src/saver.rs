//! Where the checkpoints of a scenario are kept.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use superstep::{Checkpointer, MemorySaver};
use superstep_postgres::{PostgresDatabase, PostgresSaver};
use superstep_sqlite::DatabaseError;
use superstep_sqlite::{SqliteDatabase, SqliteSaver};

/// The kinds of checkpointer that a scenario can be run with.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Kind {
    #[default]
    Memory,
    /// A file of its own.
    Sqlite,
    /// A schema of its own on the server that `SUPERSTEP_TEST_POSTGRES` names.
    Postgres,
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "memory" => Ok(Self::Memory),
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            other => Err(format!("checkpointer `{other}` is not known here; there are `memory`, `sqlite`, `postgres`")),
        }
    }
}

/// A place for checkpoints that can be closed and opened again.
pub(crate) enum Keeper {
    Memory(MemorySaver),
    Sqlite(PathBuf, SqliteDatabase),
    Postgres(String, PostgresDatabase),
}

impl Keeper {
    /// An empty place.
    pub(crate) async fn new(kind: Kind) -> Result<Self, DatabaseError> {
        match kind {
            Kind::Memory => Ok(Self::Memory(MemorySaver::new())),
            Kind::Sqlite => {
                let file = std::env::temp_dir().join(format!("superstep-scenario-{}.db", std::process::id()));
                let database = SqliteDatabase::open(&file)?;
                Ok(Self::Sqlite(file, database))
            }
            Kind::Postgres => {
                let address = std::env::var("SUPERSTEP_TEST_POSTGRES").unwrap_or_default();
                let database = connect(&address).await?;
                Ok(Self::Postgres(address, database))
            }
        }
    }

    pub(crate) fn saver(&self) -> Arc<dyn Checkpointer> {
        match self {
            Self::Memory(saver) => Arc::new(saver.clone()),
            Self::Sqlite(_, database) => Arc::new(SqliteSaver::new(database)),
            Self::Postgres(_, database) => Arc::new(PostgresSaver::new(database)),
        }
    }

    /// Closes the database and opens it again: only what is in it is left.
    pub(crate) async fn reopen(self) -> Result<Self, DatabaseError> {
        match self {
            Self::Memory(saver) => Ok(Self::Memory(saver)),
            Self::Sqlite(file, database) => {
                database.close().await?;
                let database = SqliteDatabase::open(&file)?;
                Ok(Self::Sqlite(file, database))
            }
            Self::Postgres(address, database) => {
                database.close();
                let database = connect(&address).await?;
                Ok(Self::Postgres(address, database))
            }
        }
    }

    /// Closes the database and removes its file. A schema goes with its server.
    pub(crate) async fn remove(self) -> Result<(), DatabaseError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Sqlite(file, database) => {
                database.close().await?;
                // The file is in the folder for temporary files: what is left there is no failure.
                let _ = std::fs::remove_file(file);
                Ok(())
            }
            Self::Postgres(_, database) => {
                database.close();
                Ok(())
            }
        }
    }
}

async fn connect(address: &str) -> Result<PostgresDatabase, DatabaseError> {
    PostgresDatabase::builder(address).schema(format!("scenario_{}", std::process::id())).connect().await
}
