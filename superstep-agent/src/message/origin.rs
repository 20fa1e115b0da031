//! Messages that were written by no model, tool or human, and how to tell.
//!
//! The mark is beside the message's words: no provider is told of it.

use superstep::{Message, MessageKind, ToolCall};

const WRITER: &str = "written_by";

/// The message, marked as written by a part of the agent.
pub(crate) fn written_by(message: Message, writer: &str) -> Message {
    message.with_rich(|rich| drop(rich.response.insert(WRITER.to_owned(), writer.into())))
}

/// Who wrote the message, if a part of the agent did.
pub(crate) fn writer(message: &Message) -> Option<&str> {
    match &message.kind {
        MessageKind::Rich(rich) => rich.response.get(WRITER)?.as_str(),
        _ => None,
    }
}

/// Whether this part of the agent wrote the message.
pub(crate) fn is_written_by(message: &Message, name: &str) -> bool {
    writer(message) == Some(name)
}

/// The answer to a call that was not carried out.
pub(crate) fn answer_instead(call: &ToolCall, words: impl Into<String>, is_error: bool, writer: &str) -> Message {
    let answer = Message::tool_result(&*call.id, words).with_name(&*call.name).with_rich(|rich| {
        if let Some(answer) = &mut rich.answer {
            answer.is_error = is_error;
        }
    });
    written_by(answer, writer)
}

/// Whether the message says that a call was not carried out.
pub(crate) fn refuses(message: &Message, call: &ToolCall) -> bool {
    message.answers() == Some(&*call.id) && message.is_error() && writer(message).is_some()
}
