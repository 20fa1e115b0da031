//! What code inside a running node can do without being handed a [`Context`].
//!
//! It is for what is called from many places, like models: their words reach whoever streams the run in `messages`
//! mode, however deep the call is. Work that a node gives to `tokio::spawn` is not inside of it any more.
//!
//! ```
//! use superstep::{current, AgentState, EventData, Message, MessageChunk, Mode, StateGraph, START};
//!
//! // Knows nothing of graphs.
//! async fn recite() -> Message {
//!     for word in ["to ", "be"] {
//!         current::emit_chunk(MessageChunk::text("m1", word)).await;
//!     }
//!     Message::assistant("to be").with_id("m1")
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = StateGraph::<AgentState>::new()
//!     .add_node("poet", |_: AgentState| async { vec![recite().await] })
//!     .add_edge(START, "poet")
//!     .compile()?;
//! let mut events = app.stream(()).modes([Mode::Messages]).start();
//! let mut heard = String::new();
//! while let Some(event) = events.next().await {
//!     if let EventData::Message(said) = event?.data {
//!         heard += &said.message.text();
//!     }
//! }
//! assert_eq!(heard, "to be");
//! # Ok(())
//! # }
//! ```

use std::future::Future;
use std::pin::Pin;

use crate::call::Context;
use crate::message::{Message, MessageChunk};
use crate::stream::{Mode, ToolEvent};

tokio::task_local! {
    static CONTEXT: Context;
}

/// Sends a message to whoever streams the run in `messages` mode; outside of a run, nothing happens.
pub async fn emit_message(message: Message) {
    if let Some(cx) = context() {
        cx.emit_message(message).await;
    }
}

/// Sends a piece of a message to whoever streams the run in `messages` mode; outside of a run, nothing happens.
/// It is a sign of life of the node, too.
pub async fn emit_chunk(chunk: MessageChunk) {
    if let Some(cx) = context() {
        cx.emit_chunk(chunk).await;
    }
}

/// Sends what happens to a call of a tool to whoever streams the run in `tools` mode; outside of a run, nothing happens.
///
/// ```
/// use superstep::{current, AgentState, EventData, Mode, StateGraph, ToolEvent, START};
///
/// // Knows nothing of graphs.
/// async fn look_up() {
///     current::emit_tool(ToolEvent::started("c1", "look_up", None)).await;
///     current::emit_tool(ToolEvent::finished("c1", "found")).await;
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new()
///     .add_node("clerk", |_: AgentState| look_up())
///     .add_edge(START, "clerk")
///     .compile()?;
/// let mut events = app.stream(()).mode(Mode::Tools).start();
/// let mut shown = Vec::new();
/// while let Some(event) = events.next().await {
///     if let EventData::Tool(event) = event?.data {
///         shown.push(event.to_json()["event"].clone());
///     }
/// }
/// assert_eq!(shown, ["tool-started", "tool-finished"]);
/// # Ok(())
/// # }
/// ```
pub async fn emit_tool(event: ToolEvent) {
    if let Some(cx) = context() {
        cx.emit_tool(event).await;
    }
}

/// Whether somebody waits for pieces of messages: a reader of the stream, or a limit on the node's silence.
pub fn wants_messages() -> bool {
    context().is_some_and(|cx| cx.task.pulse.is_some() || cx.task.run.hears(Mode::Messages))
}

/// Whether somebody streams the run in `tools` mode.
pub fn wants_tools() -> bool {
    context().is_some_and(|cx| cx.wants_tools())
}

fn context() -> Option<Context> {
    CONTEXT.try_with(Context::clone).ok()
}

/// Lets a future find its context.
pub(crate) fn inside<T>(
    cx: Context,
    future: Pin<Box<dyn Future<Output = T> + Send>>,
) -> Pin<Box<dyn Future<Output = T> + Send>>
where
    T: 'static,
{
    Box::pin(CONTEXT.scope(cx, future))
}
