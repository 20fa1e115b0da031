//! One call of a tool, from the request to the result, with all that the server sends in between.

use rmcp::model::{CallToolRequestParams, CallToolResult, ProgressNotificationParam, ServerResult};
use serde::{Deserialize, Serialize};

use super::calls::{Call, Heard, Next, Whose};
use super::connection::Connection;
use super::error::{Kind, McpError};
use crate::tool::{ToolContext, ToolError};

/// How far a call has come: what whoever streams the run in `custom` mode sees.
///
/// ```
/// use superstep_agent::mcp::McpProgress;
/// # let event = serde_json::json!({ "type": "mcp_progress", "server": "s", "tool": "t", "call": "c1", "progress": 1.0, "total": 4.0 });
/// let progress: McpProgress = serde_json::from_value(event)?;
/// assert_eq!(progress.total, Some(4.0));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "mcp_progress")]
#[non_exhaustive]
pub struct McpProgress {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The id of the call.
    pub call: String,
    /// How far it is; it only grows.
    pub progress: f64,
    /// How far it is when it is done, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Carries out a call.
///
/// # Cancellation
/// If the future is dropped, or ends because of a question or the time, the server is told to stop.
pub(super) async fn run(
    connection: &Connection,
    params: CallToolRequestParams,
    cx: &ToolContext,
) -> Result<CallToolResult, ToolError> {
    let tool = params.name.clone();
    let live = connection.live().await.map_err(McpError::into_tool_error)?;
    let questions = connection.shared.answers.of(cx.context());
    let task = cx.context().idempotency_key().into();
    let mut call = match Call::start(live.clone(), params, task).await {
        Ok(call) => call,
        Err(error) => return Err(connection.fault(&live, error).await.into_tool_error()),
    };
    let mut reached = f64::NEG_INFINITY;
    loop {
        let limit = connection.server.timeout;
        match tokio::time::timeout(limit, call.next()).await {
            Err(_) => return Err(ToolError::TimedOut(limit)),
            Ok(Next::Heard(Heard::Progress(progress))) => {
                cx.context().heartbeat();
                // Reports can overtake each other on their way.
                if progress.progress > reached {
                    reached = progress.progress;
                    show(progress, &connection.name, &tool, cx).await;
                }
            }
            Ok(Next::Heard(Heard::Question(asked, whose, reply))) => {
                let question = asked.at(&connection.name, whose, cx.call(), &tool);
                let answer = questions.ask(&question, whose == Whose::Named).map_err(ToolError::failed)?;
                // The server may have lost interest.
                let _ = reply.send(answer);
            }
            Ok(Next::Ended(Ok(ServerResult::CallToolResult(result)))) => return Ok(result),
            Ok(Next::Ended(Ok(_))) => return Err(McpError::new(&connection.name, Kind::Unexpected).into_tool_error()),
            Ok(Next::Ended(Err(error))) => return Err(connection.fault(&live, error).await.into_tool_error()),
        }
    }
}

async fn show(progress: ProgressNotificationParam, server: &str, tool: &str, cx: &ToolContext) {
    let ProgressNotificationParam { progress, total, message, .. } = progress;
    let (server, tool, call) = (server.to_owned(), tool.to_owned(), cx.call().id.clone());
    cx.context().emit(McpProgress { server, tool, call, progress, total, message }).await;
}
