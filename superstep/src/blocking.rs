//! Blocking twins, for programs without a runtime.

use std::future::Future;

use crate::error::Error;

/// Runs a future in a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    if tokio::runtime::Handle::try_current().is_ok() {
        return Err(Error::invalid("`blocking` was called inside an async runtime; await the run there instead"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|e| Error::invalid("no runtime could be started").caused_by(e))?;
    runtime.block_on(future)
}
