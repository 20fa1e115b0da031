//! What chat completions answer. Whole answers and pieces differ only in where the message is.

use serde_json::{Map, Value, json};
use superstep::{Delta, DeltaPart, JsonMap, Message, MessageChunk, Usage};

use crate::model::ModelErrorKind;
use crate::provider::http::{Decode, Fault};
use crate::provider::sse::Event;

/// The places of the blocks: thoughts, words, then the calls.
const THOUGHTS: u32 = 0;
const WORDS: u32 = 1;
const CALLS: u32 = 2;

/// Ids of this length are unique; shorter ones, as of some local servers, come again, and would replace messages.
const UNIQUE: usize = 20;

/// Fields of an answer that say nothing about it.
const NOISE: [&str; 6] = ["object", "created", "choices", "usage", "obfuscation", "id"];

/// Reads one completion.
pub(super) struct Completion {
    id: String,
    began: bool,
    calls: Vec<Call>,
    refusal: String,
    finish_reason: Option<String>,
    ended: bool,
    response: JsonMap,
    extra: JsonMap,
}

/// A call that is being written.
struct Call {
    index: Option<u64>,
    id: String,
    extra: JsonMap,
}

impl Completion {
    pub(super) fn new(provider: &str) -> Self {
        Self {
            id: Message::new_id(),
            began: false,
            calls: Vec::new(),
            refusal: String::new(),
            finish_reason: None,
            ended: false,
            response: Map::from_iter([("provider".to_owned(), json!(provider))]),
            extra: JsonMap::new(),
        }
    }

