//! What Gemini is asked.

use std::collections::HashMap;

use serde_json::{Value, json};
use superstep::{Block, Media, MediaSource, RichMessage, Role, ToolCall};

use crate::model::{ChatRequest, ToolChoice};
use crate::provider::http::Fault;
use crate::provider::schema;
use crate::provider::setup::{Asked, last_word, merge};
use crate::tool::ToolSpec;

/// Calls that another model made have no signature; this lets Gemini take them as they are.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn body(asked: &Asked) -> Result<Value, Fault> {
    let request = &asked.request;
    let mut conversation = Conversation::new(&asked.provider);
    for message in &request.messages {
        if let Ok(rich) = message.clone().into_rich() {
            conversation.add(rich)?;
        }
    }
    conversation.end_with_user(asked);
    let mut body = json!({ "contents": conversation.contents });
    if !conversation.system.is_empty() {
        body["systemInstruction"] = json!({ "parts": conversation.system });
    }
    add_tools(&mut body, request)?;
    add_settings(&mut body, request);
    merge(&mut body, request.settings.extra.clone());
    Ok(body)
}

fn add_settings(body: &mut Value, request: &ChatRequest) {
    let settings = &request.settings;
    let mut config = json!({});
    if let Some(temperature) = settings.temperature {
        config["temperature"] = json!(temperature);
    }
    if let Some(top_p) = settings.top_p {
        config["topP"] = json!(top_p);
    }
    if let Some(tokens) = settings.max_tokens {
        config["maxOutputTokens"] = json!(tokens);
    }
    if !settings.stop.is_empty() {
        config["stopSequences"] = json!(settings.stop);
    }
    if let Some(output) = &request.output {
        config["responseMimeType"] = json!("application/json");
        config["responseJsonSchema"] = schema::plain(&output.schema);
    }
    if config != json!({}) {
        body["generationConfig"] = config;
    }
}

fn add_tools(body: &mut Value, request: &ChatRequest) -> Result<(), Fault> {
    if request.tools.is_empty() {
        return Ok(());
    }
    if request.parallel_tool_calls == Some(false) {
        return Err(Fault::invalid("it cannot be told to call one tool at a time; leave `parallel_tool_calls` out"));
    }
    let tools: Value = request.tools.iter().map(tool).collect();
    body["tools"] = json!([{ "functionDeclarations": tools }]);
    let config = match &request.tool_choice {
        ToolChoice::Auto => return Ok(()),
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::Tool(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
    };
    body["toolConfig"] = json!({ "functionCallingConfig": config });
    Ok(())
}

fn tool(spec: &ToolSpec) -> Value {
    let parameters = schema::plain(&spec.parameters);
    let mut tool = json!({ "name": spec.name, "description": spec.description, "parametersJsonSchema": parameters });
    merge(&mut tool, spec.extra.clone());
    tool
}

/// The conversation as it is sent: system texts apart, results of tools by the names of the tools.
struct Conversation<'a> {
    provider: &'a str,
    /// The calls so far, by their ids.
    calls: HashMap<String, ToolCall>,
    system: Vec<Value>,
    contents: Vec<Value>,
    after_tool: bool,
}

impl<'a> Conversation<'a> {
    fn new(provider: &'a str) -> Self {
        Self { provider, calls: HashMap::new(), system: Vec::new(), contents: Vec::new(), after_tool: false }
    }

    /// The user has the last word, or else the model may refuse to answer.
    fn end_with_user(&mut self, asked: &Asked) {
        if self.contents.last().is_some_and(|content| content["role"] == "model") {
            self.contents.push(json!({ "role": "user", "parts": [{ "text": last_word(asked) }] }));
        }
    }

    fn add(&mut self, rich: RichMessage) -> Result<(), Fault> {
        let is_tool = rich.role == Role::Tool;
        let (role, parts) = match rich.role {
            Role::System => {
                self.system.extend(rich.blocks.iter().filter_map(part));
                return Ok(());
            }
            Role::Assistant => ("model", self.model(rich)),
            Role::Tool => ("user", self.tool_result(&rich)?),
            _ => ("user", rich.blocks.iter().filter_map(part).collect()),
        };
        if parts.is_empty() {
            return Ok(());
        }
        // The results of calls that were made together belong together.
        let joins = is_tool && std::mem::replace(&mut self.after_tool, is_tool);
        self.after_tool = is_tool;
        match self.contents.last_mut().filter(|_| joins) {
            Some(content) => content["parts"].as_array_mut().expect("a content has parts").extend(parts),
            None => self.contents.push(json!({ "role": role, "parts": parts })),
        }
        Ok(())
    }

