//! Graphs as tools of an MCP server.

mod handler;
mod http;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::{RoleServer, ServiceExt};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{BoxError, CompiledStateGraph, Conversation, IntoInput, Message, Role, State};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use super::content;
use crate::tool::ToolSpec;
use handler::Handler;

/// A server with one tool: a graph that is told something and answers.
///
/// ```no_run
/// use superstep_agent::{create_react_agent, mcp::serve_tool, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let poet = create_react_agent(ScriptedModel::new(["Roses are red."]), ()).compile()?;
/// serve_tool(poet, "poet", "Writes a poem about what you tell it.").serve_stdio().await?;
/// # Ok(())
/// # }
/// ```
pub fn serve_tool<S: Conversation>(
    graph: CompiledStateGraph<S>,
    name: impl Into<String>,
    description: impl Into<String>,
) -> ToolServer {
    let name = name.into();
    ToolServer::new(name.clone()).graph(graph, name, description)
}

/// An MCP server whose tools are graphs.
///
/// A tool takes the place of one of the same name. Each call is a run of its own, on a new thread. If the client cancels the call, the run is dropped.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use superstep::{State, StateGraph, START};
/// use superstep_agent::mcp::{McpServer, McpServers, ToolServer};
///
/// #[derive(State, Clone, Default, Serialize, Deserialize)]
/// struct Sum { numbers: Vec<i64>, total: i64 }
/// #[derive(Deserialize, JsonSchema)]
/// struct Numbers { numbers: Vec<i64> }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let graph = StateGraph::<Sum>::new()
///     .add_node("add", |sum: Sum| async move { Sum::update().total(sum.numbers.iter().sum::<i64>()) })
///     .add_edge(START, "add")
///     .compile()?;
/// let server = ToolServer::new("sums").graph_with(
///     graph,
///     "sum",
///     "Adds numbers.",
///     |args: Numbers| Sum::update().numbers(args.numbers),
///     |sum: Sum| serde_json::json!({ "total": sum.total }),
/// );
///
/// // Here the client is in the same program.
/// let client = McpServers::new().add("sums", McpServer::pipe(move || {
///     let (ours, theirs) = tokio::io::duplex(4096);
///     tokio::spawn(server.clone().serve(theirs));
///     async { Ok(ours) }
/// }));
/// assert_eq!(client.tools().await?[0].spec().name, "sum");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a server does nothing until it serves"]
pub struct ToolServer {
    name: String,
    hosts: Vec<String>,
    tools: Vec<Served>,
}

crate::debug::debug_parts!([] ToolServer, "ToolServer", this => { name: this.name, hosts: this.hosts });

/// A graph with its types erased.
#[derive(Clone)]
struct Served {
    tool: rmcp::model::Tool,
    run: Arc<dyn Fn(Value) -> Run + Send + Sync>,
}

type Run = Pin<Box<dyn Future<Output = Result<CallToolResult, Failed>> + Send>>;

/// Why a call has no result.
enum Failed {
    /// The arguments do not fit.
    Arguments(String),
    Graph(BoxError),
}

/// What a graph with a conversation is told.
#[derive(Deserialize, JsonSchema)]
struct Told {
    /// What to tell it.
    message: String,
}

