//! What databases keep of checkpoints, whatever the database is.
//!
//! A checkpoint is a row with its changed fields in a sealed body. Every so many rows one has an *outline* too: for
//! each field of the state, where its pieces lie, so that reading walks a bounded number of rows. An outline also
//! gathers long tails from many rows. Outlines are derived: they can be made again from the bodies as long as those
//! are there, and pruning replaces pieces that go away by outlines that hold them.
//!
//! - [`RowCodec`]: seals and opens the rows of one namespace of one thread.
//! - [`ReadRows`]: opened rows, and the checkpoints that can be put together from them.
//! - `Outline`: where the pieces of each field lie, as seen from one row.
//! - [`OutlineInterval`]: how many rows there are from one outline to the next, and how many pieces one gathers.
//! - [`Removing`]: rows that go away, and the plan of what has to be written before.
//! - [`Listing`]: the checkpoints of a query, page by page.
//! - [`KnownShapes`]: shapes that the database has, so that they are sent once.
//! - [`RowSummary`]: a row without what is in it, as housekeeping looks at it.

mod body;
mod found;
mod inlined;
mod known_shapes;
mod listing;
mod new_outline;
mod outline;
mod read_rows;
mod removal;

use std::time::{Duration, SystemTime};

use read_rows::Missing;
use superstep::{CheckpointId, TaskId};

pub use body::{NewOutline, NewRow, PendingRow, RowCodec, StoredRow, source_number};
pub use found::{Found, Raw, RawPending};
pub use inlined::inlined;
pub use known_shapes::KnownShapes;
pub use listing::Listing;
#[cfg(feature = "fuzzing")]
pub(crate) use outline::Outline;
pub use read_rows::ReadRows;
pub use removal::{BATCH, Pruning, RemovalPlan, Removing, RowSummary, Space};
#[cfg(feature = "fuzzing")]
pub(crate) use removal::{needed_without, outlines_without};

/// An id as databases keep it: its bytes sort as ids do.
pub type IdBytes = [u8; 16];

/// How often rows get outlines.
#[derive(Debug, Clone, Copy)]
pub struct OutlineInterval {
    /// After so many rows without one.
    pub every: i64,
    /// So many pieces of a field's tail are gathered into one.
    pub many: usize,
    /// The same if they are long: to look one up costs less than to keep it twice.
    pub many_long: usize,
}

impl Default for OutlineInterval {
    fn default() -> Self {
        Self { every: 64, many: 64, many_long: 64 }
    }
}

/// An id as databases keep it.
pub fn id_bytes(id: CheckpointId) -> IdBytes {
    id.as_u128().to_be_bytes()
}

/// The id that a database gave back, if it is one.
pub fn id_from(bytes: &[u8]) -> Result<CheckpointId, String> {
    number_from(bytes).map(CheckpointId::from_u128)
}

/// The id of a task that a database gave back, if it is one.
pub fn task_from(bytes: &[u8]) -> Result<TaskId, String> {
    number_from(bytes).map(TaskId::from_u128)
}

fn number_from(bytes: &[u8]) -> Result<u128, String> {
    let bytes: IdBytes = bytes.try_into().map_err(|_| format!("an id has {} bytes, not 16", bytes.len()))?;
    Ok(u128::from_be_bytes(bytes))
}

/// So many rows of a thread that is copied are in memory at once.
pub const PAGE: usize = 200;

/// A moment in microseconds, as databases keep it.
pub fn micros(moment: SystemTime) -> i64 {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The moment that so many microseconds stand for.
pub fn moment(micros: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros.unsigned_abs())
}