    /// What a model said; what other providers made for themselves is left out.
    fn model(&mut self, rich: RichMessage) -> Vec<Value> {
        let made_by = rich.response.get("provider").and_then(Value::as_str);
        let own = made_by == Some(self.provider);
        let mut parts = Vec::new();
        let mut signed = own;
        for block in rich.blocks {
            match block {
                // A text without words is refused, unless there is something else to it.
                Block::Text { text, extra } if text.is_empty() && (extra.is_empty() || !own) => {}
                Block::Text { text, extra } => {
                    let mut part = json!({ "text": text });
                    if own {
                        merge(&mut part, extra);
                    }
                    parts.push(part);
                }
                Block::Reasoning { text, signature, .. } if own => {
                    let mut part = json!({ "text": text, "thought": true });
                    if let Some(signature) = signature {
                        part["thoughtSignature"] = json!(signature);
                    }
                    parts.push(part);
                }
                Block::ToolCall(call) => {
                    // Ids may come again: a result belongs to the last call before it.
                    self.calls.insert(call.id.clone(), call.clone());
                    let signature = (!std::mem::replace(&mut signed, true)).then_some(NO_SIGNATURE);
                    parts.push(function_call(call, own, signature));
                }
                Block::Opaque { provider, value } if provider == self.provider => parts.push(value),
                Block::Image(_) if own => parts.extend(part(&block)),
                _ => {}
            }
        }
        parts
    }

    fn tool_result(&self, rich: &RichMessage) -> Result<Vec<Value>, Fault> {
        let answer =
            rich.answer.as_ref().ok_or_else(|| Fault::invalid("a tool's message does not say what it answers"))?;
        let call = self.calls.get(&answer.call);
        let name = call.map(|call| &call.name).or(rich.name.as_ref()).ok_or_else(|| {
            Fault::invalid(format!("the result of call `{}` comes without the call or a name", answer.call))
        })?;
        let key = if answer.is_error { "error" } else { "output" };
        let mut response = json!({ "name": name, "response": { key: rich.text() } });
        if let Some(id) = call.and_then(|call| call.extra.get("id")) {
            response["id"] = id.clone();
        }
        let shown = rich.blocks.iter().filter(|block| block.as_text().is_none()).filter_map(part);
        Ok(std::iter::once(json!({ "functionResponse": response })).chain(shown).collect())
    }
}

fn function_call(call: ToolCall, own: bool, signature: Option<&str>) -> Value {
    let args = if call.args.is_object() { call.args } else { json!({ "arguments": call.args }) };
    let mut part = json!({ "functionCall": { "name": call.name, "args": args } });
    if own {
        let mut extra = call.extra;
        if let Some(id) = extra.remove("id") {
            part["functionCall"]["id"] = id;
        }
        merge(&mut part, extra);
    }
    if let Some(signature) = signature {
        part["thoughtSignature"] = json!(signature);
    }
    part
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text, .. } => (!text.is_empty()).then(|| json!({ "text": text })),
        Block::Image(media) => Some(data(media, "image/png")),
        Block::Audio(media) => Some(data(media, "audio/wav")),
        Block::File(media) => Some(data(media, "application/pdf")),
        _ => None,
    }
}

fn data(media: &Media, usual: &str) -> Value {
    let mut part = match &media.source {
        MediaSource::Base64(data) => {
            json!({ "inlineData": { "mimeType": media.mime.as_deref().unwrap_or(usual), "data": data } })
        }
        MediaSource::Url(uri) | MediaSource::Id(uri) => json!({ "fileData": { "fileUri": uri } }),
        _ => json!({}),
    };
    if let (Some(mime), Some(file)) = (&media.mime, part.get_mut("fileData")) {
        file["mimeType"] = json!(mime);
    }
    merge(&mut part, media.extra.clone());
    part
}
