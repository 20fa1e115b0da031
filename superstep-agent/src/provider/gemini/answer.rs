//! What Gemini answers. Pieces have the form of whole answers.

use serde_json::{Map, Value, json};
use superstep::{Block, Delta, DeltaPart, JsonMap, Media, Message, MessageChunk, Usage};

use crate::model::ModelErrorKind;
use crate::provider::http::{Decode, Fault};
use crate::provider::sse::Event;

/// Why an answer ends that the provider does not want to give.
const REFUSALS: [&str; 9] = [
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];

/// Reads one answer.
pub(super) struct Answer {
    provider: String,
    id: String,
    began: bool,
    finish_reason: Option<String>,
    response: JsonMap,
    usage: Option<Usage>,
    blocks: u32,
    calls: usize,
    /// The last block, if what comes next may be more of it.
    open: Option<Open>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Words,
    Thoughts,
}

impl Answer {
    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            id: Message::new_id(),
            began: false,
            finish_reason: None,
            response: Map::from_iter([("provider".to_owned(), json!(provider))]),
            usage: None,
            blocks: 0,
            calls: 0,
            open: None,
        }
    }

    fn take(&mut self, mut answer: Value) -> Result<MessageChunk, Fault> {
        if !answer["error"].is_null() {
            return Err(Fault::told(None, &answer.to_string()));
        }
        if let Some(reason) = answer["promptFeedback"]["blockReason"].as_str() {
            return Err(Fault::refused(format!("the provider blocks the prompt: {reason}")));
        }
        self.begin(&answer);
        let mut piece = MessageChunk::new(&*self.id);
        self.usage = usage(&answer["usageMetadata"]).or(self.usage);
        if let Some(Value::Object(candidate)) = answer["candidates"].get_mut(0).map(Value::take) {
            self.take_candidate(candidate, &mut piece);
        }
        Ok(piece)
    }

    /// The first piece names the answer.
    fn begin(&mut self, answer: &Value) {
        if let Some(model) = answer["modelVersion"].as_str() {
            self.response.insert("model".into(), json!(model));
        }
        if !std::mem::replace(&mut self.began, true)
            && let Some(id) = answer["responseId"].as_str().filter(|id| !id.is_empty())
        {
            self.response.insert("id".into(), json!(id));
            self.id = id.to_owned();
        }
    }

    fn take_candidate(&mut self, mut candidate: JsonMap, piece: &mut MessageChunk) {
        if let Some(Value::String(reason)) = candidate.remove("finishReason") {
            self.finish_reason = Some(reason);
        }
        let mut content = candidate.remove("content").unwrap_or_default();
        if let Value::Array(parts) = content["parts"].take() {
            for part in parts {
                self.take_part(part, piece);
            }
        }
        candidate.remove("index");
        self.response.extend(candidate);
    }

    fn take_part(&mut self, part: Value, piece: &mut MessageChunk) {
        let Value::Object(mut fields) = part else { return };
        let is_thought = fields.remove("thought") == Some(Value::Bool(true));
        if let Some(Value::String(text)) = fields.get("text") {
            let text = text.clone();
            fields.remove("text");
            return self.take_text(text, is_thought, fields, piece);
        }
        self.open = None;
        let part = if let Some(call) = fields.remove("functionCall") {
            DeltaPart::Block { value: self.call(call, fields) }
        } else {
            DeltaPart::Block { value: self.other(fields) }
        };
        piece.deltas.push(Delta::new(self.next_place(), part));
    }

    /// Text goes on where the last text of its kind ended. A signature belongs to all of it, and ends it.
    fn take_text(&mut self, text: String, is_thought: bool, mut fields: JsonMap, piece: &mut MessageChunk) {
        let kind = if is_thought { Open::Thoughts } else { Open::Words };
        let place = if self.open == Some(kind) { self.blocks - 1 } else { self.next_place() };
        self.open = Some(kind).filter(|_| !fields.contains_key("thoughtSignature"));
        if is_thought {
            let signature = fields.remove("thoughtSignature").and_then(|value| value.as_str().map(str::to_owned));
            piece.deltas.push(Delta::new(place, DeltaPart::Reasoning { text, signature }));
        } else {
            piece.deltas.push(Delta::text(place, text));
        }
        if !fields.is_empty() {
            piece.deltas.push(Delta::new(place, DeltaPart::Extra { extra: fields }));
        }
    }

    fn next_place(&mut self) -> u32 {
        self.blocks += 1;
        self.blocks - 1
    }

    /// A call; one without an id gets one that is the same however the answer came.
    fn call(&mut self, mut call: Value, mut extra: JsonMap) -> Block {
        let name = call["name"].as_str().unwrap_or_default().to_owned();
        let args = call.get_mut("args").map_or_else(|| json!({}), Value::take);
        let given = call["id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        if let Some(id) = &given {
            extra.insert("id".into(), json!(id));
        }
        let id = given.unwrap_or_else(|| format!("{}-{}", self.id, self.calls));
        self.calls += 1;
        let mut call = superstep::ToolCall::new(id, name, args);
        call.extra = extra;
        Block::ToolCall(call)
    }

    /// A picture, or something that only Gemini understands.
    fn other(&self, mut fields: JsonMap) -> Block {
        let text = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
        let inline = fields.get("inlineData").cloned().unwrap_or_default();
        match (text(&inline, "mimeType"), text(&inline, "data")) {
            (Some(mime), Some(data)) if mime.starts_with("image/") => {
                fields.remove("inlineData");
                let mut media = Media::base64(mime, data);
                media.extra = fields;
                Block::Image(media)
            }
            _ => Block::Opaque { provider: self.provider.clone(), value: Value::Object(fields) },
        }
    }
}

impl Decode for Answer {
    fn whole(&mut self, answer: Value) -> Result<MessageChunk, Fault> {
        self.take(answer)
    }

    fn event(&mut self, event: &Event) -> Result<Option<MessageChunk>, Fault> {
        let answer = serde_json::from_str(&event.data)
            .map_err(|error| Fault::unexpected("a piece of its answer is no JSON").caused_by(error))?;
        self.take(answer).map(Some)
    }

    /// Only the end of the connection tells.
    fn has_ended(&self) -> bool {
        false
    }

    fn finish(&mut self) -> Result<MessageChunk, Fault> {
        let Some(reason) = self.finish_reason.take() else {
            let words = if self.began { "its answer broke off" } else { "it said nothing" };
            return Err(Fault::new(ModelErrorKind::BrokenStream, words));
        };
        if REFUSALS.contains(&&*reason) {
            return Err(Fault::refused(format!("the provider holds the answer back: {reason}")));
        }
        if reason == "MALFORMED_FUNCTION_CALL" {
            return Err(Fault::new(ModelErrorKind::InvalidOutput, "it wrote a function call that cannot be read"));
        }
        let mut piece = MessageChunk::new(&*self.id);
        piece.usage = self.usage;
        piece.response = std::mem::take(&mut self.response);
        piece.response.insert("finish_reason".into(), Value::String(reason));
        Ok(piece)
    }
}

/// Thoughts are told apart from the answer.
fn usage(usage: &Value) -> Option<Usage> {
    usage.as_object()?;
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    let thoughts = count("thoughtsTokenCount");
    let input = count("promptTokenCount") + count("toolUsePromptTokenCount");
    let mut counted = Usage::new(input, count("candidatesTokenCount") + thoughts);
    (counted.cache_read, counted.reasoning) = (count("cachedContentTokenCount"), thoughts);
    Some(counted)
}
