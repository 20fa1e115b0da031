//! How a tool can fail.

use std::time::Duration;

use superstep::BoxError;

/// Why a tool gave no result.
///
/// ```
/// use superstep_agent::ToolError;
/// assert!(ToolError::invalid("`city` is missing").is_invalid());
/// assert_eq!(ToolError::failed("the server is down").to_string(), "the server is down");
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The arguments do not fit; the model can do better.
    #[error("{0}")]
    InvalidArguments(String),
    /// The tool took too long.
    #[error("it took longer than {0:?}")]
    TimedOut(Duration),
    /// The tool failed.
    #[error("{0}")]
    Failed(#[source] BoxError),
}

shown_in_words!(ToolError);

impl ToolError {
    /// Arguments that do not fit, and why.
    pub fn invalid(why: impl Into<String>) -> Self {
        ToolError::InvalidArguments(why.into())
    }

    /// A failure.
    pub fn failed(error: impl Into<BoxError>) -> Self {
        ToolError::Failed(error.into())
    }

    /// Whether the arguments did not fit.
    pub fn is_invalid(&self) -> bool {
        matches!(self, ToolError::InvalidArguments(_))
    }

    /// What kind of failure it is, without its words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            ToolError::InvalidArguments(_) => "invalid arguments",
            ToolError::TimedOut(_) => "timed out",
            ToolError::Failed(_) => "failed",
        }
    }
}
