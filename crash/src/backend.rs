//! The databases that survive.

use std::sync::Arc;

use superstep::Checkpointer;
use superstep_postgres::{PostgresDatabase, PostgresSaver};
use superstep_sqlite::{SqliteDatabase, SqliteSaver};

use crate::Result;

/// Two checkpointers on one database.
pub(crate) struct Savers {
    pub(crate) usual: Arc<dyn Checkpointer>,
    /// Makes outlines so often that short threads have some.
    outlining: Arc<dyn Checkpointer>,
}

impl Savers {
    /// Opens the database at a place: a file, or a server's address and a schema.
    pub(crate) async fn open(backend: &str, place: &str) -> Result<Self> {
        match (backend, place.split_once(' ')) {
            ("sqlite", _) => {
                let saver = SqliteSaver::new(&SqliteDatabase::open(place)?);
                Ok(Self { usual: Arc::new(saver.clone()), outlining: Arc::new(saver.outlines(4, 4)) })
            }
            ("postgres", Some((address, schema))) => {
                let saver = PostgresSaver::new(&PostgresDatabase::builder(address).schema(schema).connect().await?);
                Ok(Self { usual: Arc::new(saver.clone()), outlining: Arc::new(saver.outlines(4, 4)) })
            }
            (other, _) => Err(format!("no backend `{other}`; there are `sqlite` and `postgres`").into()),
        }
    }

    /// The checkpointer of a thread of a batch: half of the even and half of the odd ones get many outlines.
    pub(crate) fn of_thread(&self, number: usize) -> Arc<dyn Checkpointer> {
        if number % 4 < 2 { self.outlining.clone() } else { self.usual.clone() }
    }
}
