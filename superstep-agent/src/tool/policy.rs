//! What becomes of a tool's error.

use std::fmt;
use std::sync::Arc;

use superstep::{BoxError, Interrupted, ToolCall};

use super::ToolError;

/// Whether the model is told of a tool's error, or the run fails with it.
///
/// A question to a human is no error: it always pauses the run.
///
/// ```
/// use superstep::AgentState;
/// use superstep_agent::{OnToolError, ToolNode};
/// let node = ToolNode::<AgentState>::new(()).on_error("That did not work. Try something else.");
/// let node = ToolNode::<AgentState>::new(()).on_error(OnToolError::handler(|error, call| {
///     (call.name == "search").then(|| format!("the search failed: {error}"))
/// }));
/// # let _ = node;
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum OnToolError {
    /// The model is told that its arguments do not fit; other errors fail the run.
    #[default]
    TellInvalid,
    /// The model is told of every error.
    Tell,
    /// Every error fails the run.
    Raise,
    /// The model is told this.
    Say(String),
    /// The model is told what the function says, if it says something; otherwise the error fails the run.
    Handler(ErrorHandler),
}

/// Says what the model is told of an error.
pub type ErrorHandler = Arc<dyn Fn(&ToolError, &ToolCall) -> Option<String> + Send + Sync>;

impl OnToolError {
    /// The model is told what a function says.
    pub fn handler(handler: impl Fn(&ToolError, &ToolCall) -> Option<String> + Send + Sync + 'static) -> Self {
        OnToolError::Handler(Arc::new(handler))
    }

    /// What the model is told, or what the run fails with.
    pub(crate) fn answer(&self, error: ToolError, call: &ToolCall) -> Result<String, BoxError> {
        let words = match self {
            _ if is_question(&error) => None,
            OnToolError::TellInvalid | OnToolError::Tell if error.is_invalid() => Some(invalid_arguments(&error, call)),
            OnToolError::TellInvalid | OnToolError::Raise => None,
            OnToolError::Tell => Some(format!("Error: {error}\n Please fix your mistakes.")),
            OnToolError::Say(words) => Some(words.clone()),
            OnToolError::Handler(handler) => handler(&error, call),
        };
        words.ok_or_else(|| named(error, call))
    }
}

fn is_question(error: &ToolError) -> bool {
    matches!(error, ToolError::Failed(error) if error.is::<Interrupted>())
}

fn invalid_arguments(error: &ToolError, call: &ToolCall) -> String {
    let (name, args) = (&call.name, &call.args);
    format!(
        "Error invoking tool '{name}' with kwargs {args} with error:\n {error}\n Please fix the error and try again."
    )
}

pub(crate) fn unknown_tool(name: &str, known: &[String]) -> String {
    format!("Error: {name} is not a valid tool, try one of [{}].", known.join(", "))
}

/// The error with the name of its tool; errors that mean something to the graph stay what they are.
fn named(error: ToolError, call: &ToolCall) -> BoxError {
    match error {
        ToolError::Failed(error) if error.is::<Interrupted>() || error.is::<superstep::Error>() => error,
        error => Box::new(FailedTool { tool: call.name.clone(), error }),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("tool `{tool}` failed: {error}")]
struct FailedTool {
    tool: String,
    #[source]
    error: ToolError,
}

impl From<&str> for OnToolError {
    fn from(words: &str) -> Self {
        OnToolError::Say(words.to_owned())
    }
}

impl fmt::Debug for OnToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnToolError::TellInvalid => f.write_str("TellInvalid"),
            OnToolError::Tell => f.write_str("Tell"),
            OnToolError::Raise => f.write_str("Raise"),
            OnToolError::Say(words) => f.debug_tuple("Say").field(words).finish(),
            OnToolError::Handler(_) => f.write_str("Handler"),
        }
    }
}
