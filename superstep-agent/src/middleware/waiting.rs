//! Calls that wait for a human's word, noted beside the message that makes them.
//!
//! The note is there before anybody is asked, and gone once there is an answer or the calls are carried out in spite of
//! it: where it stands, none of the calls was made. No provider is told of it.

use serde_json::Value;
use superstep::{Message, MessageKind, Role, ToolCall};

const WAITING: &str = "waiting_for_approval";

/// The message, of which these calls wait.
pub(super) fn waiting(message: Message, calls: &[String]) -> Message {
    message.with_rich(|rich| drop(rich.response.insert(WAITING.to_owned(), calls.into())))
}

/// The message, of which no call waits any more.
pub(super) fn settled(message: Message) -> Message {
    if waiting_calls(&message).is_none() {
        return message;
    }
    message.with_rich(|rich| drop(rich.response.remove(WAITING)))
}

/// The model's last message without its note, if it has one.
pub(crate) fn settled_last(messages: &[Message]) -> Option<Message> {
    let last = messages.iter().rfind(|message| message.role() == Some(Role::Assistant))?;
    waiting_calls(last).map(|_| settled(last.clone()))
}

/// Why a call of the message was certainly not made, if that is known.
pub(crate) fn why_not_called(message: &Message, call: &ToolCall) -> Option<&'static str> {
    let is_asked_about = waiting_calls(message)?.iter().any(|id| id == &*call.id);
    Some(if is_asked_about {
        "Not called: it waited for approval, and was not approved."
    } else {
        "Not called: a call beside it waited for approval, and was not approved."
    })
}

fn waiting_calls(message: &Message) -> Option<&Vec<Value>> {
    match &message.kind {
        MessageKind::Rich(rich) => rich.response.get(WAITING)?.as_array(),
        _ => None,
    }
}
