//! Our messages in LangChain's words.

use serde_json::{Map, Value, json};
use superstep::{Block, JsonMap, Media, MediaSource, Message, MessageKind, RichMessage, Role, ToolCall, Usage};

use super::ALL;

pub(super) fn message(message: &Message) -> Value {
    let id = message.id.clone();
    let rich = match message.clone().into_rich() {
        Ok(rich) => rich,
        Err(removal) => {
            let id = if removal.kind == MessageKind::RemoveAll { Some(ALL.to_owned()) } else { id };
            return json!({ "type": "remove", "content": "", "id": id });
        }
    };
    let mut written = json!({
        "type": type_of(rich.role),
        "content": content(&rich),
        "additional_kwargs": rich.extra,
        "response_metadata": metadata(&rich.response),
        "name": rich.name,
        "id": id,
    });
    match rich.role {
        Role::Assistant => add_answer(&mut written, &rich),
        Role::Tool => add_result(&mut written, &rich),
        _ => {}
    }
    written
}

fn type_of(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Assistant => "ai",
        Role::Tool => "tool",
        _ => "human",
    }
}

/// LangChain has other words for who answered.
fn metadata(response: &JsonMap) -> JsonMap {
    let rename = |name: &str| match name {
        "provider" => "model_provider".to_owned(),
        "model" => "model_name".to_owned(),
        other => other.to_owned(),
    };
    response.iter().map(|(name, value)| (rename(name), value.clone())).collect()
}

fn add_answer(written: &mut Value, rich: &RichMessage) {
    let (good, bad): (Vec<_>, Vec<_>) = rich.tool_calls().partition(|call| call.args.is_object());
    let good =
        good.iter().map(|call| json!({ "name": call.name, "args": call.args, "id": call.id, "type": "tool_call" }));
    let bad = bad.iter().map(|call| {
        let args = call.args.as_str().map_or_else(|| call.args.to_string(), str::to_owned);
        json!({ "name": call.name, "args": args, "id": call.id, "error": null, "type": "invalid_tool_call" })
    });
    written["tool_calls"] = good.collect();
    written["invalid_tool_calls"] = bad.collect();
    written["usage_metadata"] = rich.usage.as_ref().map_or(Value::Null, usage);
}

fn add_result(written: &mut Value, rich: &RichMessage) {
    let Some(answer) = &rich.answer else { return };
    written["tool_call_id"] = json!(answer.call);
    written["status"] = json!(if answer.is_error { "error" } else { "success" });
    written["artifact"] = answer.artifact.clone().unwrap_or_default();
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": usage.total(),
        "input_token_details": { "cache_read": usage.cache_read, "cache_creation": usage.cache_write },
        "output_token_details": { "reasoning": usage.reasoning },
    })
}

/// A text where that says all, blocks otherwise. Calls stand among the blocks too, where their place matters.
fn content(rich: &RichMessage) -> Value {
    let is_plain = |(place, block): (usize, &Block)| match block {
        Block::Text { extra, .. } => extra.is_empty() && place == 0,
        Block::ToolCall(call) => call.extra.is_empty(),
        _ => false,
    };
    if rich.blocks.iter().enumerate().all(is_plain) {
        return json!(rich.text());
    }
    rich.blocks.iter().map(block).collect()
}

fn block(block: &Block) -> Value {
    match block {
        Block::Text { text, extra } => with(json!({ "type": "text", "text": text }), extra),
        Block::Reasoning { text, signature, extra } => {
            let mut extra = extra.clone();
            extra.extend(signature.iter().map(|signature| ("signature".to_owned(), json!(signature))));
            with(json!({ "type": "reasoning", "reasoning": text }), &extra)
        }
        Block::Image(media) => data("image", media),
        Block::Audio(media) => data("audio", media),
        Block::File(media) => data("file", media),
        Block::ToolCall(call) => tool_call(call),
        Block::Opaque { provider, value } => {
            let extras = Map::from_iter([("provider".to_owned(), json!(provider))]);
            with(json!({ "type": "non_standard", "value": value }), &extras)
        }
        _ => Value::Null,
    }
}

fn tool_call(call: &ToolCall) -> Value {
    with(json!({ "type": "tool_call", "id": call.id, "name": call.name, "args": call.args }), &call.extra)
}

fn with(mut block: Value, extras: &JsonMap) -> Value {
    if !extras.is_empty() {
        block["extras"] = Value::Object(extras.clone());
    }
    block
}

fn data(kind: &str, media: &Media) -> Value {
    let mut block = json!({ "type": kind });
    match &media.source {
        MediaSource::Url(url) => block["url"] = json!(url),
        MediaSource::Base64(data) => block["base64"] = json!(data),
        MediaSource::Id(id) => block["file_id"] = json!(id),
        _ => {}
    }
    if let Some(mime) = &media.mime {
        block["mime_type"] = json!(mime);
    }
    let mut extras = media.extra.clone();
    extras.extend(media.name.iter().map(|name| ("name".to_owned(), json!(name))));
    with(block, &extras)
}
