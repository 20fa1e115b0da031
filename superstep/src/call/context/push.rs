//! Messages that a node shows and writes in one call.

use serde_json::Value;

use super::{Context, lock};
use crate::error::Error;
use crate::message::Message;
use crate::state::erased::Writes;

/// A message as a write to a state whose type is not known here.
pub(crate) struct PushedMessage {
    pub(crate) write: Writes,
    /// The message as JSON, if the state's messages hold more than a [`Message`] can.
    pub(crate) whole: Option<Value>,
}

impl Context {
    /// Shows a message to whoever streams the run in `messages` mode, and writes it to the state's messages.
    ///
    /// It is written with what the node returns, before it, and merged by its id: the node need not return it, and may. It
    /// is not shown again. A message without an id gets one; the message that is written is given back. If the node
    /// fails, asks a human or is tried again, what it had pushed is not written.
    ///
    /// The state's messages are its only field of messages, or the one that is named `messages`.
    ///
    /// ```
    /// use superstep::{AgentState, BoxError, Context, Message, StateGraph, START};
    ///
    /// async fn greet(_: AgentState, cx: Context) -> Result<Vec<Message>, BoxError> {
    ///     cx.push_message(Message::assistant("one moment")).await?;
    ///     Ok(vec![Message::assistant("hello")])
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = StateGraph::<AgentState>::new().add_node("greet", greet).add_edge(START, "greet").compile()?;
    /// let said = app.invoke(()).await?.state.messages;
    /// assert_eq!(said.iter().map(Message::text).collect::<Vec<_>>(), ["one moment", "hello"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the state has no messages, or several fields of them of which none is named `messages`.
    pub async fn push_message(&self, message: Message) -> Result<Message, Error> {
        self.push(None, message).await
    }

    /// Shows a message and writes it, like [`push_message`](Context::push_message), to the field with this name.
    ///
    /// ```
    /// use superstep::{AgentState, BoxError, Context, Message};
    ///
    /// async fn greet(_: AgentState, cx: Context) -> Result<(), BoxError> {
    ///     cx.push_message_to("messages", Message::assistant("hello")).await?;
    ///     Ok(())
    /// }
    /// # let _ = superstep::StateGraph::<AgentState>::new().add_node("greet", greet);
    /// ```
    ///
    /// # Errors
    /// If the state has no such field, or it holds no messages.
    pub async fn push_message_to(&self, field: &str, message: Message) -> Result<Message, Error> {
        self.push(Some(field), message).await
    }

    async fn push(&self, field: Option<&str>, mut message: Message) -> Result<Message, Error> {
        crate::message::give_ids(std::slice::from_mut(&mut message));
        let Some(host) = &self.task.calls else {
            return Err(Error::invalid("messages can only be pushed inside a run"));
        };
        let pushed = host.push(field, message.clone()).map_err(|error| error.at(&self.task.node))?;
        lock(&self.task.pushed).extend(pushed.write);
        self.show(message.clone(), None, pushed.whole).await;
        Ok(message)
    }

    /// Takes the messages that were pushed since the attempt began.
    pub(crate) fn take_pushed(&self) -> Writes {
        std::mem::take(&mut *lock(&self.task.pushed))
    }
}

/// What a node wrote: the messages that it pushed, and what it returned.
pub(crate) fn with_pushed(context: Option<&Context>, returned: Writes) -> Writes {
    let Some(mut writes) = context.map(Context::take_pushed).filter(|pushed| !pushed.is_empty()) else {
        return returned;
    };
    writes.extend(returned);
    writes
}
