//! What the code of `#[tool]` calls. Not part of the public API: it changes without notice.

use std::future::Future;
use std::pin::Pin;

pub use schemars;
pub use serde;
use serde::de::DeserializeOwned;
pub use serde_json::Value;

pub use crate::tool::{FromToolContext, IntoToolOutput, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

/// A call on its way.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// The arguments that the model gave.
pub fn arguments<A: DeserializeOwned>(args: Value) -> Result<A, ToolError> {
    match args {
        Value::String(text) => Err(ToolError::invalid(format!("the arguments are no JSON object: {text}"))),
        args => serde_json::from_value(args).map_err(|e| ToolError::invalid(e.to_string())),
    }
}
