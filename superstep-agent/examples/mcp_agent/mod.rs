//! What `react_mcp_gitlab` and `react_exa` share: an agent with the tools of an MCP server that a command starts.

use std::env;
use std::sync::Arc;

use serde_json::Value;
use superstep::{BoxError, Message, Role, ToolCall};
use superstep_agent::mcp::{McpServer, McpServers};
use superstep_agent::{ChatModel, ScriptedModel, chat_model, create_react_agent};

/// A server, and what it needs to start.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    /// The variable in which the server looks for its key.
    pub(crate) key_variable: &'static str,
    pub(crate) key: Option<String>,
}

impl Server {
    /// The server with the key of the environment, started by this command unless the environment has another.
    pub(crate) fn from_env(
        name: &'static str,
        command_variable: &str,
        command: &str,
        key_variable: &'static str,
    ) -> Self {
        let command = env::var(command_variable).unwrap_or_else(|_| command.to_owned());
        let mut words = command.split_whitespace().map(str::to_owned);
        let (program, args) = (words.next().unwrap_or_default(), words.collect());
        Self { name, program, args, key_variable, key: env::var(key_variable).ok() }
    }
}

/// Asks an agent that has the tools of the server: the tools, and what was said, line by line. If there is no server, one
/// line says why.
///
/// # Errors
/// If the server or the model fails.
pub(crate) async fn ask(
    server: Server,
    question: &str,
    model: impl FnOnce() -> Arc<dyn ChatModel>,
) -> Result<Vec<String>, BoxError> {
    let Some(key) = server.key.filter(|key| !key.is_empty()) else {
        return Ok(vec![format!("Skipped: `{}` is not set.", server.key_variable)]);
    };
    let program = McpServer::stdio(server.program, server.args).env(server.key_variable, key);
    let servers = McpServers::new().add(server.name, program);
    let tools = match servers.tools().await {
        Ok(tools) => tools,
        Err(error) if error.is_connection() => return Ok(vec![format!("Skipped: {error}.")]),
        Err(error) => return Err(error.into()),
    };
    let mut lines: Vec<String> = tools.iter().map(|tool| format!("tool {}", tool.spec().name)).collect();

    let agent = create_react_agent(model(), tools).compile()?;
    let out = agent.invoke(question).await?;
    lines.extend(out.state.messages.iter().map(|message| message.text().into_owned()));
    servers.close().await;
    Ok(lines)
}

/// The model that `MODEL` names, like `anthropic:claude-sonnet-4-5`, if its feature is on and its key is there; or a script.
pub(crate) fn model_or(script: ScriptedModel) -> Arc<dyn ChatModel> {
    let name = env::var("MODEL").unwrap_or_else(|_| "openai:gpt-5-mini".to_owned());
    chat_model(&name).unwrap_or_else(|why| {
        println!("{why}; a script answers instead");
        Arc::new(script)
    })
}

/// Stands for a model that calls one tool and says what came of it.
pub(crate) fn calling(tool: &str, args: Value) -> ScriptedModel {
    let call = ToolCall::new("c1", tool, args);
    ScriptedModel::thinking(move |request| match request.messages.last() {
        Some(result) if result.role() == Some(Role::Tool) => Message::assistant(format!("I found {}", result.text())),
        _ => Message::calls("", [call.clone()]),
    })
}
