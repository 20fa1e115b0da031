//! What Anthropic's messages are asked.

use serde_json::{Value, json};
use superstep::{Block, JsonMap, Media, MediaSource, RichMessage, Role, ToolCall};

use crate::model::{ChatRequest, ToolChoice, is_paused};
use crate::provider::http::Fault;
use crate::provider::schema;
use crate::provider::setup::{Asked, last_word, merge};
use crate::tool::ToolSpec;

/// The provider wants a limit.
const MAX_TOKENS: u32 = 8192;

pub(super) fn body(model: &str, asked: &Asked, streaming: bool) -> Result<Value, Fault> {
    let request = &asked.request;
    let mut conversation = Conversation { provider: &asked.provider, system: Vec::new(), turns: Vec::new() };
    for message in &request.messages {
        if let Ok(rich) = message.clone().into_rich() {
            conversation.add(rich)?;
        }
    }
    conversation.end_with_user(asked);
    let max_tokens = request.settings.max_tokens.unwrap_or(MAX_TOKENS);
    let mut body = json!({ "model": model, "max_tokens": max_tokens, "messages": conversation.turns });
    if !conversation.system.is_empty() {
        body["system"] = Value::Array(conversation.system);
    }
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
    if let Some(temperature) = settings.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(top_p) = settings.top_p {
        body["top_p"] = json!(top_p);
    }
    if !settings.stop.is_empty() {
        body["stop_sequences"] = json!(settings.stop);
    }
    if let Some(output) = &request.output {
        let schema = schema::strict(&output.schema).ok_or_else(|| {
            let name = &output.name;
            Fault::invalid(format!(
                "it cannot be held to the form `{name}`, which has maps or is no object; use `output_by_tool`"
            ))
        })?;
        body["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema } });
    }
    Ok(())
}

fn add_tools(body: &mut Value, request: &ChatRequest) {
    if request.tools.is_empty() {
        return;
    }
    body["tools"] = request.tools.iter().map(tool).collect();
    let mut choice = match &request.tool_choice {
        ToolChoice::Auto => json!({ "type": "auto" }),
        ToolChoice::None => json!({ "type": "none" }),
        ToolChoice::Required => json!({ "type": "any" }),
        ToolChoice::Tool(name) => json!({ "type": "tool", "name": name }),
    };
    match request.parallel_tool_calls {
        Some(allowed) if request.tool_choice != ToolChoice::None => {
            choice["disable_parallel_tool_use"] = json!(!allowed);
        }
        _ if request.tool_choice == ToolChoice::Auto => return,
        _ => {}
    }
    body["tool_choice"] = choice;
}

fn tool(spec: &ToolSpec) -> Value {
    let mut tool = json!({ "name": spec.name, "description": spec.description, "input_schema": spec.parameters });
    merge(&mut tool, spec.extra.clone());
    tool
}

/// The conversation as it is sent: system texts apart, and turns of user and assistant in alternation.
struct Conversation<'a> {
    provider: &'a str,
    system: Vec<Value>,
    turns: Vec<Value>,
}

