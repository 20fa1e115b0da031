//! What checkpointers have in common, for those who write one.
//!
//! Whether something may be saved is decided the same way everywhere: a checkpointer finds the [`Facts`] while nobody else
//! can change them, and does what they decide in the same transaction.
//!
//! ```
//! use superstep::checkpoint::backend::{Decision, Facts, Successor};
//! use superstep::{CheckpointId, Epoch, Lease};
//!
//! # fn main() -> Result<(), superstep::CheckpointError> {
//! let [first, second] = [1, 2].map(CheckpointId::from_u128);
//! let lease = Lease::new("t", "", Epoch::from_u64(7));
//! lease.check(Some(Epoch::from_u64(7)))?;
//!
//! let facts = Facts { head: Some(first), has_base: true };
//! let next = Successor { id: second, base: Some(first), head: Some(first) };
//! assert_eq!(facts.decide_put(lease, next)?, Decision::Save);
//!
//! let late = Successor { head: None, ..next };
//! assert!(facts.decide_put(lease, late).is_err_and(|error| error.is_fenced()));
//! # Ok(())
//! # }
//! ```

pub use super::check_name;
pub use super::decide::{Decision, Facts, Successor};
pub use super::prune::Kept;
