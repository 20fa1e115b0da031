//! Messages as OpenAI's chat completions write them.

use serde_json::{Map, Value, json};
use superstep::{Block, Media, MediaSource, Message, RichMessage, Role, ToolAnswer, ToolCall};

use super::{FormError, each};

/// Writes a conversation as OpenAI's chat JSON. Removals and what the form has no words for are left out.
///
/// # Errors
/// If a message has a picture, sound or document that cannot be sent in the way that it is given.
///
/// ```
/// use serde_json::json;
/// use superstep::Message;
/// use superstep_agent::message::to_openai;
/// let json = to_openai(&[Message::system("Be brief."), Message::user("hi")])?;
/// assert_eq!(json[1], json!({"role": "user", "content": "hi"}));
/// # Ok::<(), superstep_agent::message::FormError>(())
/// ```
pub fn to_openai(messages: &[Message]) -> Result<Vec<Value>, FormError> {
    Listener { provider: None }.hear(messages)
}

/// Reads a conversation of OpenAI's chat JSON. Fields that it does not know are kept in `extra`.
///
/// # Errors
/// If something is no message.
///
/// ```
/// use serde_json::json;
/// use superstep_agent::message::from_openai;
/// let call = json!({"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}});
/// let messages = from_openai(&[json!({"role": "assistant", "content": null, "tool_calls": [call]})])?;
/// assert_eq!(messages[0].tool_calls().next().unwrap().args["a"], 1);
/// # Ok::<(), superstep_agent::message::FormError>(())
/// ```
pub fn from_openai(messages: &[Value]) -> Result<Vec<Message>, FormError> {
    each(messages, read)
}

/// Who will read the messages that are written: a provider gets back what only it understands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listener<'a> {
    /// The provider, if it is one.
    pub(crate) provider: Option<&'a str>,
}

impl Listener<'_> {
    pub(crate) fn hear(self, messages: &[Message]) -> Result<Vec<Value>, FormError> {
        // Thoughts are given back while the question that they are about is being answered.
        let turn = messages.iter().rposition(|message| message.role() == Some(Role::User)).unwrap_or(0);
        let (mut written, mut shown) = (Vec::new(), Vec::new());
        for (place, message) in messages.iter().enumerate() {
            let Ok(rich) = message.clone().into_rich() else { continue };
            let fail = |words| FormError { place, words };
            if rich.role == Role::Tool {
                let (text, media) = tool_result(&rich).map_err(fail)?;
                written.push(text);
                shown.extend(media);
                continue;
            }
            written.extend(what_tools_show(&mut shown));
            written.push(match rich.role {
                Role::Assistant => self.assistant(rich, place > turn),
                _ => said(&rich).map_err(fail)?,
            });
        }
        written.extend(what_tools_show(&mut shown));
        Ok(written)
    }

    /// A model's message; what other providers made for themselves is left out.
    fn assistant(self, rich: RichMessage, in_turn: bool) -> Value {
        let text = rich.text().into_owned();
        let mut message = json!({ "role": "assistant" });
        let own = self.made(&rich);
        let calls: Vec<Value> = rich.tool_calls().map(|call| tool_call(call, own)).collect();
        let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { Value::String(text) };
        message["content"] = content;
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        if let Some(name) = rich.name.filter(|name| is_name(name)) {
            message["name"] = Value::String(name);
        }
        if own {
            for block in rich.blocks {
                if let Block::Reasoning { text, extra, .. } = block
                    && in_turn
                {
                    let field = extra.get("field").and_then(Value::as_str).unwrap_or("reasoning_content");
                    message[field] = Value::String(text);
                }
            }
            rich.extra.into_iter().for_each(|(name, value)| message[name] = value);
        }
        message
    }

    fn made(self, rich: &RichMessage) -> bool {
        let made_by = rich.response.get("provider").and_then(Value::as_str);
        made_by.is_none() || self.provider.is_none() || made_by == self.provider
    }
}

/// Instructions or a human's message.
fn said(rich: &RichMessage) -> Result<Value, String> {
    let role = if rich.role == Role::System { "system" } else { "user" };
    let mut message = json!({ "role": role, "content": content(rich)? });
    if let Some(name) = rich.name.as_ref().filter(|name| is_name(name)) {
        message["name"] = Value::String(name.clone());
    }
    Ok(message)
}

