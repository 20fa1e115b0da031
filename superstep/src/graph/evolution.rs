//! What a builder says about earlier versions of its graph.

use super::StateGraph;
use crate::plan::{Migrated, SavedFields, Then};
use crate::state::State;

impl<S: State> StateGraph<S> {
    /// Reads states that version `from` saved: changes their fields to those of version `from + 1`.
    ///
    /// The version of a state is said by `#[state(version = 2)]`, [`State::version`] or
    /// [`JsonFields::version`](crate::JsonFields::version); without it, it is 1. Migrations are applied one after another
    /// when a thread is read, and nothing is written until the thread goes on. They see plain data by the names
    /// of fields: the saved state, and separately what each task wrote that was not merged yet and an input that waits,
    /// which have some of the fields only.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use superstep::{MemorySaver, SavedFields, State, StateGraph, START};
    ///
    /// #[derive(State, Clone, Default, Serialize, Deserialize)]
    /// #[state(version = 2)]
    /// struct Order { cents: i64 }
    ///
    /// # async fn pay(_: Order) {}
    /// let app = StateGraph::<Order>::new().add_node("pay", pay).add_edge(START, "pay")
    ///     .migrate(1, |fields: &mut SavedFields| {
    ///         fields.rename("euros", "cents");
    ///         fields.change("cents", |euros| (euros.as_i64().unwrap_or(0) * 100).into());
    ///     })
    ///     .checkpointer(MemorySaver::new())
    ///     .compile()?;
    /// # Ok::<(), superstep::CompilationError>(())
    /// ```
    pub fn migrate<R: Into<Migrated>>(
        &mut self,
        from: u32,
        migration: impl Fn(&mut SavedFields) -> R + Send + Sync + 'static,
    ) -> &mut Self {
        self.draft.settings.evolution.add_migration(from, migration);
        self
    }

    /// Says that a node had another name when threads were saved: what was left for it to do, its questions and
    /// its answers are the new node's.
    ///
    /// A subgraph with [one history for all calls](Self::persistent) begins a new one under its new name.
    pub fn renamed_node(&mut self, old: impl Into<String>, new: impl Into<String>) -> &mut Self {
        self.draft.settings.evolution.rename(old.into(), new.into());
        self
    }

    /// Says what happens to work that was left for a node which is gone. Without it, resuming such a thread is an error
    /// that names the node.
    pub fn removed_node(&mut self, old: impl Into<String>, then: Then) -> &mut Self {
        self.draft.settings.evolution.remove(old.into(), then);
        self
    }
}