impl ToolServer {
    /// A server without tools.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), hosts: Vec::new(), tools: Vec::new() }
    }

    /// With a graph over a conversation as a tool: its argument is a `message`, its result what the model said last.
    pub fn graph<S: Conversation>(
        self,
        graph: CompiledStateGraph<S>,
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        let told = |told: Told| S::say(vec![Message::user(told.message)]);
        self.with(graph, ToolSpec::new(name, description).args::<Told>(), told, |state: S| Ok(last_words(&state)))
    }

    /// With a graph as a tool: one function makes its input of the arguments, one the result of its state.
    pub fn graph_with<S, A, I, M, O>(
        self,
        graph: CompiledStateGraph<S>,
        name: impl Into<String>,
        description: impl Into<String>,
        input: impl Fn(A) -> I + Send + Sync + 'static,
        output: impl Fn(S) -> O + Send + Sync + 'static,
    ) -> Self
    where
        S: State,
        A: DeserializeOwned + JsonSchema,
        I: IntoInput<S, M>,
        O: Serialize,
    {
        let spec = ToolSpec::new(name, description).args::<A>();
        self.with(graph, spec, input, move |state| Ok(data(serde_json::to_value(output(state))?)))
    }

    fn with<S, A, I, M>(
        mut self,
        graph: CompiledStateGraph<S>,
        spec: ToolSpec,
        input: impl Fn(A) -> I + Send + Sync + 'static,
        output: impl Fn(S) -> Result<CallToolResult, BoxError> + Send + Sync + 'static,
    ) -> Self
    where
        S: State,
        A: DeserializeOwned,
        I: IntoInput<S, M>,
    {
        let output = Arc::new(output);
        let run = move |args: Value| -> Run {
            let args = match serde_json::from_value(args) {
                Ok(args) => args,
                Err(error) => return Box::pin(async move { Err(Failed::Arguments(error.to_string())) }),
            };
            let run = graph.invoke(input(args)).thread(Message::new_id());
            let output = output.clone();
            Box::pin(async move {
                let out = run.await.map_err(|e| Failed::Graph(e.into()))?;
                match out.interrupts.first() {
                    Some(question) => Ok(unanswered(&question.value)),
                    None => output(out.state).map_err(Failed::Graph),
                }
            })
        };
        self.tools.retain(|served| served.tool.name != spec.name);
        self.tools.push(Served { tool: described(spec), run: Arc::new(run) });
        self
    }

    /// The hosts by whose names clients may reach it over HTTP; only this machine's own unless said.
    pub fn hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Serves one client over standard input and output, until it goes away. Nothing else may be printed meanwhile.
    pub async fn serve_stdio(self) -> io::Result<()> {
        self.serve_client(rmcp::transport::stdio()).await
    }

    /// Serves one client over any connection, until it goes away.
    pub async fn serve(self, pipe: impl AsyncRead + AsyncWrite + Send + 'static) -> io::Result<()> {
        self.serve_client(tokio::io::split(pipe)).await
    }

    /// Serves clients over streamable HTTP, at every path. It ends with an error of the listener only; drop the future
    /// to end it and all its runs.
    pub async fn serve_http(self, listener: TcpListener) -> io::Result<()> {
        http::serve(self, listener).await
    }

    async fn serve_client<R, W>(self, pipe: (R, W)) -> io::Result<()>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let service = ServiceExt::<RoleServer>::serve(Handler::new(self), pipe).await.map_err(io::Error::other)?;
        service.waiting().await?;
        Ok(())
    }
}

fn described(spec: ToolSpec) -> rmcp::model::Tool {
    let Value::Object(parameters) = spec.parameters else { unreachable!("the schema of arguments is an object") };
    rmcp::model::Tool::new(spec.name, spec.description, parameters)
}

/// What the model said last.
fn last_words(state: &impl Conversation) -> CallToolResult {
    let said = state.conversation().iter().rfind(|message| message.role() == Some(Role::Assistant));
    let said = said.map(|message| message.blocks().iter().filter_map(content::content).collect());
    CallToolResult::success(said.unwrap_or_default())
}

/// Data as a result; words stay words.
fn data(value: Value) -> CallToolResult {
    match value {
        Value::String(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        value @ Value::Object(_) => CallToolResult::structured(value),
        other => CallToolResult::success(vec![ContentBlock::text(other.to_string())]),
    }
}

fn unanswered(question: &Value) -> CallToolResult {
    let words = format!("it asks something that nobody can answer here: {question}");
    let mut result = CallToolResult::error(vec![ContentBlock::text(words)]);
    result.structured_content = Some(json!({ "question": question }));
    result
}
