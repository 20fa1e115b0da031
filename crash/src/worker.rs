//! The process that is killed: runs all threads of a batch to their end, from wherever they are.

use std::path::Path;
use std::sync::Arc;

use superstep::{CompiledStateGraph, Durability, Error as RunError, EventData, GoOn, Mode, Thread};
use superstep_sqlite::DatabaseError;

use crate::Result;
use crate::audit::{Audit, Audited};
use crate::backend::Savers;
use crate::workload::{LAST_OF_ROUND, THREADS, Tally, durability, graph, input, thread_name};

/// The exit code of a worker that others kept from the database for too long.
pub(crate) const BUSY: u8 = 75;

pub(crate) async fn run(backend: &str, place: &str, log: &Path, batch: &str) -> Result<()> {
    let audit = Arc::new(Audit::open(log)?);
    let savers = Savers::open(backend, place).await?;
    let mut threads = Vec::with_capacity(THREADS);
    for number in 0..THREADS {
        let saver = Audited { inner: savers.of_thread(number), audit: audit.clone() };
        let app = graph(saver, Some(audit.clone()))?;
        threads.push(tokio::spawn(finish(app, thread_name(batch, number), number, audit.clone())));
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
async fn finish(
    app: CompiledStateGraph<Tally>,
    thread: String,
    number: usize,
    audit: Arc<Audit>,
) -> Result<(), RunError> {
    let thread = app.thread(thread);
    while !thread.state().await?.is_done() {
        match watch(&thread, durability(number), &audit).await {
            Err(error) if error.is_fenced() => return Ok(()),
            other => other?,
        }
    }
    Ok(())
}

/// Runs a thread and notes what is shown as soon as it is promised: at once with `sync`, else when the run has ended well.
async fn watch(thread: &Thread<Tally>, durability: Durability, audit: &Audit) -> Result<(), RunError> {
    let modes = [Mode::Values, Mode::Updates, Mode::Tasks, Mode::Checkpoints, Mode::Debug];
    let mut run = thread.stream(GoOn).durability(durability).modes(modes);
    if durability == Durability::Exit {
        run = run.interrupt_after([LAST_OF_ROUND]);
    }
    let (mut stream, mut later) = (run.start(), Vec::new());
    while let Some(event) = stream.next().await {
        let data = event?.data;
        match durability {
            Durability::Sync => audit.promised(audit.shown(thread.name(), &data).as_slice()),
            // Only the last checkpoint of such a run is ever saved.
            Durability::Exit if is_checkpoint(&data) => {}
            _ => later.extend(audit.shown(thread.name(), &data)),
        }
    }
    audit.promised(&later);
    Ok(())
}

fn is_checkpoint(event: &EventData) -> bool {
    match event {
        EventData::Debug(debug) => is_checkpoint(&debug.event),
        event => matches!(event, EventData::Checkpoint(_)),
    }
}
