//! Tools, resources and prompts of MCP servers, and graphs as tools of an MCP server.
//!
//! A connection is made when it is first needed, and made again for the next request if the server died. Whatever a
//! server sends in the middle of a call (progress, questions) belongs to that call, and reaches the run through the
//! context of the tool.

mod answers;
mod call;
mod calls;
mod connection;
mod content;
mod elicitation;
mod error;
mod http;
mod listener;
mod live;
mod names;
mod sampling;
mod serve;
mod server;
mod servers;
mod tool;
mod transport;

pub use call::McpProgress;
pub use elicitation::{Elicitation, ElicitationAction, ElicitationAnswer};
pub use error::McpError;
pub use live::McpTools;
pub use names::ToolNames;
pub use serve::{ToolServer, serve_tool};
pub use server::McpServer;
pub use servers::{McpPrompt, McpResource, McpServers};
