//! What responses answer: items, which come whole or grow event by event.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use superstep::{Block, Delta, DeltaPart, JsonMap, Message, MessageChunk, Usage};

use crate::model::ModelErrorKind;
use crate::provider::http::{Decode, Fault};
use crate::provider::sse::Event;

/// Places that an item has for its parts.
const PARTS: u32 = 64;

/// Reads one response.
pub(super) struct Answer {
    provider: String,
    id: String,
    began: bool,
    ended: bool,
    /// Places of which something was passed on already.
    said: BTreeSet<u32>,
    /// The summary that the thoughts of an item are in.
    summary: (u32, u64),
    refusal: String,
    usage: Option<Usage>,
    response: JsonMap,
}

impl Answer {
    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            id: Message::new_id(),
            began: false,
            ended: false,
            said: BTreeSet::new(),
            summary: (0, 0),
            refusal: String::new(),
            usage: None,
            response: Map::from_iter([("provider".to_owned(), json!(provider))]),
        }
    }

    fn take(&mut self, mut event: Value) -> Result<Vec<Delta>, Fault> {
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| event[name].as_u64().unwrap_or(0);
        let place = number("output_index") as u32 * PARTS;
        let delta = event["delta"].as_str().unwrap_or_default().to_owned();
        Ok(match &*kind {
            "response.created" => {
                self.begin(&event["response"]);
                vec![]
            }
            "response.output_item.added" => added(place, &event["item"]),
            "response.output_text.delta" => {
                let place = place + number("content_index") as u32;
                self.say(place, DeltaPart::Text { text: delta })
            }
            "response.reasoning_summary_text.delta" => self.think(place, number("summary_index"), delta),
            "response.reasoning_text.delta" => self.think(place, number("content_index"), delta),
            "response.function_call_arguments.delta" => {
                self.say(place, DeltaPart::ToolCall { id: None, name: None, args: delta })
            }
            "response.output_item.done" => self.done(place, event["item"].take()),
            "response.completed" | "response.incomplete" => {
                self.end(&event["response"]);
                vec![]
            }
            "response.failed" => return Err(failed(&event["response"])),
            "error" => return Err(Fault::told(None, &event.to_string())),
            _ => vec![],
        })
    }

    fn begin(&mut self, response: &Value) {
        self.began = true;
        if let Some(id) = response["id"].as_str() {
            self.id = id.to_owned();
            self.response.insert("id".into(), json!(id));
        }
    }

    /// Notes what the whole response tells.
    fn end(&mut self, response: &Value) {
        self.ended = true;
        self.usage = usage(&response["usage"]);
        let reason = response["incomplete_details"]["reason"].as_str().or(response["status"].as_str());
        self.response.insert("finish_reason".into(), json!(reason.unwrap_or("completed")));
        for name in ["model", "service_tier"] {
            if let Some(told) = response[name].as_str() {
                self.response.insert(name.into(), json!(told));
            }
        }
    }

    fn say(&mut self, place: u32, part: DeltaPart) -> Vec<Delta> {
        self.said.insert(place);
        vec![Delta::new(place, part)]
    }

    /// Thoughts come in several summaries, which are put apart as paragraphs.
    fn think(&mut self, place: u32, summary: u64, delta: String) -> Vec<Delta> {
        let begun = self.said.contains(&place);
        let before = std::mem::replace(&mut self.summary, (place, summary));
        let text = if begun && before != (place, summary) { format!("\n\n{delta}") } else { delta };
        self.say(place, DeltaPart::Reasoning { text, signature: None })
    }

    /// An item is whole: what was not passed on yet follows now.
    fn done(&mut self, place: u32, item: Value) -> Vec<Delta> {
        match item["type"].as_str() {
            Some("message") => self.done_message(place, item),
            Some("reasoning") => self.done_reasoning(place, item),
            Some("function_call") => self.done_call(place, item),
            _ => {
                let value = Block::Opaque { provider: self.provider.clone(), value: item };
                vec![Delta::new(place, DeltaPart::Block { value })]
            }
        }
    }

    fn done_message(&mut self, place: u32, mut item: Value) -> Vec<Delta> {
        let parts = item["content"].take();
        let extra = left(item, &["type", "role", "content", "status"]);
        let mut deltas = Vec::new();
        for (number, part) in parts.as_array().into_iter().flatten().enumerate() {
            let place = place + number as u32;
            if let Some(refusal) = part["refusal"].as_str() {
                self.refusal.push_str(refusal);
                continue;
            }
            if !self.said.contains(&place) {
                let text = part["text"].as_str().unwrap_or_default().to_owned();
                deltas.push(Delta::new(place, DeltaPart::Text { text }));
            }
            let mut extra = extra.clone();
            if let Some(annotations) = part["annotations"].as_array().filter(|list| !list.is_empty()) {
                extra.insert("annotations".into(), json!(annotations));
            }
            deltas.push(Delta::new(place, DeltaPart::Extra { extra }));
        }
        deltas
    }

    fn done_reasoning(&mut self, place: u32, mut item: Value) -> Vec<Delta> {
        let texts = |list: &Value| {
            let texts = list.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n\n")
        };
        let summary = texts(&item["summary"]);
        let text = if summary.is_empty() { texts(&item["content"]) } else { summary };
        let text = if self.said.contains(&place) { String::new() } else { text };
        let signature = item["encrypted_content"].take().as_str().map(str::to_owned);
        // One summary can be told from the text; several cannot.
        let is_told = item["summary"].as_array().is_some_and(|parts| parts.len() == 1) && item["content"].is_null();
        let known: &[&str] = if is_told { &["type", "status", "summary", "content"] } else { &["type", "status"] };
        let extra = left(item, known);
        vec![Delta::new(place, DeltaPart::Reasoning { text, signature }), Delta::new(place, DeltaPart::Extra { extra })]
    }

    fn done_call(&mut self, place: u32, item: Value) -> Vec<Delta> {
        let text = |name: &str| item[name].as_str().map(str::to_owned);
        let mut deltas = Vec::new();
        if !self.said.contains(&place) {
            let args = text("arguments").unwrap_or_default();
            deltas.push(Delta::new(place, DeltaPart::ToolCall { id: text("call_id"), name: text("name"), args }));
        }
        let extra = left(item, &["type", "status", "call_id", "name", "arguments"]);
        deltas.push(Delta::new(place, DeltaPart::Extra { extra }));
        deltas
    }
}

