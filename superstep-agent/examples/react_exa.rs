//! A ReAct agent that searches the web with Exa, by the tools of its MCP server.
//!
//! `EXA_API_KEY=… cargo run -p superstep-agent --features mcp,openai --example react_exa`
//!
//! `EXA_MCP_COMMAND` starts another server than `npx -y exa-mcp-server`. `MODEL` names the model; without a key for it, a
//! script answers. Without Exa's key or the program, nothing is asked.

mod mcp_agent;

use std::sync::Arc;

use superstep::BoxError;
use superstep_agent::{ChatModel, ScriptedModel};

pub(crate) use mcp_agent::Server;

fn exa() -> Server {
    Server::from_env("exa", "EXA_MCP_COMMAND", "npx -y exa-mcp-server", "EXA_API_KEY")
}

pub(crate) fn script() -> ScriptedModel {
    mcp_agent::calling("web_search_exa", serde_json::json!({ "query": "news about Rust" }))
}

/// The tools and what was said, line by line; or why nothing was.
///
/// # Errors
/// If the server or the model fails.
pub(crate) async fn run(server: Server, model: impl FnOnce() -> Arc<dyn ChatModel>) -> Result<Vec<String>, BoxError> {
    mcp_agent::ask(server, "What is new in Rust?", model).await
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run(exa(), || mcp_agent::model_or(script())).await?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
