//! What the `tools` stream shows of a call.
//!
//! Every try of a tool is told of. What a tool gave back is shown as the model will read it: after the middleware around
//! the call, which may take something out of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use superstep::{Context, Conversation, Error, Interrupted, ToolCall, ToolEvent};

use crate::message::to_langchain;
use crate::middleware::Middleware;
use crate::tool::{ToolError, ToolOutput};

/// A call, as the stream hears of it.
pub(super) struct CallEvents<'a, S: Conversation> {
    cx: &'a Context,
    call: &'a ToolCall,
    around: &'a [Arc<dyn Middleware<S>>],
    is_wanted: bool,
    /// A try has started, and its end was not told.
    is_open: AtomicBool,
}

impl<'a, S: Conversation> CallEvents<'a, S> {
    pub(super) fn new(cx: &'a Context, call: &'a ToolCall, around: &'a [Arc<dyn Middleware<S>>]) -> Self {
        Self { cx, call, around, is_wanted: cx.wants_tools(), is_open: AtomicBool::new(false) }
    }

    /// The tool is called with these arguments.
    pub(super) async fn started(&self, args: &Value) {
        if self.is_wanted {
            self.is_open.store(true, Ordering::Relaxed);
            self.cx.emit_tool(ToolEvent::started(&*self.call.id, &*self.call.name, Some(args.clone()))).await;
        }
    }

    /// A try has failed. One that stopped to ask has not: it starts again when the answer is there.
    pub(super) async fn failed(&self, error: &ToolError) {
        if let Some(event) = self.failure(error) {
            self.cx.emit_tool(event).await;
        }
    }

    /// What is to be told when the call came to its end, with all that is around it.
    pub(super) fn end(&self, result: &Result<ToolOutput, ToolError>) -> Option<ToolEvent> {
        match result {
            Err(error) => self.failure(error),
            Ok(output) if self.close() => Some(ToolEvent::finished(&*self.call.id, self.shown(output))),
            Ok(_) => None,
        }
    }

    fn failure(&self, error: &ToolError) -> Option<ToolEvent> {
        if !self.close() || is_pause(error) {
            return None;
        }
        let words = self.around.iter().rev().fold(error.to_string(), |words, layer| layer.tell_error(words));
        Some(ToolEvent::failed(&*self.call.id, words))
    }

    /// Whether a try has started whose end was not told; it is told now.
    fn close(&self) -> bool {
        self.is_open.swap(false, Ordering::Relaxed)
    }

    /// The message that answers the call, as LangChain writes it; of a command, the messages in its update.
    fn shown(&self, output: &ToolOutput) -> Value {
        match output.said_by_command::<S>() {
            Some(messages) => json!({ "update": { "messages": to_langchain(&messages) } }),
            None => to_langchain(&[output.answer(self.call)]).remove(0),
        }
    }
}

/// Whether a tool waits for an answer, or stopped because the run was asked to.
fn is_pause(error: &ToolError) -> bool {
    let ToolError::Failed(error) = error else { return false };
    error.is::<Interrupted>() || error.downcast_ref::<Error>().is_some_and(Error::is_drained)
}
