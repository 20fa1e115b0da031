//! Work on the thread of a task that waits for it.

use tokio::runtime::{Handle, RuntimeFlavor, worker_index};
use tokio::task::block_in_place;

/// Does it here, if nobody is kept waiting by that; or gives it back. Other tasks of a worker go on on another thread. A
/// runtime of a single thread has no other.
pub(super) fn block<R, W>(work: W, here: impl FnOnce(W) -> Result<R, W>) -> Result<R, W> {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) if worker_index().is_some() => block_in_place(|| here(work)),
        // The thread of `block_on` has one task only.
        Ok(RuntimeFlavor::MultiThread) | Err(_) => here(work),
        Ok(_) => Err(work),
    }
}
