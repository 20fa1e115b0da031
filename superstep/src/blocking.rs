//! Blocking twins, for programs without a runtime.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use crate::error::Error;

/// Runs a future in a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    if in_async_code() {
        return Err(Error::invalid(
            "`blocking` was called inside an async runtime; await the run there, or call it in `tokio::task::spawn_blocking`",
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|e| Error::invalid("no runtime could be started").caused_by(e))?;
    runtime.block_on(future)
}

/// Whether a runtime is polling on this thread, where to block would stop others.
///
/// Threads of `spawn_blocking` and of `block_in_place` know a runtime too, but only what a runtime polls has a budget
/// that ends. It ends here, so the caller must turn back.
fn in_async_code() -> bool {
    /// More than tokio gives to one poll.
    const MORE_THAN_A_BUDGET: usize = 1000;
    tokio::runtime::Handle::try_current().is_ok() && (0..MORE_THAN_A_BUDGET).any(|_| budget_is_spent())
}

fn budget_is_spent() -> bool {
    let unit = pin!(tokio::task::coop::consume_budget());
    unit.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}
