//! How a request to an MCP server can fail.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceError;
use rmcp::model::ErrorCode;
use superstep::BoxError;

use super::http;
use super::server::Address;
use crate::tool::ToolError;

/// Why an MCP server did not do what it was asked.
///
/// ```
/// use superstep_agent::mcp::McpServers;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let error = McpServers::new().read_resource("files", "file:///tea.txt").await.unwrap_err();
/// assert_eq!(error.server(), "files");
/// assert_eq!(error.to_string(), "MCP server `files` is not known; there are none");
/// # }
/// ```
pub struct McpError {
    server: Arc<str>,
    kind: Box<Kind>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Kind {
    #[error("cannot be reached (tried {tries} times): {source}")]
    Unreachable { tries: u32, source: BoxError },
    #[error("is described wrongly: {0}")]
    Misdescribed(&'static str),
    #[error("broke the connection before it answered ({0}); the next request connects again")]
    Lost(#[source] BoxError),
    #[error("answered with an error: {message} (code {code})")]
    Refused { code: i32, message: String },
    #[error("did not answer in {0:?}")]
    TimedOut(Duration),
    #[error("gave an answer that does not fit the request")]
    Unexpected,
    #[error("is not known; there are {0}")]
    Unknown(String),
    #[error("has a tool `{0}` like another one; use `ToolNames::PrefixedIfNeeded`")]
    SameName(String),
}

shown_in_words!(McpError);

impl McpError {
    pub(super) fn new(server: &Arc<str>, kind: Kind) -> Self {
        Self { server: server.clone(), kind: Box::new(kind) }
    }

    pub(super) fn of_service(server: &Arc<str>, error: ServiceError) -> Self {
        let kind = match error {
            ServiceError::McpError(error) => Kind::Refused { code: error.code.0, message: error.message.into_owned() },
            ServiceError::Timeout { timeout } => Kind::TimedOut(timeout),
            ServiceError::UnexpectedResponse => Kind::Unexpected,
            other => Kind::Lost(Box::new(other)),
        };
        Self::new(server, kind)
    }

    /// The same without what is secret in the address.
    pub(super) fn without_secrets(mut self, address: &Address) -> Self {
        if let Kind::Lost(error) = *self.kind {
            *self.kind = Kind::Lost(http::without_secrets(error, address));
        }
        self
    }

    /// The name of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Whether there is no connection: another try may succeed.
    pub fn is_connection(&self) -> bool {
        matches!(*self.kind, Kind::Unreachable { .. } | Kind::Lost(_))
    }

    /// Whether the server took too long.
    pub fn is_timeout(&self) -> bool {
        matches!(*self.kind, Kind::TimedOut(_))
    }

    /// The code of the server's own error, if it answered with one.
    pub fn code(&self) -> Option<i32> {
        match *self.kind {
            Kind::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// As the error of a tool: the model can do something about arguments that do not fit.
    pub(super) fn into_tool_error(self) -> ToolError {
        match *self.kind {
            Kind::Refused { code, message } if code == ErrorCode::INVALID_PARAMS.0 => ToolError::invalid(message),
            Kind::TimedOut(limit) => ToolError::TimedOut(limit),
            _ => ToolError::failed(self),
        }
    }
}

impl fmt::Display for McpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCP server `{}` {}", self.server, self.kind)
    }
}

impl std::error::Error for McpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&*self.kind)
    }
}
