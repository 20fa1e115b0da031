//! Which checkpoints may be forgotten.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use crate::id::CheckpointId;

/// Which checkpoints of a thread stay; the latest always does.
///
/// It speaks of the root graph's checkpoints. Those of subgraphs stay with the root's checkpoint that they ran
/// under, or run just now; of a subgraph with a history of its own the latest stays too.
///
/// ```
/// use std::time::Duration;
/// use superstep::{Checkpointer, MemorySaver, Prune};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), superstep::CheckpointError> {
/// let saver = MemorySaver::new();
/// assert_eq!(saver.prune("t", &Prune::keep_last(10)).await?, 0);
/// assert_eq!(saver.prune("t", &Prune::older_than(Duration::from_secs(30 * 86_400))).await?, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prune(Keep);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Last(usize),
    Since(SystemTime),
}

impl Prune {
    /// Keeps so many of the latest.
    pub fn keep_last(count: usize) -> Self {
        Self(Keep::Last(count))
    }

    /// Forgets what was made longer ago.
    pub fn older_than(age: Duration) -> Self {
        Self::before(SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Forgets what was made before a moment, which counts in whole microseconds, as databases do.
    pub fn before(moment: SystemTime) -> Self {
        let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let beyond = Duration::from_nanos(u64::from(since.subsec_nanos() % 1000));
        Self(Keep::Since(moment.checked_sub(beyond).unwrap_or(moment)))
    }

    /// Which of the root's checkpoints stay; they come with the time they were made, oldest first.
    pub fn kept(&self, root: &[(CheckpointId, SystemTime)]) -> HashSet<CheckpointId> {
        let by_rule: Box<dyn Iterator<Item = CheckpointId>> = match self.0 {
            Keep::Last(count) => Box::new(root.iter().rev().take(count).map(|(id, _)| *id)),
            Keep::Since(moment) => Box::new(root.iter().filter(move |(_, made)| *made >= moment).map(|(id, _)| *id)),
        };
        by_rule.chain(root.last().map(|(id, _)| *id)).collect()
    }
}

/// The root's checkpoints that stay.
#[derive(Debug)]
pub struct Kept<'a> {
    root: &'a HashSet<CheckpointId>,
    newest: Option<CheckpointId>,
}

impl<'a> Kept<'a> {
    /// These stay.
    pub fn new(root: &'a HashSet<CheckpointId>) -> Self {
        Self { root, newest: root.iter().max().copied() }
    }

    /// Whether a checkpoint of a subgraph stays that ran under this one of the root.
    pub fn keeps(&self, namespace: &str, is_latest: bool, under: Option<CheckpointId>) -> bool {
        // It runs just now, if the root's own checkpoint is not saved yet.
        let is_running = under > self.newest;
        let under_kept = under.is_some_and(|under| self.root.contains(&under));
        is_running || under_kept || (is_latest && has_own_history(namespace))
    }
}

/// The namespace of a subgraph with a history of its own names no task.
fn has_own_history(namespace: &str) -> bool {
    !namespace.contains(':')
}

/// What a sweep found and removed.
///
/// ```
/// # async fn show(saver: superstep::MemorySaver) -> Result<(), superstep::CheckpointError> {
/// use superstep::Checkpointer;
/// let swept = saver.sweep().await?;
/// println!("{} threads had expired, {} records belonged to no thread", swept.expired, swept.orphans);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// Threads whose time to live had passed. Claims without checkpoints are forgotten too, and not counted.
    pub expired: usize,
    /// Records that belonged to no thread; a sound database has none.
    pub orphans: usize,
}

impl Swept {
    /// So many threads had expired, and so many records belonged to no thread.
    pub fn new(expired: usize, orphans: usize) -> Self {
        Self { expired, orphans }
    }
}
