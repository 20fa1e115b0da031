//! Which calls of a message are to be carried out.

use superstep::{BoxError, Message, ToolCall};

/// The calls of the model's last message that no tool has answered.
///
/// # Errors
/// If there is no message of a model.
pub(crate) fn open_calls(messages: &[Message]) -> Result<Vec<ToolCall>, BoxError> {
    let last = messages.iter().rposition(|m| m.role() == Some(superstep::Role::Assistant));
    let Some(last) = last else {
        return Err("there is no message of a model whose tool calls could be carried out".into());
    };
    let is_open = |call: &&ToolCall| !messages[last + 1..].iter().any(|m| m.answers() == Some(&*call.id));
    Ok(messages[last].tool_calls().filter(is_open).cloned().collect())
}

/// The calls, or only the first that hands the conversation over: after it, nobody would hear of the others.
pub(crate) fn or_only_leaving(mut calls: Vec<ToolCall>, leaving: &[String]) -> Vec<ToolCall> {
    match calls.iter().position(|call| leaving.contains(&call.name)) {
        Some(place) => vec![calls.swap_remove(place)],
        None => calls,
    }
}
