//! Chat messages as JSON: the form that dynamic states hold.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Block, Message, MessageKind, MessageLike, RichMessage, Role, ToolCall, Usage};
use crate::error::CodecError;

impl MessageLike for Value {
    fn id(&self) -> Option<&str> {
        self.get("id")?.as_str()
    }
    fn set_id(&mut self, id: String) {
        if let Value::Object(map) = self {
            map.insert("id".to_owned(), Value::String(id));
        }
    }
    fn is_removal(&self) -> bool {
        self.get("type").and_then(Value::as_str) == Some("remove")
    }
    fn removes_all(&self) -> bool {
        self.is_removal() && self.id() == Some("__remove_all__")
    }
}

pub(crate) fn each_message(value: &mut Value, mut f: impl FnMut(&mut Value)) {
    match value {
        Value::Array(list) => list.iter_mut().filter(|v| v.is_object()).for_each(f),
        value @ Value::Object(_) => f(value),
        _ => {}
    }
}

/// Texts and pairs of role and content become messages before they get their ids.
pub(crate) fn texts_to_messages(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(text_to_message),
        one => text_to_message(one),
    }
}

fn text_to_message(value: &mut Value) {
    // What is no message is left as it is, and refused when it is merged.
    if (value.is_string() || value.is_array())
        && let Ok(message) = normal_message(value.clone())
    {
        *value = message;
    }
}

/// The messages that a value is or lists.
pub(crate) fn messages_in(value: &Value) -> impl Iterator<Item = &Value> {
    let listed = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    listed.iter().filter(|v| is_message(v))
}

/// Whether a value is a message in its normal form, as opposed to a `{role, content}` pair.
fn is_message(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str);
    matches!(kind, Some("human" | "ai" | "system" | "tool")) && value.get("content").is_some()
}

/// A chat message in the form that dynamic states hold: `{type, content, ..}`, from a text, `[role, content]` or
/// `{role, content, ..}`.
///
/// ```
/// use serde_json::json;
/// use superstep::normal_message;
///
/// let message = normal_message(json!({ "role": "assistant", "content": "hi", "name": "Ada" }))?;
/// assert_eq!(message, json!({ "type": "ai", "content": "hi", "name": "Ada" }));
/// assert_eq!(normal_message(json!("hi"))?, json!({ "type": "human", "content": "hi" }));
/// assert_eq!(normal_message(json!(["ai", "hi"]))?, json!({ "type": "ai", "content": "hi" }));
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// If it is none of these, its role is not known, it has no content, or it is a tool's and has no `tool_call_id`.
pub fn normal_message(value: Value) -> Result<Value, String> {
    let mut map = match value {
        Value::Object(map) => map,
        Value::String(text) => return Ok(json!({ "type": "human", "content": text })),
        Value::Array(pair) => pair_to_map(pair)?,
        other => return Err(format!("{} is not a message", kind_of(&other))),
    };
    if let Some(Value::Number(number)) = map.get("id") {
        let text = number.to_string();
        map.insert("id".to_owned(), Value::String(text));
    }
    let role = map.remove("role").or_else(|| map.remove("type"));
    let kind = match role.as_ref().and_then(Value::as_str) {
        Some("user" | "human") => "human",
        Some("assistant" | "ai") => "ai",
        Some("system" | "developer") => "system",
        Some("tool") => "tool",
        Some("remove") => "remove",
        _ => return Err(unknown_role(role)),
    };
    map.insert("type".to_owned(), json!(kind));
    if kind == "remove" {
        return Ok(Value::Object(map));
    }
    normal_content(&mut map)?;
    if kind == "tool" && map.get("tool_call_id").is_none_or(Value::is_null) {
        return Err("a tool's message needs the `tool_call_id` of the call that it answers".to_owned());
    }
    for call in map.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(call) = call {
            normal_call(call)?;
        }
    }
    Ok(Value::Object(map))
}

/// A call as `{name, args, id}`; the APIs of models also have it as `{id, function: {name, arguments}}`.
fn normal_call(call: &mut Map<String, Value>) -> Result<(), String> {
    if let Some(Value::Object(mut function)) = call.remove("function") {
        let arguments = match function.remove("arguments").unwrap_or_default() {
            Value::String(text) => serde_json::from_str(&text)
                .map_err(|error| format!("the `arguments` of a tool call are not JSON: {error}"))?,
            arguments => arguments,
        };
        call.insert("name".to_owned(), function.remove("name").unwrap_or_default());
        call.insert("args".to_owned(), arguments);
    }
    call.insert("type".to_owned(), json!("tool_call"));
    Ok(())
}

/// The message that `[role, content]` stands for.
fn pair_to_map(pair: Vec<Value>) -> Result<Map<String, Value>, String> {
    match <[Value; 2]>::try_from(pair) {
        Ok([_, Value::Null]) => Err(NO_CONTENT.to_owned()),
        Ok([role, content]) => Ok(Map::from_iter([("role".to_owned(), role), ("content".to_owned(), content)])),
        Err(list) => Err(format!("a list of {} is not a message; write `[role, content]`", list.len())),
    }
}

fn unknown_role(role: Option<Value>) -> String {
    let known = "`user`, `assistant`, `system`, `developer` or `tool`";
    match role {
        Some(role) => format!("a message's `role` is {known}, not {role}"),
        None => format!("a message needs a `role`: {known}"),
    }
}

const NO_CONTENT: &str = "a message needs `content`; an object without words has the content null or an empty text";

