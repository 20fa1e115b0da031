//! What responses are asked: a list of items.

use serde_json::{Value, json};
use superstep::{Block, JsonMap, Media, MediaSource, RichMessage, Role, ToolCall};

use crate::message::arguments;
use crate::model::{ChatRequest, OutputSchema, ToolChoice};
use crate::provider::http::Fault;
use crate::provider::schema;
use crate::provider::setup::{Asked, merge};
use crate::tool::ToolSpec;

pub(super) fn body(model: &str, asked: &Asked, streaming: bool) -> Result<Value, Fault> {
    let request = &asked.request;
    let mut input = Vec::new();
    for message in &request.messages {
        if let Ok(rich) = message.clone().into_rich() {
            add(&mut input, rich, &asked.provider)?;
        }
    }
    let mut body = json!({
        "model": model,
        "input": input,
        "store": false,
        "include": ["reasoning.encrypted_content"],
    });
    if streaming {
        body["stream"] = json!(true);
    }
    add_tools(&mut body, request);
    add_settings(&mut body, request)?;
    merge(&mut body, request.settings.extra.clone());
    Ok(body)
}

fn add_settings(body: &mut Value, request: &ChatRequest) -> Result<(), Fault> {
    let settings = &request.settings;
    if !settings.stop.is_empty() {
        return Err(Fault::invalid("its API has no stop words; leave `stop` out, or use `OpenAi`"));
    }
    if let Some(temperature) = settings.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(top_p) = settings.top_p {
        body["top_p"] = json!(top_p);
    }
    if let Some(tokens) = settings.max_tokens {
        body["max_output_tokens"] = json!(tokens);
    }
    if let Some(output) = &request.output {
        body["text"] = json!({ "format": format(output) });
    }
    Ok(())
}

fn format(output: &OutputSchema) -> Value {
    let strict = schema::strict(&output.schema);
    let is_strict = strict.is_some();
    let schema = strict.unwrap_or_else(|| schema::plain(&output.schema));
    json!({ "type": "json_schema", "name": schema::name(&output.name), "schema": schema, "strict": is_strict })
}

fn add_tools(body: &mut Value, request: &ChatRequest) {
    if request.tools.is_empty() {
        return;
    }
    body["tools"] = request.tools.iter().map(tool).collect();
    match &request.tool_choice {
        ToolChoice::Auto => {}
        ToolChoice::None => body["tool_choice"] = json!("none"),
        ToolChoice::Required => body["tool_choice"] = json!("required"),
        ToolChoice::Tool(name) => body["tool_choice"] = json!({ "type": "function", "name": name }),
    }
    if let Some(allowed) = request.parallel_tool_calls {
        body["parallel_tool_calls"] = json!(allowed);
    }
}

fn tool(spec: &ToolSpec) -> Value {
    let mut tool = json!({
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "strict": false,
    });
    merge(&mut tool, spec.extra.clone());
    tool
}

/// Adds the items of a message.
fn add(input: &mut Vec<Value>, rich: RichMessage, provider: &str) -> Result<(), Fault> {
    match rich.role {
        Role::Assistant => add_answer(input, rich, provider),
        Role::Tool => {
            let call = rich.answer.as_ref().map_or("", |answer| &*answer.call);
            let output = match &rich.blocks[..] {
                [] | [Block::Text { .. }] => json!(rich.text()),
                blocks => Value::Array(content(blocks)?),
            };
            input.push(json!({ "type": "function_call_output", "call_id": call, "output": output }));
        }
        role => {
            let role = if role == Role::System { "system" } else { "user" };
            input.push(json!({ "type": "message", "role": role, "content": content(&rich.blocks)? }));
        }
    }
    Ok(())
}

/// Adds what a model said, item by item; what other providers made for themselves is left out.
fn add_answer(input: &mut Vec<Value>, rich: RichMessage, provider: &str) {
    let own = rich.response.get("provider").and_then(Value::as_str) == Some(provider);
    for block in rich.blocks {
        match block {
            Block::Text { text, extra } => add_words(input, &text, if own { extra } else { JsonMap::new() }),
            Block::Reasoning { text, signature, extra } if own => input.push(reasoning(&text, signature, extra)),
            Block::ToolCall(call) => input.push(function_call(call, own)),
            Block::Opaque { provider: maker, value } if maker == provider => input.push(value),
            _ => {}
        }
    }
}

/// Texts of one item go back as one item.
fn add_words(input: &mut Vec<Value>, text: &str, mut extra: JsonMap) {
    let annotations = extra.remove("annotations").unwrap_or_else(|| json!([]));
    let part = json!({ "type": "output_text", "text": text, "annotations": annotations });
    if let (Some(last), Some(id)) = (input.last_mut(), extra.get("id"))
        && last["type"] == "message"
        && last["id"] == *id
    {
        last["content"].as_array_mut().expect("a message has parts").push(part);
        return;
    }
    let mut item = json!({ "type": "message", "role": "assistant", "content": [part] });
    merge(&mut item, extra);
    input.push(item);
}

fn reasoning(text: &str, signature: Option<String>, extra: JsonMap) -> Value {
    let summary = if text.is_empty() { json!([]) } else { json!([{ "type": "summary_text", "text": text }]) };
    let mut item = json!({ "type": "reasoning", "summary": summary });
    if let Some(encrypted) = signature {
        item["encrypted_content"] = json!(encrypted);
    }
    merge(&mut item, extra);
    item
}

fn function_call(call: ToolCall, own: bool) -> Value {
    let mut item =
        json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments(&call.args) });
    if own {
        merge(&mut item, call.extra);
    }
    item
}

fn content(blocks: &[Block]) -> Result<Vec<Value>, Fault> {
    let mut parts = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text, .. } => parts.push(json!({ "type": "input_text", "text": text })),
            Block::Image(media) => parts.push(part("input_image", "image_url", "image/png", media)),
            Block::File(media) => parts.push(part("input_file", "file_url", "application/pdf", media)),
            Block::Audio(_) => return Err(Fault::invalid("its API takes no sound; use `OpenAi`")),
            _ => {}
        }
    }
    Ok(parts)
}

fn part(kind: &str, address: &str, usual: &str, media: &Media) -> Value {
    let mut part = json!({ "type": kind });
    match &media.source {
        MediaSource::Url(url) => part[address] = json!(url),
        MediaSource::Id(id) => part["file_id"] = json!(id),
        MediaSource::Base64(data) => {
            let data = format!("data:{};base64,{data}", media.mime.as_deref().unwrap_or(usual));
            if kind == "input_image" {
                part[address] = json!(data);
            } else {
                part["file_data"] = json!(data);
                part["filename"] = json!(media.name.as_deref().unwrap_or("file"));
            }
        }
        _ => {}
    }
    merge(&mut part, media.extra.clone());
    part
}
