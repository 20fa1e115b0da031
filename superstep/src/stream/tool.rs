//! Calls of tools, as the `tools` mode shows them.

use serde_json::{Value, json};

/// What happens to a call of a tool.
///
/// The library itself knows no tools: whoever calls one sends these, with
/// [`Context::emit_tool`](crate::Context::emit_tool) or [`current::emit_tool`](crate::current::emit_tool). A call that
/// stops to ask a human is told of when it starts again.
///
/// ```
/// use serde_json::json;
/// use superstep::ToolEvent;
/// let event = ToolEvent::started("c1", "search", Some(json!({ "q": "tea" })));
/// assert_eq!(event.call(), "c1");
/// assert_eq!(event.to_json(), json!({
///     "event": "tool-started", "tool_call_id": "c1", "tool_name": "search", "input": { "q": "tea" },
/// }));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolEvent {
    /// The tool is called.
    #[non_exhaustive]
    Started {
        /// The call.
        call: String,
        /// The tool.
        tool: String,
        /// Its arguments, if they are known.
        input: Option<Value>,
    },
    /// The tool gave out a piece of its result.
    #[non_exhaustive]
    Delta {
        /// The call.
        call: String,
        /// The piece.
        delta: Value,
    },
    /// The tool came to its end.
    #[non_exhaustive]
    Finished {
        /// The call.
        call: String,
        /// Its result.
        output: Value,
    },
    /// The tool failed.
    #[non_exhaustive]
    Failed {
        /// The call.
        call: String,
        /// Why.
        message: String,
    },
}

impl ToolEvent {
    /// The tool is called, with these arguments if they are known.
    pub fn started(call: impl Into<String>, tool: impl Into<String>, input: Option<Value>) -> Self {
        Self::Started { call: call.into(), tool: tool.into(), input }
    }

    /// The tool gave out a piece of its result.
    pub fn delta(call: impl Into<String>, delta: impl Into<Value>) -> Self {
        Self::Delta { call: call.into(), delta: delta.into() }
    }

    /// The tool came to its end.
    pub fn finished(call: impl Into<String>, output: impl Into<Value>) -> Self {
        Self::Finished { call: call.into(), output: output.into() }
    }

    /// The tool failed.
    pub fn failed(call: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed { call: call.into(), message: message.into() }
    }

    /// The id of the call.
    pub fn call(&self) -> &str {
        match self {
            Self::Started { call, .. }
            | Self::Delta { call, .. }
            | Self::Finished { call, .. }
            | Self::Failed { call, .. } => call,
        }
    }

    /// As LangGraph shows it: `event` is `tool-started`, `tool-output-delta`, `tool-finished` or `tool-error`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Started { call, tool, input } => {
                let mut event = json!({ "event": "tool-started", "tool_call_id": call, "tool_name": tool });
                input.iter().for_each(|input| event["input"] = input.clone());
                event
            }
            Self::Delta { call, delta } => {
                json!({ "event": "tool-output-delta", "tool_call_id": call, "delta": delta })
            }
            Self::Finished { call, output } => {
                json!({ "event": "tool-finished", "tool_call_id": call, "output": output })
            }
            Self::Failed { call, message } => {
                json!({ "event": "tool-error", "tool_call_id": call, "message": message })
            }
        }
    }
}
