//! Several servers under their names.

use std::future::Future;
use std::sync::Arc;

use rmcp::model::{GetPromptRequestParams, GetPromptResponse, ReadResourceRequestParams};
use rmcp::{ServiceError, model};
use serde::Serialize;
use superstep::{Block, JsonMap, Message};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::answers::KnownAnswers;
use super::connection::{Connection, Live, Shared};
use super::content;
use super::error::{Kind, McpError};
use super::live::McpTools;
use super::names::{Offered, ToolNames};
use super::server::McpServer;
use super::tool::McpTool;
use crate::tool::Tool;

/// MCP servers by name. Clones share their connections.
///
/// Servers are connected to when they are first needed, and again if they died since. When the last clone and the last
/// of their tools are dropped, programs that were started are ended.
///
/// ```no_run
/// use superstep_agent::mcp::{McpServer, McpServers};
/// use superstep_agent::{create_react_agent, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let servers = McpServers::new()
///     .add("everything", McpServer::stdio("npx", ["-y", "@modelcontextprotocol/server-everything"]))
///     .add("company", McpServer::http("https://mcp.example.org").bearer_token(std::env::var("TOKEN")?));
/// let agent = create_react_agent(ScriptedModel::new(["hello"]), servers.tools().await?).compile()?;
/// # let _ = agent;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct McpServers {
    connections: Vec<Arc<Connection>>,
    shared: Arc<Shared>,
    names: ToolNames,
}

/// Something that a server can be asked to read.
///
/// ```
/// # fn f(resource: superstep_agent::mcp::McpResource) {
/// println!("{} at {}: {}", resource.name, resource.server, resource.uri);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct McpResource {
    /// The server.
    pub server: String,
    /// Names it at its server.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Its type, like `text/plain`.
    pub mime: Option<String>,
}

/// A prompt that a server has ready.
///
/// ```
/// # fn f(prompt: superstep_agent::mcp::McpPrompt) {
/// println!("{} of {} wants {:?}", prompt.name, prompt.server, prompt.required);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct McpPrompt {
    /// The server.
    pub server: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The arguments that it must have.
    pub required: Vec<String>,
    /// The arguments that it may have.
    pub optional: Vec<String>,
}

impl Default for McpServers {
    fn default() -> Self {
        Self::new()
    }
}

impl McpServers {
    /// No servers.
    pub fn new() -> Self {
        let shared = Shared { changes: watch::Sender::new(0), answers: KnownAnswers::default() };
        Self { connections: Vec::new(), shared: Arc::new(shared), names: ToolNames::default() }
    }

    /// With one more server; one of the same name is replaced.
    pub fn add(mut self, name: impl AsRef<str>, server: McpServer) -> Self {
        let connection = Arc::new(Connection::new(name.as_ref(), server, self.shared.clone()));
        match self.connections.iter().position(|known| known.name == connection.name) {
            Some(at) => self.connections[at] = connection,
            None => self.connections.push(connection),
        }
        self
    }

    /// How their tools are called.
    pub fn names(mut self, names: ToolNames) -> Self {
        self.names = names;
        self
    }

    /// The tools of all servers, in the order of the servers.
    pub async fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, McpError> {
        let mut found: Vec<(Arc<Connection>, model::Tool)> = Vec::new();
        for (connection, tools) in self.of_all(tools_of).await? {
            found.extend(tools.into_iter().map(|tool| (connection.clone(), tool)));
        }
        let offered: Vec<Offered<'_>> = found.iter().map(|(at, tool)| (&*at.name, &*tool.name)).collect();
        let names = self.names.of(&offered).map_err(|place| {
            let (at, tool) = &found[place];
            McpError::new(&at.name, Kind::SameName(tool.name.to_string()))
        })?;
        let named = found.into_iter().zip(names);
        Ok(named.map(|((at, tool), name)| Arc::new(McpTool::new(at, tool, name)) as Arc<dyn Tool>).collect())
    }

