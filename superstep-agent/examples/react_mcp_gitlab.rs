//! A ReAct agent with the tools of GitLab's MCP server.
//!
//! `GITLAB_PERSONAL_ACCESS_TOKEN=… cargo run -p superstep-agent --features mcp,openai --example react_mcp_gitlab`
//!
//! `GITLAB_MCP_COMMAND` starts another server than `npx -y @modelcontextprotocol/server-gitlab`; one of your own GitLab is
//! `env GITLAB_API_URL=https://gitlab.example.org/api/v4 npx -y @modelcontextprotocol/server-gitlab`. `MODEL` names the
//! model; without a key for it, a script answers. Without a token or the program, nothing is asked.

mod mcp_agent;

use std::sync::Arc;

use superstep::BoxError;
use superstep_agent::{ChatModel, ScriptedModel};

pub(crate) use mcp_agent::Server;

fn gitlab() -> Server {
    let command = "npx -y @modelcontextprotocol/server-gitlab";
    Server::from_env("gitlab", "GITLAB_MCP_COMMAND", command, "GITLAB_PERSONAL_ACCESS_TOKEN")
}

pub(crate) fn script() -> ScriptedModel {
    mcp_agent::calling("search_repositories", serde_json::json!({ "search": "langgraph" }))
}

/// The tools and what was said, line by line; or why nothing was.
///
/// # Errors
/// If the server or the model fails.
pub(crate) async fn run(server: Server, model: impl FnOnce() -> Arc<dyn ChatModel>) -> Result<Vec<String>, BoxError> {
    mcp_agent::ask(server, "Which projects are about langgraph?", model).await
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run(gitlab(), || mcp_agent::model_or(script())).await?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
