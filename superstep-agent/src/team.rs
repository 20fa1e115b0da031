//! Several agents that work on one conversation.
//!
//! A team is a graph whose nodes are agents. They share the conversation and the fields of the state that keep their
//! last value; fields with a reducer stay with the agent that wrote them, because what it gives back would be merged
//! twice.

/// The settings that every team has.
macro_rules! configurable {
    ($team:ident) => {
        impl<S: Conversation + Persist> $team<S> {
            /// With a memory of its threads.
            pub fn checkpointer(self, checkpointer: impl superstep::Checkpointer) -> Self {
                self.configure(|graph| graph.checkpointer(checkpointer))
            }

            /// With any other change to the graph.
            pub fn configure(
                mut self,
                change: impl FnOnce(&mut StateGraph<S>) -> &mut StateGraph<S> + 'static,
            ) -> Self {
                self.changes.add(change);
                self
            }
        }
    };
}
use configurable;

mod agent_tool;
mod error;
mod handoff;
mod member;
mod supervisor;
mod swarm;

pub use agent_tool::{AgentTool, agent_as_tool};
pub use error::{TeamError, TeamMistake};
pub use handoff::{Handoff, handoff_tool};
pub use member::OutputMode;
pub use supervisor::Supervisor;
pub use swarm::Swarm;
