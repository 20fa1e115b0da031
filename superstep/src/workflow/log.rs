//! The mutations of a thread, for audit and replay.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{WorkflowError, WorkflowState};

/// An ordered record of what changed a state, for audit and deterministic replay.
///
/// A graph with a checkpointer keeps it by itself: what each task wrote is saved with the thread, and
/// [`Thread::mutation_log`](crate::Thread::mutation_log) reads it. It can also be filled by hand:
///
/// ```
/// use superstep::{MutationLog, StateMutation, WorkflowState};
///
/// # #[derive(Clone, Default, PartialEq, Debug)] struct Count(u32);
/// # #[derive(Debug, Clone, PartialEq)] struct Add(u32);
/// # impl StateMutation<Count> for Add { fn apply(self, s: &mut Count) { s.0 += self.0; } }
/// # impl WorkflowState for Count {
/// #     type Checkpoint = u32; type Mutation = Add;
/// #     fn snapshot(&self) -> u32 { self.0 } fn restore(c: u32) -> Self { Count(c) }
/// # }
/// let log = MutationLog::<Count>::default();
/// log.record(1, "plan", Add(2));
/// log.record(2, "act", Add(3));
/// assert_eq!(log.replay(Count(1))?, Count(6));
/// assert_eq!(log.entries()[1].mutation(), Some(&Add(3)));
/// # Ok::<(), superstep::WorkflowError>(())
/// ```
pub struct MutationLog<W: WorkflowState> {
    entries: Mutex<Vec<LogEntry<W>>>,
}

crate::debug::debug_parts!([W: WorkflowState] MutationLog<W>, "MutationLog", this => {
    entries: this.entries.lock().unwrap_or_else(PoisonError::into_inner).len()
});

/// One line of a [`MutationLog`].
pub struct LogEntry<W: WorkflowState> {
    /// The step.
    pub step: i64,
    /// The node that made it; empty for a whole state that no saved task made, by hand or in steps that were not saved.
    pub node: String,
    /// What it did to the state.
    pub change: Logged<W>,
}

/// What a line of a [`MutationLog`] did to the state.
#[non_exhaustive]
pub enum Logged<W: WorkflowState> {
    /// A mutation.
    Mutation(W::Mutation),
    /// A whole state that took the place of the one before: given in by the caller, given back by an agent or a
    /// [`ParallelNode`](crate::ParallelNode), or reached in steps whose mutations were not saved.
    State(W::Checkpoint),
}

impl<W: WorkflowState> std::fmt::Debug for Logged<W>
where
    W::Mutation: std::fmt::Debug,
    W::Checkpoint: std::fmt::Debug,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mutation(mutation) => f.debug_tuple("Mutation").field(mutation).finish(),
            Self::State(state) => f.debug_tuple("State").field(state).finish(),
        }
    }
}

impl<W: WorkflowState> LogEntry<W> {
    /// The mutation, if it is one.
    pub fn mutation(&self) -> Option<&W::Mutation> {
        match &self.change {
            Logged::Mutation(mutation) => Some(mutation),
            Logged::State(_) => None,
        }
    }
}

impl<W: WorkflowState> Clone for LogEntry<W>
where
    W::Mutation: Clone,
{
    fn clone(&self) -> Self {
        let change = match &self.change {
            Logged::Mutation(mutation) => Logged::Mutation(mutation.clone()),
            Logged::State(state) => Logged::State(state.clone()),
        };
        Self { step: self.step, node: self.node.clone(), change }
    }
}

impl<W: WorkflowState> Debug for LogEntry<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "step {}, {}: ", self.step, self.node)?;
        match &self.change {
            Logged::Mutation(mutation) => mutation.fmt(f),
            Logged::State(_) => f.write_str("a whole state"),
        }
    }
}

impl<W: WorkflowState> Default for MutationLog<W> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<W: WorkflowState> MutationLog<W>
where
    W::Mutation: Clone,
{
    /// Writes a mutation down.
    pub fn record(&self, step: i64, node: impl Into<String>, mutation: W::Mutation) {
        self.push(step, node, Logged::Mutation(mutation));
    }

    pub(crate) fn push(&self, step: i64, node: impl Into<String>, change: Logged<W>) {
        self.lock().push(LogEntry { step, node: node.into(), change });
    }

    /// Everything recorded, in order.
    pub fn entries(&self) -> Vec<LogEntry<W>> {
        self.lock().clone()
    }

    /// Applies what was recorded to a state, the mutations of a step as one batch.
    ///
    /// # Errors
    /// If the state refuses one.
    pub fn replay(&self, from: W) -> Result<W, WorkflowError> {
        apply_entries(from, &self.entries())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LogEntry<W>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies entries to a state, each step's mutations as one batch.
pub(crate) fn apply_entries<W: WorkflowState>(mut state: W, entries: &[LogEntry<W>]) -> Result<W, WorkflowError>
where
    W::Mutation: Clone,
{
    for step in entries.chunk_by(|one, next| one.step == next.step) {
        for whole in step.iter().filter_map(|entry| match &entry.change {
            Logged::State(checkpoint) => Some(checkpoint.clone()),
            Logged::Mutation(_) => None,
        }) {
            state = W::restore(whole);
        }
        state.apply_batch(step.iter().filter_map(LogEntry::mutation).cloned())?;
    }
    Ok(state)
}