/// Content is text or a list of parts; a message that has only calls has the content null, which counts as no words.
fn normal_content(message: &mut Map<String, Value>) -> Result<(), String> {
    match message.get_mut("content") {
        None => Err(NO_CONTENT.to_owned()),
        Some(Value::String(_)) => Ok(()),
        Some(content) if content.is_null() || content.as_array().is_some_and(Vec::is_empty) => {
            *content = json!("");
            Ok(())
        }
        Some(Value::Array(parts)) if parts.iter().all(|part| part.is_string() || part.is_object()) => Ok(()),
        Some(other) => Err(format!("a message's `content` is text or a list of parts, not {other}")),
    }
}

/// The messages that JSON gives, one or a list: each as serde writes it, or as LangChain and the APIs of models have it, a
/// bare text included.
pub(crate) fn messages_from_json(value: &Value) -> Result<Vec<Message>, CodecError> {
    match value {
        Value::Array(list) if !is_pair(list) => list.iter().map(one_from_json).collect(),
        one => Ok(vec![one_from_json(one)?]),
    }
}

/// `[role, content]`.
fn is_pair(list: &[Value]) -> bool {
    matches!(list, [Value::String(role), Value::String(_)] if normal_message(json!({ "role": role, "content": "" })).is_ok())
}

fn one_from_json(value: &Value) -> Result<Message, CodecError> {
    let own = match Message::deserialize(value) {
        Ok(message) => return Ok(message),
        Err(own) => own,
    };
    let normal = normal_message(value.clone()).map_err(|why| CodecError::new(format!("{why} ({own})")))?;
    let is_text = |part: &Value| part.is_string() || part.get("type").is_some_and(|kind| kind == "text");
    if normal.get("content").and_then(Value::as_array).is_some_and(|parts| !parts.iter().all(is_text)) {
        return Err(CodecError::new("a message whose parts are not all text is given as serde writes a `Message`"));
    }
    match (normal.is_removal(), normal.removes_all(), normal.id()) {
        (true, true, _) => Ok(Message::remove_all()),
        (true, false, Some(id)) => Ok(Message::remove(id)),
        (true, false, None) => Err(CodecError::new("a removal needs the `id` of the message that it removes")),
        (false, ..) => Ok(message_from_json(&normal)),
    }
}

/// A JSON message as a [`Message`]; of content in parts, the texts.
pub(crate) fn message_from_json(value: &Value) -> Message {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let content = match value.get("content") {
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|p| p.as_str().or_else(|| p.get("text")?.as_str())).collect()
        }
        _ => text("content"),
    };
    let message = match value.get("type").and_then(Value::as_str) {
        Some("human") => Message::user(content),
        Some("system") => Message::system(content),
        Some("tool") => Message::tool_result(text("tool_call_id"), content),
        _ => match calls_from_json(value.get("tool_calls")) {
            calls if calls.is_empty() => Message::assistant(content),
            calls => MessageKind::AssistantCalls { text: content, calls }.into(),
        },
    };
    Message { id: value.id().map(str::to_owned), ..message }
}

fn calls_from_json(calls: Option<&Value>) -> Vec<ToolCall> {
    let listed = calls.and_then(Value::as_array).into_iter().flatten();
    listed
        .map(|c| {
            let text = |key: &str| c.get(key).and_then(Value::as_str).unwrap_or_default();
            ToolCall::new(text("id"), text("name"), c.get("args").cloned().unwrap_or_default())
        })
        .collect()
}

/// A [`Message`] in the form that dynamic states hold.
pub(crate) fn json_from_message(message: Message) -> Value {
    let id = message.id.clone();
    let rich = match message.into_rich() {
        Ok(rich) => rich,
        Err(removal) if removal.removes_all() => return json!({ "type": "remove", "id": "__remove_all__" }),
        Err(_) => return json!({ "type": "remove", "id": id }),
    };
    let kind = match rich.role {
        Role::User => "human",
        Role::Assistant => "ai",
        Role::System => "system",
        Role::Tool => "tool",
    };
    let mut json = Map::from_iter([("type".to_owned(), json!(kind)), ("content".to_owned(), content_of(&rich))]);
    let mut tell = |key: &str, value: Option<Value>| json.extend(value.map(|value| (key.to_owned(), value)));
    let call = |c: &ToolCall| json!({ "name": c.name, "args": c.args, "id": c.id, "type": "tool_call" });
    let calls: Vec<Value> = rich.tool_calls().map(call).collect();
    tell("id", id.map(Value::String));
    tell("name", rich.name.map(Value::String));
    tell("tool_calls", (!calls.is_empty()).then_some(Value::Array(calls)));
    if let Some(answer) = rich.answer {
        tell("tool_call_id", Some(Value::String(answer.call)));
        tell("status", answer.is_error.then(|| json!("error")));
        tell("artifact", answer.artifact);
    }
    let usage = |u: Usage| json!({ "input_tokens": u.input, "output_tokens": u.output, "total_tokens": u.total() });
    tell("usage_metadata", rich.usage.map(usage));
    tell("response_metadata", (!rich.response.is_empty()).then_some(Value::Object(rich.response)));
    tell("additional_kwargs", (!rich.extra.is_empty()).then_some(Value::Object(rich.extra)));
    Value::Object(json)
}

/// The content of a message: its text, or its parts if it has others. Calls of tools stand apart.
fn content_of(rich: &RichMessage) -> Value {
    let parts: Vec<&Block> = rich.blocks.iter().filter(|block| !matches!(block, Block::ToolCall(_))).collect();
    if parts.iter().all(|block| matches!(block, Block::Text { extra, .. } if extra.is_empty())) {
        return json!(rich.text());
    }
    json!(parts)
}

/// What a value is, in words.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