impl Conversation<'_> {
    fn add(&mut self, rich: RichMessage) -> Result<(), Fault> {
        match rich.role {
            Role::System => self.system.extend(rich.blocks.iter().filter_map(text)),
            Role::Assistant => {
                let blocks = self.assistant(rich);
                self.say("assistant", blocks);
            }
            Role::Tool => {
                let result = tool_result(&rich)?;
                self.say("user", vec![result]);
            }
            _ => {
                let blocks = content(&rich.blocks)?;
                self.say("user", blocks);
            }
        }
        Ok(())
    }

    /// Adds to the turn of who said the last words, or begins the next turn. What says nothing is refused, so it is
    /// left out.
    fn say(&mut self, role: &str, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        match self.turns.last_mut() {
            Some(turn) if turn["role"] == role => {
                turn["content"].as_array_mut().expect("a turn has blocks").extend(blocks);
            }
            _ => self.turns.push(json!({ "role": role, "content": blocks })),
        }
    }

    /// The user has the last word, or else the model refuses to answer; unless it was interrupted in its own turn.
    fn end_with_user(&mut self, asked: &Asked) {
        let is_paused = asked.request.messages.last().is_some_and(is_paused);
        if !is_paused && self.turns.last().is_some_and(|turn| turn["role"] == "assistant") {
            self.say("user", vec![json!({ "type": "text", "text": last_word(asked) })]);
        }
    }

    /// What a model said; what other providers made for themselves is left out.
    fn assistant(&self, rich: RichMessage) -> Vec<Value> {
        let made_by = rich.response.get("provider").and_then(Value::as_str);
        let own = made_by.is_none_or(|made_by| made_by == self.provider);
        let write = |block| match block {
            Block::Text { .. } if own => text(&block),
            Block::Text { text: words, .. } => text(&Block::text(words)),
            Block::ToolCall(call) => Some(tool_use(call, own)),
            Block::Reasoning { text, signature: Some(signature), .. } if own => {
                Some(json!({ "type": "thinking", "thinking": text, "signature": signature }))
            }
            Block::Opaque { provider, value } if provider == self.provider => Some(value),
            _ => None,
        };
        rich.blocks.into_iter().filter_map(write).collect()
    }
}

/// Words, with what is known about them. Texts without words are refused.
fn text(block: &Block) -> Option<Value> {
    let Block::Text { text, extra } = block else { return None };
    (!text.trim().is_empty()).then(|| with(extra, json!({ "type": "text", "text": text })))
}

fn with(extra: &JsonMap, mut value: Value) -> Value {
    merge(&mut value, extra.clone());
    value
}

fn tool_use(call: ToolCall, own: bool) -> Value {
    let input = if call.args.is_object() { call.args } else { json!({ "arguments": call.args }) };
    let written = json!({ "type": "tool_use", "id": safe(&call.id), "name": call.name, "input": input });
    if own { with(&call.extra, written) } else { written }
}

/// Ids of other providers may have characters that are refused.
fn safe(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect()
}

fn tool_result(rich: &RichMessage) -> Result<Value, Fault> {
    let answer = rich.answer.as_ref().ok_or_else(|| Fault::invalid("a tool's message does not say what it answers"))?;
    let mut result = json!({ "type": "tool_result", "tool_use_id": safe(&answer.call) });
    match &rich.blocks[..] {
        [] => {}
        [Block::Text { text, extra }] if extra.is_empty() => result["content"] = json!(text),
        blocks => result["content"] = Value::Array(content(blocks)?),
    }
    if answer.is_error {
        result["is_error"] = json!(true);
    }
    Ok(result)
}

fn content(blocks: &[Block]) -> Result<Vec<Value>, Fault> {
    let mut parts = Vec::new();
    for block in blocks {
        match block {
            Block::Text { .. } => parts.extend(text(block)),
            Block::Image(image) => parts.push(media("image", image)),
            Block::File(file) => parts.push(document(file)),
            Block::Audio(_) => return Err(Fault::invalid("it cannot hear: the request has sound in it")),
            _ => {}
        }
    }
    Ok(parts)
}

fn document(file: &Media) -> Value {
    let mut document = media("document", file);
    if let Some(name) = &file.name {
        document["title"] = json!(name);
    }
    document
}

fn media(kind: &str, media: &Media) -> Value {
    let usual = if kind == "image" { "image/png" } else { "application/pdf" };
    let source = match &media.source {
        MediaSource::Url(url) => json!({ "type": "url", "url": url }),
        MediaSource::Base64(data) => {
            json!({ "type": "base64", "media_type": media.mime.as_deref().unwrap_or(usual), "data": data })
        }
        MediaSource::Id(id) => json!({ "type": "file", "file_id": id }),
        _ => Value::Null,
    };
    with(&media.extra, json!({ "type": kind, "source": source }))
}
