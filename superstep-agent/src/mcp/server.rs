//! What is known of an MCP server before it is connected to.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::model::ChatModel;

/// How an MCP server is reached, and how to deal with it.
///
/// ```
/// use std::time::Duration;
/// use superstep_agent::mcp::McpServer;
///
/// let local = McpServer::stdio("npx", ["-y", "@modelcontextprotocol/server-everything"])
///     .env("LOG_LEVEL", "debug")
///     .timeout(Duration::from_secs(30));
/// let remote = McpServer::http("https://example.org/mcp").bearer_token("secret").only(|tool| tool.starts_with("get_"));
/// assert!(!format!("{remote:?}").contains("secret"));
/// # let _ = local;
/// ```
#[derive(Clone)]
#[must_use = "a server does nothing until it is added to `McpServers`"]
pub struct McpServer {
    pub(super) reach: Reach,
    pub(super) timeout: Duration,
    pub(super) start_timeout: Duration,
    pub(super) tries: u32,
    pub(super) pause: Duration,
    pub(super) sampling: Option<Arc<dyn ChatModel>>,
    pub(super) keep: Option<Arc<dyn Fn(&str) -> bool + Send + Sync>>,
    /// A setting that this kind of server does not have.
    pub(super) mistake: Option<&'static str>,
}

/// The way to a server.
#[derive(Clone)]
pub(super) enum Reach {
    Stdio(Program),
    Http(Address),
    Pipe(Connect),
}

#[derive(Clone)]
pub(super) struct Program {
    pub(super) path: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: BTreeMap<OsString, OsString>,
    pub(super) folder: Option<PathBuf>,
}

#[derive(Clone)]
pub(super) struct Address {
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) token: Option<String>,
}

pub(super) type Connect =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Pipe>>> + Send>> + Send + Sync>;

/// Both directions of a connection.
pub(super) trait Pipe: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Pipe for T {}

impl McpServer {
    /// A program that is started and spoken to over its standard input and output.
    ///
    /// It gets none of our environment but what programs need to start (`PATH`, `HOME` and the like), so that no secret
    /// reaches it unasked; see [`env`](Self::env). What it writes to its standard error is logged.
    pub fn stdio<A: Into<OsString>>(program: impl Into<OsString>, args: impl IntoIterator<Item = A>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::new(Reach::Stdio(Program { path: program.into(), args, env: BTreeMap::new(), folder: None }))
    }

    /// A server at an address, over streamable HTTP.
    pub fn http(url: impl Into<String>) -> Self {
        Self::new(Reach::Http(Address { url: url.into(), headers: Vec::new(), token: None }))
    }

    /// A server behind any connection: a socket, or a pipe to another part of this program. The function is called for
    /// each connection.
    ///
    /// ```
    /// use superstep_agent::mcp::McpServer;
    /// let server = McpServer::pipe(|| async { tokio::net::TcpStream::connect("127.0.0.1:7000").await });
    /// # let _ = server;
    /// ```
    pub fn pipe<F, P>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<P>> + Send + 'static,
        P: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::new(Reach::Pipe(Arc::new(move || {
            let connecting = connect();
            Box::pin(async move { Ok(Box::new(connecting.await?) as Box<dyn Pipe>) })
        })))
    }

    fn new(reach: Reach) -> Self {
        Self {
            reach,
            timeout: Duration::from_mins(5),
            start_timeout: Duration::from_mins(1),
            tries: 3,
            pause: Duration::from_millis(200),
            sampling: None,
            keep: None,
            mistake: None,
        }
    }

    /// With a variable in the environment of the program.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        match &mut self.reach {
            Reach::Stdio(program) => drop(program.env.insert(name.into(), value.into())),
            _ => self.mistake = Some("`env` is for servers over stdio"),
        }
        self
    }

    /// With a working directory for the program.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        match &mut self.reach {
            Reach::Stdio(program) => program.folder = Some(folder.into()),
            _ => self.mistake = Some("`folder` is for servers over stdio"),
        }
        self
    }

    /// With a header in every request. Its value is not shown anywhere.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        match &mut self.reach {
            Reach::Http(address) => address.headers.push((name.into(), value.into())),
            _ => self.mistake = Some("`header` is for servers over HTTP"),
        }
        self
    }

    /// With a bearer token in every request. It is not shown anywhere.
    pub fn bearer_token(mut self, token: impl Into<String>) -> Self {
        match &mut self.reach {
            Reach::Http(address) => address.token = Some(token.into()),
            _ => self.mistake = Some("`bearer_token` is for servers over HTTP"),
        }
        self
    }

    /// How long a request may take without an answer or a sign of progress; five minutes unless said.
    ///
    /// A call that takes longer is cancelled at the server and fails with [`ToolError::TimedOut`](crate::ToolError).
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// How long the server may take to start and introduce itself; a minute unless said.
    pub fn start_timeout(mut self, limit: Duration) -> Self {
        self.start_timeout = limit;
        self
    }

    /// How often a connection is tried before a request fails, and how long to wait after the first failure; the pause
    /// doubles each time. Three times and 200 milliseconds unless said.
    pub fn tries(mut self, tries: u32, first_pause: Duration) -> Self {
        (self.tries, self.pause) = (tries.max(1), first_pause);
        self
    }

    /// With a model that the server may ask; without one it is refused.
    pub fn sampling(mut self, model: impl ChatModel) -> Self {
        self.sampling = Some(Arc::new(model));
        self
    }

    /// With those of its tools only whose names a function lets through.
    pub fn only(mut self, keep: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.keep = Some(Arc::new(keep));
        self
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("McpServer");
        match &self.reach {
            Reach::Stdio(program) => {
                shown.field("program", &program.path).field("args", &program.args);
                shown.field("env", &program.env.keys().collect::<Vec<_>>()).field("folder", &program.folder)
            }
            Reach::Http(address) => {
                let headers: Vec<_> = address.headers.iter().map(|(name, _)| name).collect();
                shown.field("url", &super::http::shown(&address.url)).field("headers", &headers)
            }
            Reach::Pipe(_) => shown.field("pipe", &true),
        };
        shown.field("timeout", &self.timeout).field("tries", &self.tries).finish_non_exhaustive()
    }
}
