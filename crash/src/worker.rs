//! The process that is killed: runs all threads of a batch to their end, from wherever they are.

use std::path::Path;
use std::sync::Arc;

use superstep::{Checkpointer, CompiledStateGraph, Durability, Error as RunError};

use crate::audit::Audited;
use crate::log::Log;
use crate::workload::{THREADS, Tally, graph, input, thread_name};
use crate::{Result, backend};

pub(crate) async fn run(backend: &str, place: &str, log: &Path, batch: &str) -> Result<()> {
    let log = Arc::new(Log::open(log)?);
    let inner: Arc<dyn Checkpointer> = backend::open(backend, place).await?;
    let app = graph(Audited { inner, log: log.clone() }, Some(log))?;
    let threads = (0..THREADS).map(|number| tokio::spawn(finish(app.clone(), thread_name(batch, number), number)));
    for thread in threads.collect::<Vec<_>>() {
        thread.await??;
    }
    Ok(())
}

/// Gives every thread of a batch its input.
pub(crate) async fn seed(backend: &str, place: &str, batch: &str) -> Result<()> {
    let app = graph(backend::open(backend, place).await?, None)?;
    for number in 0..THREADS {
        app.thread(thread_name(batch, number)).update_as_input(input(number)).await?;
    }
    Ok(())
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
