//! The right to write to a thread: whoever claims it last has it.

use std::fmt;

use super::SavedCheckpoint;
use crate::id::CheckpointId;

/// Numbers the claims of a thread: only the latest claimant may write.
///
/// ```
/// use superstep::Epoch;
/// assert!(Epoch::from_u64(1) < Epoch::from_u64(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch from its number, as a checkpointer keeps it.
    pub fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The epoch as a number.
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a claim of a thread gives.
///
/// ```
/// # fn show(claim: superstep::Claim) {
/// println!("epoch {}, goes on from {:?}", claim.epoch, claim.found.map(|saved| saved.record().id()));
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Claim {
    /// To be shown with every write.
    pub epoch: Epoch,
    /// The latest checkpoint of the namespace.
    pub head: Option<CheckpointId>,
    /// The checkpoint that was asked for.
    pub found: Option<SavedCheckpoint>,
}

impl Claim {
    /// A claim.
    pub fn new(epoch: Epoch, head: Option<CheckpointId>, found: Option<SavedCheckpoint>) -> Self {
        Self { epoch, head, found }
    }
}

/// The right to write to a namespace of a thread, as long as nobody else claims the thread.
///
/// ```
/// use superstep::{Checkpointer, Lease, MemorySaver};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), superstep::CheckpointError> {
/// let claim = MemorySaver::new().claim("t", "", None).await?;
/// let lease = Lease::new("t", "", claim.epoch);
/// assert_eq!(lease.thread, "t");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Lease<'a> {
    /// The thread.
    pub thread: &'a str,
    /// The namespace; the root's is empty.
    pub namespace: &'a str,
    /// From the claim.
    pub epoch: Epoch,
    /// Whether the writer goes on only when it is saved: then a checkpointer may as well save on the writer's thread.
    pub is_awaited: bool,
}

impl<'a> Lease<'a> {
    /// The right that a claim gave.
    pub fn new(thread: &'a str, namespace: &'a str, epoch: Epoch) -> Self {
        Self { thread, namespace, epoch, is_awaited: false }
    }

    /// Whether the writer goes on only when it is saved.
    #[must_use]
    pub fn awaited(self, is_awaited: bool) -> Self {
        Self { is_awaited, ..self }
    }
}
