//! What a conversation took so far: calls of models and tools, and tokens.
//!
//! It is read out of the messages, so it goes back with them when a thread is rewound. A summary keeps the tally of
//! what it replaced. What was taken by calls that are no part of the conversation stands beside a message.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use superstep::{Message, MessageKind, Role, ToolCall, Usage};

use super::origin::{is_written_by, writer, written_by};

/// The mark of messages that stand for others.
pub(crate) const SUMMARY: &str = "summarize";
/// Whether a message stands for others.
pub(crate) fn is_summary(message: &Message) -> bool {
    is_written_by(message, SUMMARY)
}

const REPLACED: &str = "replaced";
const TOOK: &str = "took";

/// What messages took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) model_calls: u64,
    /// By the names of the tools.
    pub(crate) tool_calls: BTreeMap<String, u64>,
    /// What each answer of a model took; what a summary stands for took is one of them.
    pub(crate) usages: Vec<Usage>,
}

/// What a summary stands for: all of it, and what belongs to the run that it was made in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Replaced {
    thread: Tally,
    run: Tally,
}

impl Tally {
    /// Of the whole conversation.
    pub(crate) fn of_thread(messages: &[Message]) -> Self {
        Self::of(messages, |replaced| &replaced.thread)
    }

    /// Of one answer of a model that calls no tools.
    pub(crate) fn of_answer(message: &Message) -> Self {
        let usages = message.usage().copied().into_iter().collect();
        Self { model_calls: 1, tool_calls: BTreeMap::new(), usages }
    }

    /// Of what was said since a human last spoke.
    pub(crate) fn of_run(messages: &[Message]) -> Self {
        let is_human = |message: &Message| message.role() == Some(Role::User) && !is_summary(message);
        let begin = messages.iter().rposition(is_human).map_or(0, |place| place + 1);
        Self::of(&messages[begin..], |replaced| &replaced.run)
    }

    fn of(messages: &[Message], part: impl Fn(&Replaced) -> &Tally) -> Self {
        let mut tally = Self::default();
        for (place, message) in messages.iter().enumerate() {
            if let Some(replaced) = replaced(message) {
                tally.add(part(&replaced));
            } else if message.role() == Some(Role::Assistant) && writer(message).is_none() {
                tally.add_answer(message, &messages[place + 1..]);
            }
            if let Some(took) = took(message) {
                tally.add(&took);
            }
        }
        tally
    }

    fn add_answer(&mut self, message: &Message, later: &[Message]) {
        self.model_calls += 1;
        self.usages.extend(message.usage());
        for call in message.tool_calls().filter(|call| is_carried_out(call, later)) {
            *self.tool_calls.entry(call.name.clone()).or_default() += 1;
        }
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        self.model_calls += other.model_calls;
        self.usages.extend(total(&other.usages));
        for (tool, calls) in &other.tool_calls {
            *self.tool_calls.entry(tool.clone()).or_default() += calls;
        }
    }

    /// The calls of a tool, or of all.
    pub(crate) fn calls_of(&self, tool: Option<&str>) -> u64 {
        match tool {
            Some(tool) => self.tool_calls.get(tool).copied().unwrap_or_default(),
            None => self.tool_calls.values().sum(),
        }
    }

    /// The message, with this beside what else was taken for it.
    pub(crate) fn beside(&self, message: Message) -> Message {
        let mut all = took(&message).unwrap_or_default();
        all.add(self);
        let kept = serde_json::to_value(all).expect("a tally is numbers by names");
        message.with_rich(|rich| drop(rich.response.insert(TOOK.to_owned(), kept)))
    }

    pub(crate) fn tokens(&self) -> u64 {
        total(&self.usages).map_or(0, |usage| usage.total())
    }
}

fn total(usages: &[Usage]) -> Option<Usage> {
    usages.iter().copied().reduce(|mut sum, usage| {
        sum += usage;
        sum
    })
}

/// Whether a tool was called for it: it has an answer that the tool gave.
///
/// Ids of calls are unique in one message only, so its answers are looked for before the model speaks again.
fn is_carried_out(call: &ToolCall, later: &[Message]) -> bool {
    let answers = later.iter().take_while(|message| message.role() != Some(Role::Assistant));
    let mut own = answers.filter(|message| message.answers() == Some(&*call.id));
    own.next().is_some_and(|answer| writer(answer).is_none())
}

/// A summary that keeps the tally of what it stands for, its own making included.
pub(crate) fn in_place_of(summary: Message, messages: &[Message], making: &Message) -> Message {
    let made = Tally::of_answer(making);
    let mut replaced = Replaced { thread: Tally::of_thread(messages), run: Tally::of_run(messages) };
    replaced.thread.add(&made);
    replaced.run.add(&made);
    let kept = serde_json::to_value(replaced).expect("a tally is numbers by names");
    written_by(summary, SUMMARY).with_rich(|rich| drop(rich.response.insert(REPLACED.to_owned(), kept)))
}

fn replaced(message: &Message) -> Option<Replaced> {
    noted(message, REPLACED)
}

/// What was taken for the message and is not in the conversation.
fn took(message: &Message) -> Option<Tally> {
    noted(message, TOOK)
}

fn noted<T: DeserializeOwned>(message: &Message, key: &str) -> Option<T> {
    match &message.kind {
        MessageKind::Rich(rich) => T::deserialize(rich.response.get(key)?).ok(),
        _ => None,
    }
}
