//! LangChain's messages in our words.

use serde_json::{Value, json};
use superstep::{Block, JsonMap, Media, Message, RichMessage, Role, ToolAnswer, ToolCall, Usage};

use super::ALL;
use crate::message::openai::{read_arguments, read_call, read_part, read_thoughts, text_of};

pub(super) fn message(value: &Value) -> Result<Message, String> {
    let mut fields = fields(value)?;
    let kind = text_of(fields.remove("type")).or_else(|| text_of(fields.remove("role"))).ok_or("it has no `type`")?;
    let id = text_of(fields.remove("id"));
    let role = match &*kind {
        "human" | "user" | "HumanMessage" | "HumanMessageChunk" => Role::User,
        "ai" | "assistant" | "AIMessage" | "AIMessageChunk" => Role::Assistant,
        "system" | "developer" | "SystemMessage" | "SystemMessageChunk" => Role::System,
        "tool" | "ToolMessage" | "ToolMessageChunk" => Role::Tool,
        "remove" | "RemoveMessage" => return removal(id),
        other => return Err(format!("there is no message of type `{other}`")),
    };
    let mut rich = RichMessage::new(role, Vec::new());
    rich.name = text_of(fields.remove("name"));
    rich.response = response(fields.remove("response_metadata"));
    rich.extra = object(fields.remove("additional_kwargs"));
    read_thoughts(&mut rich.extra, &mut rich.blocks);
    let provider = rich.response.get("provider").and_then(Value::as_str).unwrap_or_default().to_owned();
    content(fields.remove("content"), &provider, &mut rich.blocks)?;
    match role {
        Role::Assistant => {
            calls(&mut fields, &mut rich)?;
            rich.usage = fields.get("usage_metadata").and_then(usage);
        }
        Role::Tool => rich.answer = Some(answer(&mut fields)?),
        _ => {}
    }
    let message = Message::from(rich);
    Ok(Message { id, ..message })
}

/// The fields of a message, in whichever of the three forms it comes.
fn fields(value: &Value) -> Result<JsonMap, String> {
    let Value::Object(outer) = value else { return Err("it is no object".into()) };
    if value["lc"].is_number() {
        let mut fields = object(outer.get("kwargs").cloned());
        let class = outer.get("id").and_then(Value::as_array).and_then(|path| path.last());
        let class = class.and_then(Value::as_str).ok_or("its constructor has no `id`")?;
        fields.entry("type").or_insert_with(|| json!(class));
        return Ok(fields);
    }
    match outer.get("data") {
        Some(Value::Object(data)) if outer.contains_key("type") => {
            let mut fields = data.clone();
            fields.insert("type".into(), outer["type"].clone());
            Ok(fields)
        }
        _ => Ok(outer.clone()),
    }
}

fn removal(id: Option<String>) -> Result<Message, String> {
    match id {
        Some(id) if id == ALL => Ok(Message::remove_all()),
        Some(id) => Ok(Message::remove(id)),
        None => Err("a removal has no `id`".into()),
    }
}

fn object(value: Option<Value>) -> JsonMap {
    match value {
        Some(Value::Object(mut fields)) => {
            fields.retain(|_, value| !value.is_null());
            fields
        }
        _ => JsonMap::new(),
    }
}

fn response(metadata: Option<Value>) -> JsonMap {
    let rename = |name: String| match &*name {
        "model_provider" => "provider".to_owned(),
        "model_name" => "model".to_owned(),
        _ => name,
    };
    object(metadata).into_iter().map(|(name, value)| (rename(name), value)).collect()
}

fn content(content: Option<Value>, provider: &str, blocks: &mut Vec<Block>) -> Result<(), String> {
    match content {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::String(text)) => blocks.push(Block::text(text)),
        Some(Value::Array(parts)) => {
            for part in parts {
                blocks.push(block(part, provider)?);
            }
        }
        Some(other) => return Err(format!("`content` is neither text nor blocks: {other}")),
    }
    Ok(())
}