/// The content: a text if it is one, its parts otherwise.
fn content(rich: &RichMessage) -> Result<Value, String> {
    if let [] | [Block::Text { .. }] = &rich.blocks[..] {
        return Ok(Value::String(rich.text().into_owned()));
    }
    let parts = rich.blocks.iter().filter_map(|block| part(block).transpose());
    parts.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// Names with spaces and the like are refused.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "<|\\/>".contains(c))
}

fn part(block: &Block) -> Result<Option<Value>, String> {
    Ok(Some(match block {
        Block::Text { text, .. } => json!({ "type": "text", "text": text }),
        Block::Image(media) => image(media),
        Block::Audio(media) => audio(media)?,
        Block::File(media) => file(media)?,
        _ => return Ok(None),
    }))
}

fn image(media: &Media) -> Value {
    let url = match &media.source {
        MediaSource::Url(url) => url.clone(),
        MediaSource::Base64(data) => data_url(media, data, "image/png"),
        MediaSource::Id(id) => return json!({ "type": "file", "file": { "file_id": id } }),
        _ => String::new(),
    };
    let mut image = media.extra.clone();
    image.insert("url".into(), Value::String(url));
    json!({ "type": "image_url", "image_url": image })
}

fn audio(media: &Media) -> Result<Value, String> {
    let MediaSource::Base64(data) = &media.source else {
        return Err("sound can only be sent in base64".into());
    };
    let format = match media.mime.as_deref().unwrap_or("audio/wav") {
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        other => other.rsplit('/').next().unwrap_or(other),
    };
    Ok(json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } }))
}

fn file(media: &Media) -> Result<Value, String> {
    let mut file = media.extra.clone();
    match &media.source {
        MediaSource::Id(id) => drop(file.insert("file_id".into(), json!(id))),
        MediaSource::Base64(data) => {
            file.insert("file_data".into(), json!(data_url(media, data, "application/pdf")));
            file.insert("filename".into(), json!(media.name.as_deref().unwrap_or("file")));
        }
        _ => return Err("a document can only be sent in base64 or by its id".into()),
    }
    Ok(json!({ "type": "file", "file": file }))
}

fn data_url(media: &Media, data: &str, usual: &str) -> String {
    format!("data:{};base64,{data}", media.mime.as_deref().unwrap_or(usual))
}

fn tool_call(call: &ToolCall, own: bool) -> Value {
    let mut written = json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments(&call.args) },
    });
    if own {
        call.extra.iter().for_each(|(name, value)| written[name] = value.clone());
    }
    written
}

/// Arguments as the text that a model wrote.
pub(crate) fn arguments(args: &Value) -> String {
    args.as_str().map_or_else(|| args.to_string(), str::to_owned)
}

/// A tool's message, and what it can only show in another one: tools are heard in words only.
fn tool_result(rich: &RichMessage) -> Result<(Value, Vec<Value>), String> {
    let call = rich.answer.as_ref().map_or("", |answer| &*answer.call);
    let media: Vec<&Block> = rich.blocks.iter().filter(|block| block.as_text().is_none()).collect();
    let media = media.into_iter().filter_map(|block| part(block).transpose()).collect::<Result<Vec<_>, _>>()?;
    let mut text = rich.text().into_owned();
    if text.is_empty() && !media.is_empty() {
        text = "see the next message".into();
    }
    Ok((json!({ "role": "tool", "tool_call_id": call, "content": text }), media))
}

fn what_tools_show(shown: &mut Vec<Value>) -> Option<Value> {
    let parts = std::mem::take(shown);
    (!parts.is_empty()).then(|| json!({ "role": "user", "content": parts }))
}

