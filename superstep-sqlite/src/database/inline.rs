//! Work on the thread of a task that waits for it.

use tokio::runtime::{Handle, RuntimeFlavor, worker_index};
use tokio::task::block_in_place;

/// Does it on this thread, if nobody is kept waiting by that; or gives it back. Other tasks of a worker continue on another
/// thread. A runtime of a single thread has no other.
pub(super) fn run<R, W>(work: W, inline: impl FnOnce(W) -> Result<R, W>) -> Result<R, W> {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) if worker_index().is_some() => block_in_place(|| inline(work)),
        // The thread of `block_on` has one task only.
        Ok(RuntimeFlavor::MultiThread) | Err(_) => inline(work),
        Ok(_) => Err(work),
    }
}