    /// Takes a completion or a piece of one.
    fn take(&mut self, answer: Value, message: &str) -> Result<MessageChunk, Fault> {
        let Value::Object(mut answer) = answer else { return Err(Fault::unexpected("its answer is no object")) };
        if answer.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::told(None, &Value::Object(answer).to_string()));
        }
        self.begin(&answer);
        let mut piece = MessageChunk::new(&*self.id);
        piece.usage = answer.get("usage").and_then(usage);
        let choice = answer.get_mut("choices").and_then(|choices| choices.get_mut(0)).map(Value::take);
        if let Some(Value::Object(choice)) = choice {
            self.take_choice(choice, message, &mut piece);
        }
        let told = answer.into_iter().filter(|(name, value)| !NOISE.contains(&&**name) && !value.is_null());
        self.response.extend(told);
        Ok(piece)
    }

    /// The first piece names the answer.
    fn begin(&mut self, answer: &JsonMap) {
        if std::mem::replace(&mut self.began, true) {
            return;
        }
        let Some(id) = answer.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()) else { return };
        self.response.insert("id".into(), json!(id));
        if id.len() >= UNIQUE {
            self.id = id.to_owned();
        }
    }

    fn take_choice(&mut self, mut choice: JsonMap, message: &str, piece: &mut MessageChunk) {
        if let Some(Value::String(reason)) = choice.remove("finish_reason") {
            self.finish_reason = Some(reason);
        }
        if let Some(Value::Object(message)) = choice.remove(message) {
            self.take_message(message, piece);
        }
        choice.remove("index");
        join(&mut self.response, choice);
    }

    fn take_message(&mut self, mut message: JsonMap, piece: &mut MessageChunk) {
        message.remove("role");
        for field in ["reasoning_content", "reasoning"] {
            if let Some(Value::String(text)) = message.remove(field)
                && !text.is_empty()
            {
                piece.deltas.push(Delta::new(THOUGHTS, DeltaPart::Reasoning { text, signature: None }));
                let extra = Map::from_iter([("field".to_owned(), json!(field))]);
                piece.deltas.push(Delta::new(THOUGHTS, DeltaPart::Extra { extra }));
            }
        }
        if let Some(text) = message.remove("content").and_then(words).filter(|text| !text.is_empty()) {
            piece.deltas.push(Delta::text(WORDS, text));
        }
        if let Some(Value::String(refusal)) = message.remove("refusal") {
            self.refusal.push_str(&refusal);
        }
        if let Some(Value::Array(calls)) = message.remove("tool_calls") {
            for call in calls {
                self.take_call(call, piece);
            }
        }
        // They are about the answer; the provider does not take them back.
        if let Some(annotations) = message.remove("annotations").filter(|list| *list != json!([])) {
            join(&mut self.response, Map::from_iter([("annotations".to_owned(), annotations)]));
        }
        join(&mut self.extra, message);
    }

    fn take_call(&mut self, call: Value, piece: &mut MessageChunk) {
        let Value::Object(mut call) = call else { return };
        let index = call.remove("index").as_ref().and_then(Value::as_u64);
        let id = call.remove("id").and_then(|id| id.as_str().map(str::to_owned)).filter(|id| !id.is_empty());
        let function = call.remove("function").unwrap_or_default();
        let name = function["name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        let place = self.place(index, id, name.is_some());
        let args = match &function["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        call.remove("type");
        join(&mut self.calls[place].extra, call);
        let part = DeltaPart::ToolCall { id: Some(self.calls[place].id.clone()), name, args };
        piece.deltas.push(Delta::new(CALLS + place as u32, part));
    }

    /// Where a piece of a call belongs. Some servers number all calls alike, or not at all: another id is another call.
    fn place(&mut self, index: Option<u64>, id: Option<String>, named: bool) -> usize {
        let known = self.calls.iter().rposition(|call| index.is_none() || call.index == index);
        let known = known.filter(|place| match &id {
            Some(id) => self.calls[*place].id == *id,
            None => index.is_some() || !named,
        });
        known.unwrap_or_else(|| {
            let id = id.unwrap_or_else(|| format!("{}-{}", self.id, self.calls.len()));
            self.calls.push(Call { index, id, extra: JsonMap::new() });
            self.calls.len() - 1
        })
    }
}

impl Decode for Completion {
    fn whole(&mut self, answer: Value) -> Result<MessageChunk, Fault> {
        self.ended = true;
        self.take(answer, "message")
    }

    fn event(&mut self, event: &Event) -> Result<Option<MessageChunk>, Fault> {
        if event.data.trim() == "[DONE]" {
            self.ended = true;
            return Ok(None);
        }
        let answer = serde_json::from_str(&event.data)
            .map_err(|error| Fault::unexpected("a piece of its answer is no JSON").caused_by(error))?;
        self.take(answer, "delta").map(Some)
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn finish(&mut self) -> Result<MessageChunk, Fault> {
        let Some(reason) = self.finish_reason.take() else {
            let words = if self.began { "its answer broke off" } else { "it said nothing" };
            return Err(Fault::new(ModelErrorKind::BrokenStream, words));
        };
        if !self.refusal.is_empty() {
            return Err(Fault::refused(format!("it refuses: {}", self.refusal)));
        }
        if reason == "content_filter" {
            return Err(Fault::refused("its answer was held back by the provider's content filter"));
        }
        let mut piece = MessageChunk::new(&*self.id);
        for (place, call) in self.calls.iter_mut().enumerate().filter(|(_, call)| !call.extra.is_empty()) {
            let extra = std::mem::take(&mut call.extra);
            piece.deltas.push(Delta::new(CALLS + place as u32, DeltaPart::Extra { extra }));
        }
        piece.response = std::mem::take(&mut self.response);
        piece.response.insert("finish_reason".into(), Value::String(reason));
        piece.extra = std::mem::take(&mut self.extra);
        Ok(piece)
    }
}

/// The words of a content, which may come in parts.
fn words(content: Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text),
        Value::Array(parts) => Some(parts.iter().filter_map(|part| part["text"].as_str()).collect()),
        _ => None,
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    usage.as_object()?;
    let mut counted = Usage::new(count(&usage["prompt_tokens"]), count(&usage["completion_tokens"]));
    let hit = count(&usage["prompt_cache_hit_tokens"]);
    counted.cache_read = count(&usage["prompt_tokens_details"]["cached_tokens"]).max(hit);
    counted.reasoning = count(&usage["completion_tokens_details"]["reasoning_tokens"]);
    Some(counted)
}

/// Puts pieces of fields that nobody here knows together: texts and lists grow, other values are replaced.
fn join(whole: &mut JsonMap, piece: JsonMap) {
    for (name, value) in piece {
        match (whole.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
            (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
            (Some(Value::Object(object)), Value::Object(more)) => join(object, more),
            (_, value) => drop(whole.insert(name, value)),
        }
    }
}
