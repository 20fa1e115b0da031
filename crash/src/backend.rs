//! The databases that survive.

use std::sync::Arc;

use superstep::{Checkpointer, SqliteSaver};

use crate::Result;

pub(crate) async fn open(backend: &str, place: &str) -> Result<Arc<dyn Checkpointer>> {
    match backend {
        "sqlite" => Ok(Arc::new(SqliteSaver::open(place)?)),
        other => Err(format!("no backend `{other}`; there is `sqlite`").into()),
    }
}
