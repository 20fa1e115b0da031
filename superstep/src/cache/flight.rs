//! Single flight: of several tasks that want the same result at the same time, one computes it.
//!
//! A key is in the table exactly as long as its flight lives, and flights end when they are dropped: by the task that
//! has put its result into the cache, or by one that failed or was cancelled. Whoever waits looks into the cache then.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Cache, CacheKey};

static OPEN: LazyLock<Mutex<HashMap<Id, watch::Receiver<()>>>> = LazyLock::new(Mutex::default);

/// A key of a cache.
type Id = (usize, CacheKey);

/// What a task that wants a result is to do.
pub(crate) enum Turn {
    /// Look into the cache, and compute what is not there.
    First(Flight),
    /// Wait for another that is at it.
    Waits(Landing),
}

/// Asks whose turn it is. The cache is looked into after that: a result that came before is not missed.
pub(crate) fn take_off(cache: &dyn Cache, key: &CacheKey) -> Turn {
    let id = (cache.identity(), key.clone());
    let mut open = lock();
    if let Some(landed) = open.get(&id) {
        return Turn::Waits(Landing(landed.clone()));
    }
    let (landing, landed) = watch::channel(());
    open.insert(id.clone(), landed);
    Turn::First(Flight { id, _landing: landing })
}

/// The right to compute a result while others wait.
#[must_use = "others wait until it is dropped"]
pub(crate) struct Flight {
    id: Id,
    /// Dropped after the flight is out of the table, which wakes those who wait.
    _landing: watch::Sender<()>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        lock().remove(&self.id);
    }
}

/// The end of another's flight.
pub(crate) struct Landing(watch::Receiver<()>);

impl Landing {
    pub(crate) async fn wait(mut self) {
        // Nothing is ever sent: the sender's end is the news.
        let _ended = self.0.changed().await;
    }
}

fn lock() -> MutexGuard<'static, HashMap<Id, watch::Receiver<()>>> {
    // The table is whole between any two calls on it.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
