//! Several agents that work on one conversation.
//!
//! A team is a graph whose nodes are agents. They share the conversation and the fields of the state that keep their
//! last value; fields with a reducer stay with the agent that wrote them, because what it gives back would be merged
//! twice.

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
