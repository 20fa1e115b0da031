//! The databases that survive.

use std::sync::Arc;

use superstep::{Checkpointer, PostgresDatabase, PostgresSaver, SqliteSaver};

use crate::Result;

/// Opens the database at a place: a file, or a server's address and a schema.
pub(crate) async fn open(backend: &str, place: &str) -> Result<Arc<dyn Checkpointer>> {
    match (backend, place.split_once(' ')) {
        ("sqlite", _) => Ok(Arc::new(SqliteSaver::open(place)?)),
        ("postgres", Some((address, schema))) => {
            let database = PostgresDatabase::builder(address).schema(schema).connect().await?;
            Ok(Arc::new(PostgresSaver::new(&database)))
        }
        (other, _) => Err(format!("no backend `{other}`; there are `sqlite` and `postgres`").into()),
    }
}