fn read(value: &Value) -> Result<Message, String> {
    let Value::Object(mut fields) = value.clone() else { return Err("it is no object".into()) };
    let role = match fields.remove("role").as_ref().and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        Some(other) => return Err(format!("there is no role `{other}`")),
        None => return Err("it has no `role`".into()),
    };
    let mut rich = RichMessage::new(role, Vec::new());
    read_thoughts(&mut fields, &mut rich.blocks);
    read_content(fields.remove("content"), &mut rich.blocks)?;
    for call in fields.remove("tool_calls").as_ref().and_then(Value::as_array).into_iter().flatten() {
        rich.blocks.push(Block::ToolCall(read_call(call)?));
    }
    rich.name = text_of(fields.remove("name"));
    if role == Role::Tool {
        let call = text_of(fields.remove("tool_call_id")).ok_or("a tool's message has no `tool_call_id`")?;
        rich.answer = Some(ToolAnswer::new(call));
    }
    fields.retain(|_, value| !value.is_null());
    rich.extra = fields;
    Ok(rich.into())
}

pub(super) fn read_thoughts(fields: &mut Map<String, Value>, blocks: &mut Vec<Block>) {
    for field in ["reasoning_content", "reasoning"] {
        if let Some(text) = text_of(fields.remove(field)).filter(|text| !text.is_empty()) {
            let extra = Map::from_iter([("field".to_owned(), json!(field))]);
            blocks.push(Block::Reasoning { text, signature: None, extra });
        }
    }
}

fn read_content(content: Option<Value>, blocks: &mut Vec<Block>) -> Result<(), String> {
    match content {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::String(text)) => blocks.push(Block::text(text)),
        Some(Value::Array(parts)) => {
            for part in parts {
                blocks.push(read_part(&part)?);
            }
        }
        Some(other) => return Err(format!("`content` is neither text nor parts: {other}")),
    }
    Ok(())
}

pub(super) fn read_part(part: &Value) -> Result<Block, String> {
    let inner = |name: &str| part[name].as_object().cloned().unwrap_or_default();
    Ok(match part["type"].as_str() {
        Some("text") => Block::text(part["text"].as_str().unwrap_or_default()),
        Some("refusal") => Block::text(part["refusal"].as_str().unwrap_or_default()),
        Some("image_url") => {
            let mut fields = inner("image_url");
            let url = text_of(fields.remove("url")).or_else(|| part["image_url"].as_str().map(str::to_owned));
            let mut media = media_at(&url.unwrap_or_default());
            media.extra = fields;
            Block::Image(media)
        }
        Some("input_audio") => {
            let fields = inner("input_audio");
            let mime = match fields.get("format").and_then(Value::as_str) {
                Some("mp3") => "audio/mpeg".to_owned(),
                format => format!("audio/{}", format.unwrap_or("wav")),
            };
            Block::Audio(Media::base64(mime, fields.get("data").and_then(Value::as_str).unwrap_or_default()))
        }
        Some("file") => Block::File(read_file(inner("file"))),
        Some(other) => return Err(format!("there is no part of type `{other}`")),
        None => return Err("a part has no `type`".into()),
    })
}

fn read_file(mut fields: Map<String, Value>) -> Media {
    let name = text_of(fields.remove("filename"));
    let mut media = match (text_of(fields.remove("file_id")), text_of(fields.remove("file_data"))) {
        (Some(id), _) => Media::id(id),
        (None, data) => media_at(&data.unwrap_or_default()),
    };
    (media.name, media.extra) = (name, fields);
    media
}

/// What is at an address, or in it.
pub(super) fn media_at(url: &str) -> Media {
    let inside = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    inside.map_or_else(|| Media::url(url), |(mime, data)| Media::base64(mime, data))
}

pub(super) fn read_call(call: &Value) -> Result<ToolCall, String> {
    let Value::Object(mut fields) = call.clone() else { return Err("a tool call is no object".into()) };
    let function = fields.remove("function").unwrap_or_default();
    let name = function["name"].as_str().ok_or("a tool call has no `function.name`")?;
    let id = text_of(fields.remove("id")).ok_or("a tool call has no `id`")?;
    let mut read = ToolCall::new(id, name, read_arguments(&function["arguments"]));
    fields.remove("type");
    read.extra = fields;
    Ok(read)
}

/// Arguments are JSON in a text; what is none stays the text that it is.
pub(super) fn read_arguments(arguments: &Value) -> Value {
    match arguments {
        Value::String(text) if text.trim().is_empty() => json!({}),
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| arguments.clone()),
        Value::Null => json!({}),
        other => other.clone(),
    }
}

pub(super) fn text_of(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}
