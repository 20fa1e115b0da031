//! What tools give back.

use std::any::Any;
use std::fmt;

use serde::Serialize;
use serde_json::Value;
use superstep::{
    Block, BoxError, Command, Conversation, Message, Put, RichMessage, Role, State, ToolAnswer, ToolCall, Update,
};

use super::ToolError;
use crate::message::Tally;

/// The result of a tool: what the model reads, what it does not, and what happens to the graph.
///
/// ```
/// use superstep_agent::ToolOutput;
/// let output = ToolOutput::text("3 rows").artifact(serde_json::json!([[1], [2], [3]]));
/// assert_eq!(output.as_text(), "3 rows");
/// ```
#[derive(Debug)]
pub struct ToolOutput {
    blocks: Vec<Block>,
    artifact: Option<Value>,
    is_error: bool,
    command: Option<AnyCommand>,
    took: Option<Tally>,
}

/// A command for the graph that the tool runs in; its state's type is known there.
pub(crate) struct AnyCommand {
    command: Box<dyn Any + Send>,
    /// The state it is for.
    state: &'static str,
}

impl fmt::Debug for AnyCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Command")
    }
}

impl ToolOutput {
    /// Words for the model.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks(vec![Block::text(text)])
    }

    /// Words, pictures or other parts for the model.
    pub fn blocks(blocks: Vec<Block>) -> Self {
        Self { blocks, artifact: None, is_error: false, command: None, took: None }
    }

    /// Words for the model that tell of an error.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// With something that is kept beside the words, and not shown to the model.
    pub fn artifact(mut self, artifact: Value) -> Self {
        self.artifact = Some(artifact);
        self
    }

    /// With a command for the graph that the tool runs in.
    pub fn command<S: State>(mut self, command: Command<S>) -> Self {
        self.command = Some(AnyCommand { command: Box::new(command), state: std::any::type_name::<S>() });
        self
    }

    /// With what models and tools were asked for it, which limits count.
    pub(crate) fn taking(mut self, took: Tally) -> Self {
        self.took = Some(took);
        self
    }

    /// The same, telling of an error or not.
    #[cfg(feature = "mcp")]
    pub(crate) fn of_error(mut self, is_error: bool) -> Self {
        self.is_error = is_error;
        self
    }

    /// The words in it.
    pub fn as_text(&self) -> String {
        self.blocks.iter().filter_map(Block::as_text).collect()
    }

    /// What the model reads, and what is kept beside it.
    pub(crate) fn parts_mut(&mut self) -> (&mut [Block], Option<&mut Value>) {
        (&mut self.blocks, self.artifact.as_mut())
    }

    /// Changes the messages that its command says in a graph over `S`.
    pub(crate) fn change_messages<S: Conversation, E>(
        mut self,
        change: impl Fn(Message) -> Result<Message, E>,
    ) -> Result<Self, E> {
        let Some(AnyCommand { command, state }) = self.command.take() else { return Ok(self) };
        let command = match command.downcast::<Command<S>>() {
            Ok(command) => Box::new(command.map_writes(|writes| changed::<S, E>(&writes, change))?),
            Err(other) => other,
        };
        self.command = Some(AnyCommand { command, state });
        Ok(self)
    }

    /// Whether it has nothing for the model.
    pub(crate) fn is_silent(&self) -> bool {
        self.blocks.is_empty() && self.artifact.is_none()
    }

    /// The message that answers a call, and the command, if there is one.
    pub(crate) fn into_answer(mut self, call: &ToolCall) -> (Message, Option<AnyCommand>) {
        let command = self.command.take();
        (self.answer(call), command)
    }

    /// The message that answers a call.
    pub(crate) fn answer(&self, call: &ToolCall) -> Message {
        let mut rich = RichMessage::new(Role::Tool, self.blocks.clone());
        let mut answer = ToolAnswer::new(&*call.id);
        (answer.is_error, answer.artifact) = (self.is_error, self.artifact.clone());
        (rich.name, rich.answer) = (Some(call.name.clone()), Some(answer));
        let message = Message::from(rich);
        match &self.took {
            Some(took) => took.beside(message),
            None => message,
        }
    }

    /// The messages that its command says in a graph over `S`, if it has one and says nothing itself.
    pub(crate) fn said_by_command<S: State>(&self) -> Option<Vec<Message>> {
        let command = self.command.as_ref().filter(|_| self.is_silent())?;
        let writes = command.command.downcast_ref::<Command<S>>()?.writes();
        Some(writes.puts().iter().flat_map(|put| S::messages(&put.write)).collect())
    }
}

/// The same writes, with other messages in the conversation.
fn changed<S: Conversation, E>(
    writes: &Update<S>,
    change: impl Fn(Message) -> Result<Message, E>,
) -> Result<Update<S>, E> {
    let mut update = Update::new();
    for put in writes.puts() {
        let messages = S::messages(&put.write).into_iter().map(&change).collect::<Result<Vec<_>, E>>()?;
        let said = S::say(messages);
        let same_field = |with: &&Put<S::Write>| S::field_of(&(), &with.write) == S::field_of(&(), &put.write);
        let with = said.puts().first().filter(same_field).unwrap_or(put);
        update = update.put(put.clone().map(|_| with.write.clone()));
    }
    Ok(update)
}

impl AnyCommand {
    /// The command of a tool, if it is for a graph over `S`.
    pub(crate) fn of<S: State>(self, tool: &str) -> Result<Command<S>, ToolError> {
        let (here, there) = (std::any::type_name::<S>(), self.state);
        self.command.downcast().map(|command| *command).map_err(|_| {
            ToolError::failed(format!(
                "the command of tool `{tool}` is for a graph over `{there}`; here it is `{here}`"
            ))
        })
    }
}

/// What a tool function may return.
///
/// ```
/// use superstep_agent::{IntoToolOutput, Json};
/// assert_eq!("done".into_tool_output().unwrap().as_text(), "done");
/// assert_eq!(Json(vec![1, 2]).into_tool_output().unwrap().as_text(), "[1,2]");
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "return text, a number, a `serde_json::Value`, `Json(value)` for anything that serialises, `ToolOutput`, `Command<State>`, or a `Result` of one of these"
)]
pub trait IntoToolOutput {
    /// Turns it into the tool's result.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

/// Data as a tool's result: the model reads it as JSON.
///
/// ```
/// # use superstep_agent::Json;
/// async fn cities() -> Json<Vec<&'static str>> { Json(vec!["Oslo", "Rome"]) }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        serde_json::to_string(&self.0).map(ToolOutput::text).map_err(ToolError::failed)
    }
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl<S: State> IntoToolOutput for Command<S> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::blocks(Vec::new()).command(self))
    }
}

impl<T: IntoToolOutput, E: Into<BoxError>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        match self {
            Ok(output) => output.into_tool_output(),
            Err(error) => Err(match error.into().downcast::<ToolError>() {
                Ok(error) => *error,
                Err(error) => ToolError::Failed(error),
            }),
        }
    }
}

impl IntoToolOutput for Value {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(match self {
            Value::String(text) => text,
            other => other.to_string(),
        }))
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("done"))
    }
}

macro_rules! as_text {
    ($($ty:ty),*) => {$(
        impl IntoToolOutput for $ty {
            fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
                Ok(ToolOutput::text(self.to_string()))
            }
        }
    )*};
}

as_text!(String, &str, bool, i8, i16, i32, i64, u8, u16, u32, u64, usize, f32, f64);
