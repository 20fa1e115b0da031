//! Whether something may be saved: one answer for all checkpointers.

use crate::checkpoint::{CheckpointError, CheckpointRecord, Epoch, Lease};
use crate::id::CheckpointId;

/// What there is in the namespace that someone writes to. A backend finds it while nobody else can change it, and does in
/// the same transaction what is decided.
///
/// ```
/// use superstep::checkpoint::backend::{Decision, Facts};
/// use superstep::{CheckpointId, CheckpointRecord, Epoch, Lease, Source};
/// let (first, second) = (CheckpointId::from_u128(1 << 64), CheckpointId::from_u128(2 << 64));
/// let lease = Lease::new("t", "", Epoch::from_u64(7));
/// lease.check(Some(Epoch::from_u64(7)))?;
/// let facts = Facts { head: Some(first), has_base: true };
/// let next = CheckpointRecord::new(second, Source::Loop, 1).with_base(Some(first)).with_head(Some(first));
/// assert_eq!(facts.decide_put(lease, (&next).into())?, Decision::Save);
/// let late = CheckpointRecord::new(second, Source::Loop, 1);
/// assert!(facts.decide_put(lease, (&late).into()).unwrap_err().is_fenced());
/// # Ok::<(), superstep::CheckpointError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The latest checkpoint.
    pub head: Option<CheckpointId>,
    /// Whether the checkpoint is there that is built on, or written under.
    pub has_base: bool,
}

/// Where a checkpoint wants to be.
///
/// ```
/// use superstep::checkpoint::backend::Successor;
/// use superstep::{CheckpointId, CheckpointRecord, Source};
/// let id = CheckpointId::from_u128(1 << 64);
/// assert_eq!(Successor::from(&CheckpointRecord::new(id, Source::Input, -1)).id, id);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Successor {
    /// Its id.
    pub id: CheckpointId,
    /// The checkpoint that it builds on.
    pub base: Option<CheckpointId>,
    /// Which one its maker takes for the latest.
    pub head: Option<CheckpointId>,
}

/// What becomes of a checkpoint that is not refused.
///
/// ```
/// use superstep::checkpoint::backend::Decision;
/// assert_ne!(Decision::Save, Decision::Known);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It becomes the latest.
    Save,
    /// It is the latest already: whoever saved it did not hear the answer.
    Known,
}

impl From<&CheckpointRecord> for Successor {
    fn from(record: &CheckpointRecord) -> Self {
        Self { id: record.id(), base: record.base(), head: record.head() }
    }
}

impl Lease<'_> {
    /// Refuses whoever does not hold the thread, whose latest claim gave this epoch; none if there is no such thread.
    ///
    /// # Errors
    /// [`Fenced`](crate::CheckpointErrorKind::Fenced) if someone else claimed the thread.
    pub fn check(&self, latest: Option<Epoch>) -> Result<(), CheckpointError> {
        if latest == Some(self.epoch) { Ok(()) } else { Err(CheckpointError::fenced(self.thread, self.epoch, latest)) }
    }
}

impl Facts {
    /// Whether whoever [holds the thread](Lease::check) may save a checkpoint.
    ///
    /// # Errors
    /// If the maker was overtaken, or builds on a checkpoint that is not there.
    pub fn decide_put(&self, lease: Lease<'_>, next: Successor) -> Result<Decision, CheckpointError> {
        if self.head == Some(next.id) {
            return Ok(Decision::Known);
        }
        if self.head != next.head || self.head > Some(next.id) {
            return Err(CheckpointError::overtaken(lease.thread, lease.namespace, next.head, self.head));
        }
        if next.base.is_some() && !self.has_base {
            return Err(CheckpointError::refused(format!("checkpoint {} builds on one that is not there", next.id)));
        }
        Ok(Decision::Save)
    }

    /// Whether whoever [holds the thread](Lease::check) may save what a task wrote under a checkpoint.
    ///
    /// # Errors
    /// If the checkpoint is not there.
    pub fn decide_writes(&self, under: CheckpointId) -> Result<(), CheckpointError> {
        if self.has_base {
            return Ok(());
        }
        Err(CheckpointError::refused(format!("there is no checkpoint {under} to write to")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> CheckpointId {
        CheckpointId::from_u128(number)
    }

    /// What is decided about checkpoint 5, for which its maker takes 4 for the latest.
    #[track_caller]
    fn check(head: u128, has_base: bool, expected: Result<Decision, &str>) {
        let lease = Lease::new("t", "child", Epoch::from_u64(7));
        let facts = Facts { head: Some(id(head)), has_base };
        let next = Successor { id: id(5), base: Some(id(3)), head: Some(id(4)) };
        let decided = facts.decide_put(lease, next).map_err(|error| error.to_string());
        match (decided, expected) {
            (Err(error), Err(words)) => assert!(error.contains(words), "{error}"),
            (decided, expected) => assert_eq!(decided, expected.map_err(ToOwned::to_owned)),
        }
    }

    #[test]
    fn a_checkpoint_follows_the_latest_and_builds_on_one_that_is_there() {
        check(4, true, Ok(Decision::Save));
        check(4, false, Err("builds on one that is not there"));
        check(3, true, Err("moved on in namespace `child`"));
        check(6, true, Err("moved on in namespace `child`"));
    }

    #[test]
    fn a_checkpoint_that_is_saved_twice_is_saved() {
        check(5, true, Ok(Decision::Known));
        check(5, false, Ok(Decision::Known));
    }

    #[test]
    fn an_id_that_is_not_newer_than_the_latest_is_refused() {
        let next = Successor { id: id(4), base: None, head: Some(id(9)) };
        let facts = Facts { head: Some(id(9)), has_base: true };
        assert!(facts.decide_put(Lease::new("t", "", Epoch::from_u64(7)), next).is_err());
    }

    #[test]
    fn whoever_was_overtaken_or_claimed_nothing_is_fenced() {
        let lease = Lease::new("t", "", Epoch::from_u64(7));
        assert!(lease.check(Some(Epoch::from_u64(7))).is_ok());
        assert!(lease.check(Some(Epoch::from_u64(8))).unwrap_err().to_string().contains("was taken over"));
        assert!(lease.check(None).unwrap_err().to_string().contains("was never claimed"));
    }
}
