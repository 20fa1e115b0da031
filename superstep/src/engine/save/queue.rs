//! Saves that go on beside a run.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::task::{Context as Poller, Poll};

use tokio::task::{JoinError, JoinHandle};

use super::save_panicked;
use crate::call::lock;
use crate::checkpoint::CheckpointError;
use crate::wall::Panicked;

/// Saves go one after another, in order. What is done at once is done in place; else it goes on beside the run, or the run
/// waits for it. The next one waits too, unless the checkpointer keeps the order by itself.
#[derive(Default)]
pub(super) struct SaveQueue {
    /// The saves that are going on, in order; and how many they are.
    going: Mutex<VecDeque<Going>>,
    under_way: AtomicUsize,
    /// Who waits for them or is about to save, one after another.
    turns: tokio::sync::Mutex<()>,
    /// The first failure. Nothing is saved after it, so that no step is missing in between.
    failed: OnceLock<CheckpointError>,
}

/// A save that is going on beside the run, to its end even if the run is dropped.
type Going = JoinHandle<Result<(), CheckpointError>>;

/// The right to save next.
pub(super) type Turn<'a> = tokio::sync::MutexGuard<'a, ()>;

impl SaveQueue {
    pub(super) async fn turn(&self) -> Turn<'_> {
        self.turns.lock().await
    }

    /// How many saves are going on.
    pub(super) fn len(&self) -> usize {
        self.under_way.load(Ordering::Acquire)
    }

    pub(super) fn add(&self, save: Going) {
        let mut going = lock(&self.going);
        going.push_back(save);
        self.under_way.store(going.len(), Ordering::Release);
    }

    /// Waits for the saves that are going on. Whoever is dropped while waiting leaves it to the next.
    pub(super) async fn settle(&self) -> Result<(), CheckpointError> {
        let ended = std::future::poll_fn(|cx| {
            let mut going = lock(&self.going);
            let all = self.take_ended(&mut going, cx);
            if all.is_ok() && !going.is_empty() { Poll::Pending } else { Poll::Ready(all) }
        });
        ended.await?;
        self.check()
    }

    /// Takes out the saves that have ended, and gives the first error. Each gives its result once: the end of the run
    /// must not ask for it again.
    fn take_ended(&self, going: &mut VecDeque<Going>, cx: &mut Poller<'_>) -> Result<(), CheckpointError> {
        while let Some(first) = going.front_mut() {
            let Poll::Ready(ended) = Pin::new(first).poll(cx).map(joined) else { return Ok(()) };
            going.pop_front();
            self.under_way.store(going.len(), Ordering::Release);
            self.note(ended)?;
        }
        Ok(())
    }

    pub(super) fn note(&self, result: Result<(), CheckpointError>) -> Result<(), CheckpointError> {
        if let Err(error) = &result {
            self.failed.get_or_init(|| error.clone());
        }
        result
    }

    pub(super) fn check(&self) -> Result<(), CheckpointError> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }
}

fn joined(ended: Result<Result<(), CheckpointError>, JoinError>) -> Result<(), CheckpointError> {
    ended.unwrap_or_else(|lost| match lost.try_into_panic() {
        Ok(panic) => Err(save_panicked(&Panicked::of(panic))),
        Err(lost) => Err(CheckpointError::backend(lost)),
    })
}
