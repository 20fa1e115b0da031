//! Messages as LangChain writes them.

mod read;
mod write;

use serde_json::Value;
use superstep::Message;

use super::{FormError, each};

/// Stands for all messages where LangChain removes them.
const ALL: &str = "__remove_all__";

/// Writes a conversation as LangChain's JSON.
///
/// What a provider wants back is in `additional_kwargs`, what it told about its answer in `response_metadata`. Messages
/// of one text have it as `content`; others have LangChain's content blocks.
///
/// ```
/// use superstep::Message;
/// use superstep_agent::message::to_langchain;
/// let json = to_langchain(&[Message::user("hi").with_id("1")]);
/// assert_eq!((&json[0]["type"], &json[0]["content"]), (&"human".into(), &"hi".into()));
/// ```
pub fn to_langchain(messages: &[Message]) -> Vec<Value> {
    messages.iter().map(write::message).collect()
}

/// Reads a conversation of LangChain's JSON: plain, as `messages_to_dict` writes it, or as a serialised constructor.
///
/// # Errors
/// If something is no message.
///
/// ```
/// use serde_json::json;
/// use superstep::Message;
/// use superstep_agent::message::from_langchain;
/// let messages = from_langchain(&[
///     json!({"type": "system", "content": "Be brief."}),
///     json!({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"],
///            "kwargs": {"content": "hi", "type": "human"}}),
/// ])?;
/// assert_eq!(messages, [Message::system("Be brief."), Message::user("hi")]);
/// # Ok::<(), superstep_agent::message::FormError>(())
/// ```
pub fn from_langchain(messages: &[Value]) -> Result<Vec<Message>, FormError> {
    each(messages, read::message)
}
