//! What Anthropic's messages answer. A whole answer is read as the events that would have brought it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use superstep::{Block, Delta, DeltaPart, JsonMap, Message, MessageChunk, Usage};

use crate::model::ModelErrorKind;
use crate::provider::http::{Decode, Fault};
use crate::provider::sse::Event;

/// Reads one answer.
pub(super) struct Answer {
    provider: String,
    id: String,
    began: bool,
    ended: bool,
    /// Numbers as they were told last.
    usage: JsonMap,
    response: JsonMap,
    blocks: BTreeMap<u32, Known>,
}

/// What has to be remembered of a block until it ends.
enum Known {
    Text {
        citations: Vec<Value>,
    },
    Plain,
    /// Only the provider understands it; its input may come in pieces.
    Opaque {
        value: Value,
        input: String,
    },
}

impl Answer {
    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            id: Message::new_id(),
            began: false,
            ended: false,
            usage: JsonMap::new(),
            response: Map::from_iter([("provider".to_owned(), json!(provider))]),
            blocks: BTreeMap::new(),
        }
    }

    fn take(&mut self, mut event: Value) -> Result<Option<MessageChunk>, Fault> {
        let place = event["index"].as_u64().unwrap_or(0) as u32;
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let deltas = match &*kind {
            "message_start" => return Ok(Some(self.begin(event["message"].take()))),
            "content_block_start" => self.begin_block(place, event["content_block"].take()),
            "content_block_delta" => self.grow_block(place, event["delta"].take()),
            "content_block_stop" => self.end_block(place),
            "message_delta" => {
                self.note_usage(event["usage"].take());
                self.note(event["delta"].take());
                vec![]
            }
            "message_stop" => {
                self.ended = true;
                vec![]
            }
            "error" => return Err(Fault::told(None, &event.to_string())),
            // A sign of life, or something new that can wait until it is known.
            _ => vec![],
        };
        let mut piece = MessageChunk::new(&*self.id);
        piece.deltas = deltas;
        Ok(Some(piece))
    }

    /// What is known of the message before its blocks come.
    fn begin(&mut self, mut message: Value) -> MessageChunk {
        self.began = true;
        if let Some(id) = message["id"].as_str() {
            self.id = id.to_owned();
            self.response.insert("id".into(), json!(id));
        }
        self.note_usage(message["usage"].take());
        self.note(message);
        let mut piece = MessageChunk::new(&*self.id);
        piece.usage = Some(counted(&self.usage));
        piece
    }

    /// Keeps what the provider tells about its answer.
    fn note(&mut self, told: Value) {
        let Value::Object(told) = told else { return };
        for (name, value) in told.into_iter().filter(|(_, value)| !value.is_null()) {
            match &*name {
                "id" | "type" | "role" | "content" | "usage" => {}
                "stop_reason" => drop(self.response.insert("finish_reason".into(), value)),
                _ => drop(self.response.insert(name, value)),
            }
        }
    }

    fn note_usage(&mut self, usage: Value) {
        let Value::Object(usage) = usage else { return };
        self.usage.extend(usage.into_iter().filter(|(_, value)| !value.is_null()));
    }

    fn begin_block(&mut self, place: u32, block: Value) -> Vec<Delta> {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        let (known, part) = match block["type"].as_str() {
            Some("text") => {
                let citations = block["citations"].as_array().cloned().unwrap_or_default();
                (Known::Text { citations }, DeltaPart::Text { text: text("text") })
            }
            Some("thinking") => {
                let signature = Some(text("signature")).filter(|signature| !signature.is_empty());
                (Known::Plain, DeltaPart::Reasoning { text: text("thinking"), signature })
            }
            Some("tool_use") => return self.begin_call(place, block),
            _ => {
                self.blocks.insert(place, Known::Opaque { value: block, input: String::new() });
                return vec![];
            }
        };
        self.blocks.insert(place, known);
        // A block that streams begins empty, which is nothing to pass on.
        let is_empty = match &part {
            DeltaPart::Text { text } => text.is_empty(),
            DeltaPart::Reasoning { text, signature } => text.is_empty() && signature.is_none(),
            _ => false,
        };
        if is_empty { vec![] } else { vec![Delta::new(place, part)] }
    }

    fn begin_call(&mut self, place: u32, block: Value) -> Vec<Delta> {
        let Value::Object(mut block) = block else { return vec![] };
        let mut text = |name: &str| block.remove(name).and_then(|value| value.as_str().map(str::to_owned));
        let (id, name) = (text("id"), text("name"));
        // While it streams, an empty input stands for the one to come.
        let input = block.remove("input").filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
        let args = input.map_or_else(String::new, |input| input.to_string());
        block.remove("type");
        self.blocks.insert(place, Known::Plain);
        let mut deltas = vec![Delta::new(place, DeltaPart::ToolCall { id, name, args })];
        if !block.is_empty() {
            deltas.push(Delta::new(place, DeltaPart::Extra { extra: block }));
        }
        deltas
    }

    fn grow_block(&mut self, place: u32, mut delta: Value) -> Vec<Delta> {
        let text = |name: &str| delta[name].as_str().unwrap_or_default().to_owned();
        let part = match (delta["type"].as_str(), self.blocks.get_mut(&place)) {
            (Some("text_delta"), _) => DeltaPart::Text { text: text("text") },
            (Some("thinking_delta"), _) => DeltaPart::Reasoning { text: text("thinking"), signature: None },
            (Some("signature_delta"), _) => {
                DeltaPart::Reasoning { text: String::new(), signature: Some(text("signature")) }
            }
            (Some("input_json_delta"), Some(Known::Opaque { input, .. })) => {
                input.push_str(&text("partial_json"));
                return vec![];
            }
            (Some("input_json_delta"), _) => DeltaPart::ToolCall { id: None, name: None, args: text("partial_json") },
            (Some("citations_delta"), Some(Known::Text { citations })) => {
                citations.push(delta["citation"].take());
                return vec![];
            }
            _ => return vec![],
        };
        vec![Delta::new(place, part)]
    }

    fn end_block(&mut self, place: u32) -> Vec<Delta> {
        let part = match self.blocks.remove(&place) {
            Some(Known::Text { citations }) if !citations.is_empty() => {
                DeltaPart::Extra { extra: Map::from_iter([("citations".to_owned(), Value::Array(citations))]) }
            }
            Some(Known::Opaque { mut value, input }) => {
                if let Ok(input) = serde_json::from_str::<Value>(&input) {
                    value["input"] = input;
                }
                DeltaPart::Block { value: Block::Opaque { provider: self.provider.clone(), value } }
            }
            _ => return vec![],
        };
        vec![Delta::new(place, part)]
    }
}

