//! The process that is killed: runs all threads of a batch to their end, from wherever they are.

use std::path::Path;
use std::sync::Arc;

use superstep::{CompiledStateGraph, DatabaseError, Durability, Error as RunError};

use crate::Result;
use crate::audit::{Audit, Audited};
use crate::backend::Savers;
use crate::workload::{THREADS, Tally, graph, input, thread_name};

/// The exit code of a worker that others kept from the database for too long.
pub(crate) const BUSY: u8 = 75;

pub(crate) async fn run(backend: &str, place: &str, log: &Path, batch: &str) -> Result<()> {
    let audit = Arc::new(Audit::open(log)?);
    let savers = Savers::open(backend, place).await?;
    let mut threads = Vec::with_capacity(THREADS);
    for number in 0..THREADS {
        let saver = Audited { inner: savers.of_thread(number), audit: audit.clone() };
        let app = graph(saver, Some(audit.clone()))?;
        threads.push(tokio::spawn(finish(app, thread_name(batch, number), number)));
    }
    for thread in threads {
        thread.await??;
    }
    Ok(())
}

/// Gives every thread of a batch its input.
pub(crate) async fn seed(backend: &str, place: &str, batch: &str) -> Result<()> {
    let savers = Savers::open(backend, place).await?;
    for number in 0..THREADS {
        let app = graph(savers.of_thread(number), None)?;
        app.thread(thread_name(batch, number)).update_as_input(input(number)).await?;
    }
    Ok(())
}

/// Whether others held the database's locks for too long.
pub(crate) fn is_busy(error: &crate::Error) -> bool {
    let first: &(dyn std::error::Error + 'static) = &**error;
    std::iter::successors(Some(first), |error| error.source())
        .any(|error| matches!(error.downcast_ref(), Some(DatabaseError::Busy { .. })))
}

/// Runs one thread to its end. Whoever took it over will do so, if that happens.
async fn finish(app: CompiledStateGraph<Tally>, thread: String, number: usize) -> Result<(), RunError> {
    let durability = if number.is_multiple_of(2) { Durability::Sync } else { Durability::Async };
    let thread = app.thread(thread);
    if thread.state().await?.is_done() {
        return Ok(());
    }
    match thread.resume().durability(durability).await {
        Err(error) if error.is_fenced() => Ok(()),
        other => other.map(drop),
    }
}
