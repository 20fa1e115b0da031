//! Agents on [superstep] graphs: models, tools, and the loop that lets them work together.
//!
//! Everything here stands on superstep's public API: an agent is a graph that can be drawn, streamed, paused, resumed
//! and rewound like any other.
//!
//! | feature | what it adds |
//! |---|---|
//! | `openai` | `OpenAi`, for OpenAI's chat completions and servers that speak them, and `OpenAiResponses` |
//! | `anthropic` | `Anthropic` |
//! | `gemini` | `Gemini` |
//! | `mcp` | tools, resources and prompts of MCP servers; graphs served as MCP tools |

/// Shows errors by [`superstep::explain`].
macro_rules! shown_in_words {
    ($($error:ty),+ $(,)?) => {$(
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                superstep::explain(self, f)
            }
        }
    )+};
}

// A module uses those above it, and none below it. `tests/it/tidy/layers.rs` of superstep reads this list.
mod debug;
mod changes;
#[cfg(any(feature = "__http", feature = "mcp"))]
mod tls;
pub mod message;
pub mod tool;
#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
pub mod model;
pub mod middleware;
mod tool_node;
mod provider;
mod chat;
mod agent;
pub mod team;
#[cfg(feature = "mcp")]
pub mod mcp;

pub use agent::{Prompt, ReactAgent, ReactState, ReactStateUpdate, create_react_agent};
pub use chat::ChatAgent;
pub use model::{
    ChatModel, ChatModelExt, ChatRequest, ChunkStream, ModelError, ModelErrorKind, OutputSchema, RecordingModel,
    ReplayModel, Reply, ScriptedModel, Settings, ToolChoice,
};
#[cfg(feature = "anthropic")]
pub use provider::Anthropic;
#[cfg(feature = "gemini")]
pub use provider::Gemini;
#[cfg(feature = "__http")]
pub use provider::Secret;
pub use provider::chat_model;
#[cfg(feature = "openai")]
pub use provider::{OpenAi, OpenAiResponses};
pub use superstep::{Agent, AgentState, EchoAgent};
pub use superstep_derive::tool;
pub use tool::{IntoToolOutput, IntoTools, Json, OnToolError, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
pub use tool_node::{ToolNode, tools_condition};

#[cfg(all(doctest, feature = "openai", feature = "anthropic", feature = "gemini"))]
#[doc = include_str!("../../docs/models.md")]
struct ModelsGuide;

#[cfg(doctest)]
#[doc = include_str!("../../docs/agents.md")]
struct AgentsGuide;

#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../docs/mcp.md")]
struct McpGuide;

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
