//! Agents on [superstep](superstep) graphs: models, tools, and the loop that lets them work together.
//!
//! Everything here stands on superstep's public API: an agent is a graph that can be drawn, streamed, paused, resumed
//! and rewound like any other.

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
pub mod model;
pub mod tool;

pub use model::{
    ChatModel, ChatModelExt, ChatRequest, ChunkStream, ModelError, ModelErrorKind, OutputSchema, Reply, ScriptedModel,
    Settings, ToolChoice,
};
pub use superstep_derive::tool;
pub use tool::{IntoToolOutput, Json, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