    /// The tools of all servers for an agent whose list of tools changes with theirs.
    ///
    /// ```no_run
    /// use superstep_agent::mcp::{McpServer, McpServers};
    /// use superstep_agent::{create_react_agent, ScriptedModel};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let servers = McpServers::new().add("files", McpServer::stdio("files-server", ["--stdio"]));
    /// let agent = create_react_agent(ScriptedModel::new(["hello"]), ()).middleware(servers.live_tools().await?).compile()?;
    /// # let _ = agent;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn live_tools(&self) -> Result<McpTools, McpError> {
        McpTools::new(self.clone()).await
    }

    /// The resources of all servers that have some.
    pub async fn resources(&self) -> Result<Vec<McpResource>, McpError> {
        let found = self.of_all(resources_of).await?.into_iter();
        Ok(found.flat_map(|(at, list)| list.into_iter().map(move |resource| described(&at, resource))).collect())
    }

    /// What a resource holds: text, pictures, files.
    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<Vec<Block>, McpError> {
        let params = ReadResourceRequestParams::new(uri);
        let read = |live: Arc<Live>| async move { live.peer().read_resource(params).await };
        Ok(self.get(server)?.ask(read).await?.contents.into_iter().map(content::resource).collect())
    }

    /// The prompts of all servers that have some.
    pub async fn prompts(&self) -> Result<Vec<McpPrompt>, McpError> {
        let found = self.of_all(prompts_of).await?.into_iter();
        Ok(found.flat_map(|(at, list)| list.into_iter().map(move |prompt| offered(&at, prompt))).collect())
    }

    /// A prompt with its arguments filled in, as messages.
    pub async fn get_prompt(&self, server: &str, name: &str, arguments: JsonMap) -> Result<Vec<Message>, McpError> {
        let mut params = GetPromptRequestParams::new(name);
        params.arguments = (!arguments.is_empty()).then_some(arguments);
        let get = |live: Arc<Live>| async move {
            match live.peer().get_prompt_once(params).await? {
                GetPromptResponse::Complete(prompt) => Ok(prompt),
                _ => Err(ServiceError::UnexpectedResponse),
            }
        };
        Ok(self.get(server)?.ask(get).await?.messages.into_iter().map(content::message).collect())
    }

    /// Grows when a server says that its tools have changed, or was connected to again.
    pub fn tools_version(&self) -> u64 {
        *self.shared.changes.borrow()
    }

    /// Waits until [`tools_version`](Self::tools_version) is greater than this, and gives it.
    pub async fn tools_changed_since(&self, version: u64) -> u64 {
        let mut changes = self.shared.changes.subscribe();
        let newer = changes.wait_for(|now| *now > version).await;
        *newer.expect("the sender lives as long as we do")
    }

    /// The process of a server over stdio, if it runs.
    pub async fn process_id(&self, server: &str) -> Option<u32> {
        self.get(server).ok()?.process().await
    }

    /// Ends all connections, and waits until programs that were started have ended, with all that they started
    /// themselves (on Unix). Calls that are under way fail.
    pub async fn close(&self) {
        for connection in &self.connections {
            connection.close().await;
        }
    }

    fn get(&self, server: &str) -> Result<&Arc<Connection>, McpError> {
        self.connections.iter().find(|known| &*known.name == server).ok_or_else(|| {
            let known: Vec<String> = self.connections.iter().map(|known| format!("`{}`", known.name)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            McpError::new(&server.into(), Kind::Unknown(known))
        })
    }

    /// Asks all servers at once, and gives their answers in the order of the servers.
    async fn of_all<T, F>(&self, ask: fn(Arc<Connection>) -> F) -> Result<Vec<(Arc<Connection>, T)>, McpError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, McpError>> + Send + 'static,
    {
        let mut asked = JoinSet::new();
        for (at, connection) in self.connections.iter().enumerate() {
            let answer = ask(connection.clone());
            asked.spawn(async move { (at, answer.await) });
        }
        let mut answers: Vec<Option<T>> = self.connections.iter().map(|_| None).collect();
        while let Some(answered) = asked.join_next().await {
            let (at, answer) = answered.expect("asking a server does not panic and is not aborted");
            answers[at] = Some(answer?);
        }
        Ok(self.connections.iter().cloned().zip(answers.into_iter().flatten()).collect())
    }
}

async fn tools_of(connection: Arc<Connection>) -> Result<Vec<model::Tool>, McpError> {
    let mut tools = connection
        .ask(|live| async move {
            if live.has(|can| can.tools.is_some()) { live.peer().list_all_tools().await } else { Ok(Vec::new()) }
        })
        .await?;
    if let Some(keep) = &connection.server.keep {
        tools.retain(|tool| keep(&tool.name));
    }
    Ok(tools)
}

async fn resources_of(connection: Arc<Connection>) -> Result<Vec<model::Resource>, McpError> {
    let list = |live: Arc<Live>| async move {
        if live.has(|can| can.resources.is_some()) { live.peer().list_all_resources().await } else { Ok(Vec::new()) }
    };
    connection.ask(list).await
}

async fn prompts_of(connection: Arc<Connection>) -> Result<Vec<model::Prompt>, McpError> {
    let list = |live: Arc<Live>| async move {
        if live.has(|can| can.prompts.is_some()) { live.peer().list_all_prompts().await } else { Ok(Vec::new()) }
    };
    connection.ask(list).await
}

fn described(at: &Connection, resource: model::Resource) -> McpResource {
    let model::Resource { uri, name, description, mime_type, .. } = resource;
    McpResource { server: at.name.to_string(), uri, name, description, mime: mime_type }
}

fn offered(at: &Connection, prompt: model::Prompt) -> McpPrompt {
    let arguments = prompt.arguments.unwrap_or_default().into_iter();
    let (required, optional): (Vec<_>, Vec<_>) = arguments.partition(|argument| argument.required == Some(true));
    let names = |arguments: Vec<model::PromptArgument>| arguments.into_iter().map(|argument| argument.name).collect();
    McpPrompt {
        server: at.name.to_string(),
        name: prompt.name,
        description: prompt.description,
        required: names(required),
        optional: names(optional),
    }
}

impl std::fmt::Debug for McpServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.connections.iter().map(|known| (&known.name, &known.server))).finish()
    }
}