impl Decode for Answer {
    fn whole(&mut self, mut answer: Value) -> Result<MessageChunk, Fault> {
        if answer["type"] == "error" {
            return Err(Fault::told(None, &answer.to_string()));
        }
        let blocks = answer["content"].take();
        let mut piece = self.begin(answer);
        for (place, block) in blocks.as_array().into_iter().flatten().enumerate() {
            piece.deltas.extend(self.begin_block(place as u32, block.clone()));
            piece.deltas.extend(self.end_block(place as u32));
        }
        self.ended = true;
        Ok(piece)
    }

    fn event(&mut self, event: &Event) -> Result<Option<MessageChunk>, Fault> {
        let event = serde_json::from_str(&event.data)
            .map_err(|error| Fault::unexpected("a piece of its answer is no JSON").caused_by(error))?;
        self.take(event)
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn finish(&mut self) -> Result<MessageChunk, Fault> {
        let reason = self.response.get("finish_reason").and_then(Value::as_str);
        match reason {
            Some("refusal") => return Err(Fault::refused("it refuses to answer")),
            Some(_) if self.ended => {}
            _ => {
                let words = if self.began { "its answer broke off" } else { "it said nothing" };
                return Err(Fault::new(ModelErrorKind::BrokenStream, words));
            }
        }
        let mut piece = MessageChunk::new(&*self.id);
        piece.usage = Some(counted(&self.usage));
        piece.response = std::mem::take(&mut self.response);
        Ok(piece)
    }
}

/// What was read from the cache or written to it is told apart from the rest of the input.
fn counted(usage: &JsonMap) -> Usage {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let (read, written) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    let mut counted = Usage::new(count("input_tokens") + read + written, count("output_tokens"));
    (counted.cache_read, counted.cache_write) = (read, written);
    counted
}
