//! Agents on [superstep](superstep) graphs: models, tools, and the loop that lets them work together.
//!
//! Everything here stands on superstep's public API: an agent is a graph that can be drawn, streamed, paused, resumed
//! and rewound like any other.

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod agent;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod middleware;
pub mod model;
pub mod tool;

pub use agent::{Prompt, ReactAgent, ReactState, ReactStateUpdate, create_react_agent};
pub use model::{
    ChatModel, ChatModelExt, ChatRequest, ChunkStream, ModelError, ModelErrorKind, OutputSchema, Reply, ScriptedModel,
    Settings, ToolChoice,
};
pub use superstep_derive::tool;
pub use tool::{
    IntoToolOutput, IntoTools, Json, OnToolError, Tool, ToolContext, ToolError, ToolNode, ToolOutput, ToolSpec,
    tools_condition,
};

#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../docs/mcp.md")]
struct McpGuide;
