//! What a tool knows of the run around it.

use std::any::{Any, type_name};
use std::sync::Arc;

use serde::Serialize;
use superstep::{Context, Runtime, State, StoreHandle, StreamWriter, ToolCall, ToolEvent};

use super::ToolError;

/// The surroundings of a tool call: the call itself, the state, and the context of the node that calls.
///
/// The model sees nothing of it.
///
/// ```
/// use superstep::AgentState;
/// use superstep_agent::{ToolContext, ToolError};
///
/// async fn remember(fact: String, cx: &ToolContext) -> Result<String, ToolError> {
///     let state = cx.state::<AgentState>()?;
///     cx.context().emit(serde_json::json!({ "fact": fact })).await;
///     Ok(format!("noted after {} messages", state.messages.len()))
/// }
/// ```
#[derive(Clone)]
pub struct ToolContext {
    cx: Context,
    call: Arc<ToolCall>,
    state: Arc<dyn Any + Send + Sync>,
    state_type: &'static str,
}

crate::debug::debug_parts!([] ToolContext, "ToolContext", this => { call: this.call, state: this.state_type });

impl ToolContext {
    /// The surroundings of a call out of a node over `S`. What the tool asks is asked in a
    /// [scope](Context::scoped) of the call, from its first question on.
    #[expect(clippy::needless_pass_by_value, reason = "the context is meant to be kept")]
    pub fn new<S: State>(cx: Context, call: ToolCall, state: Arc<S>) -> Self {
        let cx = cx.scoped(&call.id);
        Self { cx, call: Arc::new(call), state, state_type: type_name::<S>() }
    }

    /// The call.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// The context of the node: questions to humans, events, store, cancellation. Answers come back to the call that
    /// asked, however often it is tried and whatever runs beside it.
    pub fn context(&self) -> &Context {
        &self.cx
    }

    /// The state at the beginning of the step.
    pub fn state<S: State>(&self) -> Result<Arc<S>, ToolError> {
        self.state.clone().downcast().map_err(|_| {
            let (wanted, is) = (type_name::<S>(), self.state_type);
            ToolError::failed(format!("it wants the state `{wanted}`, but the graph's state is `{is}`"))
        })
    }

    /// Sends a piece of the result to whoever streams the run in `tools` mode, before the tool has come to its end. If
    /// nobody does, nothing happens.
    ///
    /// ```
    /// use superstep_agent::ToolContext;
    ///
    /// async fn count(to: u32, cx: &ToolContext) -> String {
    ///     for n in 1..=to {
    ///         cx.emit_output_delta(n).await;
    ///     }
    ///     format!("counted to {to}")
    /// }
    /// ```
    pub async fn emit_output_delta(&self, delta: impl Serialize) {
        if !self.cx.wants_tools() {
            return;
        }
        match serde_json::to_value(delta) {
            Ok(delta) => self.cx.emit_tool(ToolEvent::delta(&*self.call.id, delta)).await,
            Err(error) => tracing::warn!(tool = self.call.name, %error, "a piece of a result cannot be encoded"),
        }
    }

    /// A key that is the same on every attempt of this call, for services that must not do things twice.
    pub fn idempotency_key(&self) -> String {
        format!("{}-{}", self.cx.idempotency_key(), self.call.id)
    }
}

/// What the arguments of a tool function marked `#[inject]` can be.
///
/// ```
/// use superstep_agent::tool::FromToolContext;
/// fn can_be_injected<T: FromToolContext>() {}
/// can_be_injected::<superstep::Context>();
/// can_be_injected::<std::sync::Arc<superstep::AgentState>>();
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool cannot be given `{Self}`",
    note = "`#[inject]` gives `ToolContext`, `Context`, `ToolCall`, `Arc<State>`, `StoreHandle`, `StreamWriter` or `Runtime<T>`; without it, the model gives the argument"
)]
pub trait FromToolContext: Sized {
    /// Takes it out of the surroundings of the call.
    fn from_tool_context(cx: &ToolContext) -> Result<Self, ToolError>;
}

impl FromToolContext for ToolContext {
    fn from_tool_context(cx: &ToolContext) -> Result<Self, ToolError> {
        Ok(cx.clone())
    }
}

impl FromToolContext for Context {
    fn from_tool_context(cx: &ToolContext) -> Result<Self, ToolError> {
        Ok(cx.cx.clone())
    }
}

impl FromToolContext for ToolCall {
    fn from_tool_context(cx: &ToolContext) -> Result<Self, ToolError> {
        Ok(ToolCall::clone(&cx.call))
    }
}

impl<S: State> FromToolContext for Arc<S> {
    fn from_tool_context(cx: &ToolContext) -> Result<Self, ToolError> {
        cx.state()
    }
}

macro_rules! as_nodes_ask {
    ($(<$($generic:ident: $bound:path),*> $ty:ty),* $(,)?) => {$(
        impl<$($generic: $bound + Send + Sync),*> FromToolContext for $ty {
            fn from_tool_context(cx: &ToolContext) -> Result<Self, ToolError> {
                superstep::FromContext::from_context(&cx.cx).map_err(ToolError::failed)
            }
        }
    )*};
}

as_nodes_ask!(<> StoreHandle, <> StreamWriter, <T: Any> Runtime<T>);
