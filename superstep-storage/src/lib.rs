//! What the databases of [superstep] share: how values are sealed, what rows hold, and what can go wrong.
//!
//! You meet it through `superstep-sqlite` and `superstep-postgres`, which repeat the names at the root of this crate. Its
//! modules are for those who keep checkpoints, items and cached results in another database.
//!
//! # Features
//!
//! | feature | brings |
//! |---|---|
//! | `compression` | `Seal::compress`: smaller values on disk |
//! | `encryption` | `Seal::encrypt`: values on disk that only your keys open |

// The layers: a module uses those above it, and none below it.
pub mod clock;
mod seal;
mod bytes;
pub mod database;
pub mod rows;
pub mod items;
pub mod cached;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;

pub use self::clock::Clock;
pub use self::database::DatabaseError;
#[cfg(feature = "compression")]
pub use self::seal::Compression;
#[cfg(feature = "encryption")]
pub use self::seal::{Key, KeyError, Keys};
pub use self::seal::{Seal, SealError};
