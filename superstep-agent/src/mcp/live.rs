//! An agent's tools that change when those of the servers do.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use superstep::{Conversation, Message};

use super::error::McpError;
use super::servers::McpServers;
use crate::middleware::{AskModel, CallTool, Middleware, ModelAsk, ToolAsk};
use crate::model::ModelError;
use crate::tool::{Tool, ToolError, ToolOutput};

/// The tools of MCP servers as middleware: the model is told of those that the servers have at the time.
///
/// See [`McpServers::live_tools`]. A tool whose name one of the agent's own tools has is called `server_tool`. An agent has a node for tools only if there is a tool when it is built.
///
/// ```
/// use superstep_agent::mcp::{serve_tool, McpServer, McpServers, McpTools};
/// use superstep_agent::{create_react_agent, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let poet = create_react_agent(ScriptedModel::new(["Roses are red."]), ()).compile()?;
/// # let server = serve_tool(poet, "poet", "Writes a poem.");
/// # let server = McpServer::pipe(move || {
/// #     let (ours, theirs) = tokio::io::duplex(4096);
/// #     tokio::spawn(server.clone().serve(theirs));
/// #     async { Ok(ours) }
/// # });
/// let tools: McpTools = McpServers::new().add("poet", server).live_tools().await?;
/// let agent = create_react_agent(ScriptedModel::new(["hello"]), ()).middleware(tools).compile()?;
/// assert_eq!(agent.invoke("hi").await?.state.messages.len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct McpTools {
    servers: McpServers,
    now: Mutex<Now>,
}

crate::debug::debug_parts!([] McpTools, "McpTools", this => { servers: this.servers });

#[derive(Default)]
struct Now {
    version: u64,
    tools: Vec<Arc<dyn Tool>>,
    /// The names of all tools there have been.
    ours: HashSet<String>,
}

impl Now {
    fn new(version: u64, tools: Vec<Arc<dyn Tool>>, mut ours: HashSet<String>) -> Self {
        let both = |tool: &Arc<dyn Tool>| [Some(tool.spec().name), tool.giving_way().map(|aside| aside.spec().name)];
        ours.extend(tools.iter().flat_map(both).flatten());
        Self { version, tools, ours }
    }

    /// The tool of a name; tools give way to those of the agent itself.
    fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let is_it = |tool: &Arc<dyn Tool>| tool.spec().name == name;
        let aside = || self.tools.iter().filter_map(|tool| tool.giving_way()).find(is_it);
        self.tools.iter().find(|tool| is_it(tool)).cloned().or_else(aside)
    }
}

impl McpTools {
    pub(super) async fn new(servers: McpServers) -> Result<Self, McpError> {
        let (version, tools) = current(&servers).await?;
        Ok(Self { servers, now: Mutex::new(Now::new(version, tools, HashSet::new())) })
    }

    /// Asks the servers if something has changed. If they do not answer, what was known stays.
    async fn refresh(&self) {
        if self.now().version == self.servers.tools_version() {
            return;
        }
        match current(&self.servers).await {
            Ok((version, tools)) => {
                let mut now = self.now();
                let ours = std::mem::take(&mut now.ours);
                *now = Now::new(version, tools, ours);
            }
            Err(error) => tracing::warn!(%error, "the changed tools of an MCP server cannot be listed"),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tools, and the version that they are at least of.
async fn current(servers: &McpServers) -> Result<(u64, Vec<Arc<dyn Tool>>), McpError> {
    let version = servers.tools_version();
    Ok((version, servers.tools().await?))
}

#[async_trait]
impl<S: Conversation> Middleware<S> for McpTools {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.now().tools.clone()
    }

    async fn around_model(&self, mut ask: ModelAsk<S>, next: AskModel<'_, S>) -> Result<Message, ModelError> {
        self.refresh().await;
        {
            let now = self.now();
            let mut told = std::mem::take(&mut ask.request.tools);
            told.retain(|tool| ask.is_own(&tool.name) || !now.ours.contains(&tool.name));
            for tool in &now.tools {
                let aside = ask.is_own(&tool.spec().name).then(|| tool.giving_way()).flatten();
                let spec = aside.as_ref().unwrap_or(tool).spec();
                if told.iter().all(|known| known.name != spec.name) {
                    told.push(spec);
                }
            }
            ask.request.tools = told;
        }
        next.ask(ask).await
    }

    async fn around_tool(&self, mut ask: ToolAsk<S>, next: CallTool<'_, S>) -> Result<ToolOutput, ToolError> {
        {
            let is_own = ask.tool.as_ref().is_some_and(|tool| tool.giving_way().is_none());
            let now = self.now();
            if ask.tool.is_none() || (!is_own && now.ours.contains(&ask.call.name)) {
                ask.tool = now.get(&ask.call.name);
            }
        }
        next.call(ask).await
    }
}
