//! Conversations that a provider accepts: every tool call has its answer, and has it at once.

use crate::message::answer_instead;
use superstep::{Message, ToolCall};

use crate::middleware::why_not_called;

/// The same conversation, in which every result stands directly behind its call, and calls that were cut off are
/// answered too.
///
/// A tool may say more than its result. A run that failed or was cancelled in the middle of its tools, and then went on
/// with new input, leaves calls without results; whether they had an effect is not known then. Calls that waited for a
/// human's word had none.
pub(super) fn with_all_answers(messages: &[Message]) -> Vec<Message> {
    let mut taken = vec![false; messages.len()];
    let mut complete = Vec::with_capacity(messages.len() + 1);
    for (place, message) in messages.iter().enumerate() {
        if taken[place] {
            continue;
        }
        complete.push(message.clone());
        for call in message.tool_calls() {
            match result_of(call, place, messages, &taken) {
                Some(result) => {
                    taken[result] = true;
                    complete.push(messages[result].clone());
                }
                None => complete.push(without_result(message, call)),
            }
        }
    }
    complete
}

/// The conversation with the answers that are missing; nothing if none is.
pub(super) fn repaired(messages: &[Message]) -> Option<Vec<Message>> {
    let complete = with_all_answers(messages);
    (complete.len() > messages.len()).then_some(complete)
}

/// Where the result of a call is. Ids may come again, so it is looked for up to the next call of that id.
fn result_of(call: &ToolCall, place: usize, messages: &[Message], taken: &[bool]) -> Option<usize> {
    let later = messages.iter().enumerate().skip(place + 1);
    let until = later.take_while(|(_, message)| message.tool_calls().all(|other| other.id != call.id));
    let mut results = until.filter(|(at, message)| !taken[*at] && message.answers() == Some(&*call.id));
    results.next().map(|(at, _)| at)
}

fn without_result(message: &Message, call: &ToolCall) -> Message {
    let unknown = "There is no result: this call or one beside it failed or was cancelled. It may have taken effect all the same.";
    answer_instead(call, why_not_called(message, call).unwrap_or(unknown), true, "agent")
}