fn block(part: Value, provider: &str) -> Result<Block, String> {
    let Value::Object(mut fields) = part.clone() else {
        return part.as_str().map(Block::text).ok_or_else(|| format!("a block is neither text nor an object: {part}"));
    };
    let kind = text_of(fields.remove("type")).ok_or("a block has no `type`")?;
    let mut extra = object(fields.remove("extras"));
    let mut text = |name: &str| text_of(fields.remove(name));
    Ok(match &*kind {
        "text" => {
            let text = text("text").unwrap_or_default();
            extra.append(&mut without_index(fields));
            Block::Text { text, extra }
        }
        "reasoning" | "thinking" => {
            let words = text("reasoning").or_else(|| text("thinking")).unwrap_or_default();
            let signature = text("signature").or_else(|| text_of(extra.remove("signature")));
            extra.append(&mut without_index(fields));
            Block::Reasoning { text: words, signature, extra }
        }
        "tool_call" | "tool_use" | "invalid_tool_call" => {
            let (id, name) = (text("id").unwrap_or_default(), text("name").unwrap_or_default());
            let args = fields.remove("args").or_else(|| fields.remove("input")).unwrap_or_default();
            let mut call = ToolCall::new(id, name, read_arguments(&args));
            call.extra = extra;
            Block::ToolCall(call)
        }
        "image" => Block::Image(media(fields, extra)),
        "audio" => Block::Audio(media(fields, extra)),
        "file" if !fields.contains_key("file") => Block::File(media(fields, extra)),
        "image_url" | "input_audio" | "file" => read_part(&part)?,
        "non_standard" => {
            let maker = text_of(extra.remove("provider")).unwrap_or_else(|| provider.to_owned());
            Block::Opaque { provider: maker, value: fields.remove("value").unwrap_or_default() }
        }
        _ => Block::Opaque { provider: provider.to_owned(), value: part },
    })
}

/// Indices number the pieces of a stream, and say nothing of the whole.
fn without_index(mut fields: JsonMap) -> JsonMap {
    fields.retain(|name, value| name != "index" && !value.is_null());
    fields
}

/// Media in the newer form (`url`, `base64`, `file_id`), the older one (`source_type`), or Anthropic's (`source`).
fn media(mut fields: JsonMap, mut extra: JsonMap) -> Media {
    if let Some(Value::Object(source)) = fields.remove("source") {
        fields.extend(source);
    }
    let mut text = |name: &str| text_of(fields.remove(name));
    let mime = text("mime_type").or_else(|| text("media_type"));
    let data = text("base64").or_else(|| text("data"));
    let mut media = match (text("url"), data, text("file_id")) {
        (Some(url), _, _) => Media::url(url),
        (None, Some(data), _) => Media::base64(mime.clone().unwrap_or_default(), data),
        (None, None, id) => Media::id(id.or_else(|| text("id")).unwrap_or_default()),
    };
    media.mime = mime;
    media.name = text_of(extra.remove("name"));
    media.extra = extra;
    media
}

/// Calls beside the content, unless they stand in it; of older messages, those as OpenAI wrote them.
fn calls(fields: &mut JsonMap, rich: &mut RichMessage) -> Result<(), String> {
    let raw = rich.extra.remove("tool_calls");
    let mut list = |name: &str| match fields.remove(name) {
        Some(Value::Array(calls)) => calls,
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for call in list("tool_calls").iter().chain(&list("invalid_tool_calls")) {
        let name = call["name"].as_str().unwrap_or_default();
        let id = call["id"].as_str().unwrap_or_default();
        found.push(ToolCall::new(id, name, read_arguments(&call["args"])));
    }
    if found.is_empty() {
        let raw = raw.as_ref().and_then(Value::as_array).into_iter().flatten();
        found = raw.map(read_call).collect::<Result<_, _>>()?;
    }
    for call in found {
        if !rich.tool_calls().any(|known| known.id == call.id) {
            rich.blocks.push(Block::ToolCall(call));
        }
    }
    Ok(())
}

fn answer(fields: &mut JsonMap) -> Result<ToolAnswer, String> {
    let call = text_of(fields.remove("tool_call_id")).ok_or("a tool's message has no `tool_call_id`")?;
    let mut answer = ToolAnswer::new(call);
    answer.is_error = fields.get("status").and_then(Value::as_str) == Some("error");
    answer.artifact = fields.remove("artifact").filter(|artifact| !artifact.is_null());
    Ok(answer)
}

fn usage(usage: &Value) -> Option<Usage> {
    usage.as_object()?;
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let mut counted = Usage::new(count(&usage["input_tokens"]), count(&usage["output_tokens"]));
    counted.cache_read = count(&usage["input_token_details"]["cache_read"]);
    counted.cache_write = count(&usage["input_token_details"]["cache_creation"]);
    counted.reasoning = count(&usage["output_token_details"]["reasoning"]);
    Some(counted)
}