impl Decode for Answer {
    fn whole(&mut self, mut answer: Value) -> Result<MessageChunk, Fault> {
        if answer["status"] == "failed" || !answer["error"].is_null() {
            return Err(failed(&answer));
        }
        self.begin(&answer);
        let mut piece = MessageChunk::new(&*self.id);
        let items = answer["output"].take();
        for (number, item) in items.as_array().into_iter().flatten().enumerate() {
            piece.deltas.extend(self.done(number as u32 * PARTS, item.clone()));
        }
        self.end(&answer);
        Ok(piece)
    }

    fn event(&mut self, event: &Event) -> Result<Option<MessageChunk>, Fault> {
        let event = serde_json::from_str(&event.data)
            .map_err(|error| Fault::unexpected("a piece of its answer is no JSON").caused_by(error))?;
        let deltas = self.take(event)?;
        let mut piece = MessageChunk::new(&*self.id);
        piece.deltas = deltas;
        Ok(Some(piece))
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn finish(&mut self) -> Result<MessageChunk, Fault> {
        if !self.ended {
            let words = if self.began { "its answer broke off" } else { "it said nothing" };
            return Err(Fault::new(ModelErrorKind::BrokenStream, words));
        }
        if !self.refusal.is_empty() {
            return Err(Fault::refused(format!("it refuses: {}", self.refusal)));
        }
        if self.response["finish_reason"] == "content_filter" {
            return Err(Fault::refused("its answer was held back by the provider's content filter"));
        }
        let mut piece = MessageChunk::new(&*self.id);
        piece.usage = self.usage;
        piece.response = std::mem::take(&mut self.response);
        Ok(piece)
    }
}

/// The name of a call comes first.
fn added(place: u32, item: &Value) -> Vec<Delta> {
    if item["type"] != "function_call" {
        return vec![];
    }
    let text = |name: &str| item[name].as_str().map(str::to_owned);
    let part = DeltaPart::ToolCall { id: text("call_id"), name: text("name"), args: String::new() };
    vec![Delta::new(place, part)]
}

/// What is left of an item without what is known of it.
fn left(item: Value, known: &[&str]) -> JsonMap {
    let Value::Object(item) = item else { return JsonMap::new() };
    item.into_iter().filter(|(name, value)| !known.contains(&&**name) && !value.is_null()).collect()
}

fn failed(response: &Value) -> Fault {
    Fault::told(None, &json!({ "error": response["error"] }).to_string())
}

fn usage(usage: &Value) -> Option<Usage> {
    usage.as_object()?;
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let mut counted = Usage::new(count(&usage["input_tokens"]), count(&usage["output_tokens"]));
    counted.cache_read = count(&usage["input_tokens_details"]["cached_tokens"]);
    counted.reasoning = count(&usage["output_tokens_details"]["reasoning_tokens"]);
    Some(counted)
}
