//! Conversations that a provider accepts: every tool call has its answer.

use superstep::{Message, ToolCall};

/// The same conversation, in which calls that were cut off are answered too.
///
/// A run that was cancelled in the middle of its tools, and then went on with a new question, leaves such calls.
pub(super) fn with_all_answers(messages: &[Message]) -> Vec<Message> {
    let mut complete = Vec::with_capacity(messages.len() + 1);
    for (place, message) in messages.iter().enumerate() {
        complete.push(message.clone());
        let open = message.tool_calls().filter(|call| !is_answered(call, &messages[place + 1..]));
        complete.extend(open.map(cancelled));
    }
    complete
}

fn is_answered(call: &ToolCall, later: &[Message]) -> bool {
    later.iter().any(|message| message.answers() == Some(&*call.id))
}

fn cancelled(call: &ToolCall) -> Message {
    let words = "The call was cancelled before it had a result.";
    Message::tool_result(&*call.id, words).with_name(&*call.name).with_rich(|message| {
        if let Some(answer) = &mut message.answer {
            answer.is_error = true;
        }
    })
}
