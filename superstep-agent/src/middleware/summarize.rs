//! Long conversations, made shorter.

use std::sync::Arc;

use crate::message::{SUMMARY, in_place_of, is_summary};
use async_trait::async_trait;
use superstep::{BoxError, Context, Conversation, Message, Role, ToolCall};

use super::{Hooks, Middleware, Turn};
use crate::model::{ChatModel, ChatRequest};

const PROMPT: &str = "You are given the older part of a conversation. Write down what somebody needs to know who carries \
on with it: what was asked, what was found out and decided, with names, numbers and places as they are, and what is left \
to do. Write nothing but these notes.";

/// Replaces the older messages of a conversation by a summary, when there are too many.
///
/// System messages at the beginning stay, the last messages stay, and calls of tools stay together with their results.
/// The summary is a message of its own; the model that writes it is not heard in the `messages` stream.
///
/// ```
/// use superstep::Message;
/// use superstep_agent::middleware::{HistoryLimit, Summarize};
/// use superstep_agent::{create_react_agent, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let short = Summarize::new(ScriptedModel::new(["They like tea."]), HistoryLimit::Messages(3)).keep(1);
/// let agent = create_react_agent(ScriptedModel::new(["Tea?"]), ()).middleware(short).compile()?;
/// let history = ["I like tea.", "Noted.", "And no milk.", "What shall I drink?"].map(Message::user).to_vec();
/// let out = agent.invoke(history).await?;
/// let texts: Vec<_> = out.state.messages.iter().map(|m| m.text().into_owned()).collect();
/// assert_eq!(texts, ["Summary of the conversation so far:\n\nThey like tea.", "What shall I drink?", "Tea?"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Summarize {
    model: Arc<dyn ChatModel>,
    limits: Vec<HistoryLimit>,
    keep: usize,
    prompt: String,
    count: Arc<dyn Fn(&[Message]) -> usize + Send + Sync>,
}

crate::debug::debug_parts!([] Summarize, "Summarize", this => { limits: this.limits, keep: this.keep, prompt: this.prompt });

/// How long a conversation may be.
///
/// ```
/// use superstep_agent::middleware::HistoryLimit;
/// assert_ne!(HistoryLimit::Messages(50), HistoryLimit::Tokens(50));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryLimit {
    /// So many messages.
    Messages(usize),
    /// So many tokens, by the [counter](Summarize::counting).
    Tokens(usize),
}

impl Summarize {
    /// Lets this model write a summary of conversations that are longer than that; the last 20 messages are kept.
    pub fn new(model: impl ChatModel, longer_than: HistoryLimit) -> Self {
        Self {
            model: Arc::new(model),
            limits: vec![longer_than],
            keep: 20,
            prompt: PROMPT.to_owned(),
            count: Arc::new(about_tokens),
        }
    }

    /// Or longer than that.
    pub fn or(mut self, longer_than: HistoryLimit) -> Self {
        self.limits.push(longer_than);
        self
    }

    /// How many of the last messages are kept; more, if calls of tools would be parted from their results.
    pub fn keep(mut self, messages: usize) -> Self {
        self.keep = messages;
        self
    }

    /// With other instructions for the model that writes the summary.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// Counts tokens with a function, instead of four letters each.
    pub fn counting(mut self, count: impl Fn(&[Message]) -> usize + Send + Sync + 'static) -> Self {
        self.count = Arc::new(count);
        self
    }

    fn is_too_long(&self, messages: &[Message]) -> bool {
        self.limits.iter().any(|limit| match limit {
            HistoryLimit::Messages(most) => messages.len() > *most,
            HistoryLimit::Tokens(most) => (self.count)(messages) > *most,
        })
    }

    async fn summary_of(&self, messages: &[Message]) -> Result<Message, BoxError> {
        let request = ChatRequest::new([Message::system(&*self.prompt), Message::user(transcript(messages))]);
        let written = self.model.generate(request).await?;
        let summary = Message::user(format!("Summary of the conversation so far:\n\n{}", written.text()));
        Ok(in_place_of(summary, messages, &written))
    }
}

#[async_trait]
impl<S: Conversation> Middleware<S> for Summarize {
    fn name(&self) -> &'static str {
        SUMMARY
    }

    fn hooks(&self) -> Hooks {
        Hooks { before_model: true, ..Hooks::default() }
    }

    async fn before_model(&self, state: Arc<S>, _: Context) -> Result<Turn<S>, BoxError> {
        let messages = state.conversation();
        if !self.is_too_long(messages) {
            return Ok(Turn::go_on());
        }
        let Some((head, cut)) = older_part(messages, self.keep) else { return Ok(Turn::go_on()) };
        let summary = self.summary_of(&messages[head..cut]).await?;
        let (stays, kept) = (messages[..head].iter().cloned(), messages[cut..].iter().cloned());
        Ok(Turn::say([Message::remove_all()].into_iter().chain(stays).chain([summary]).chain(kept)))
    }
}

/// Where the part begins and ends that a summary can replace; nothing if there is nothing new to sum up.
fn older_part(messages: &[Message], keep: usize) -> Option<(usize, usize)> {
    let head = messages.iter().take_while(|message| message.role() == Some(Role::System)).count();
    let mut cut = messages.len().saturating_sub(keep);
    // Each step back may part other calls from their results, so it is done again until nothing moves.
    while let Some(call) = call_parted_at(messages, cut) {
        cut = call;
    }
    let older = messages.get(head..cut)?;
    older.iter().any(|message| !is_summary(message)).then_some((head, cut))
}

/// The first message whose calls would be before the cut and a result behind it.
fn call_parted_at(messages: &[Message], cut: usize) -> Option<usize> {
    let (before, after) = messages.split_at(cut);
    let of = |call: &str| before.iter().rposition(|message| message.tool_calls().any(|c| c.id == call));
    let results = after.iter().take_while(|message| message.role() != Some(Role::Assistant));
    results.filter_map(Message::answers).filter_map(of).min()
}

/// Four letters each, as a rule of thumb, and a little for every message.
fn about_tokens(messages: &[Message]) -> usize {
    let letters = |message: &Message| {
        let calls = message.tool_calls().map(|call| call.name.len() + call.args.to_string().len());
        message.text().chars().count() + calls.sum::<usize>()
    };
    messages.iter().map(|message| letters(message).div_ceil(4) + 3).sum()
}

fn transcript(messages: &[Message]) -> String {
    messages.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn line(message: &Message) -> String {
    let role = match message.role() {
        Some(Role::System) => "system",
        Some(Role::User) => "human",
        Some(Role::Tool) => "result",
        _ => "assistant",
    };
    let speaker = message.name().map_or_else(|| role.to_owned(), |name| format!("{role} ({name})"));
    let call = |call: &ToolCall| format!(" [calls {} with {}]", call.name, call.args);
    let calls: Vec<String> = message.tool_calls().map(call).collect();
    format!("{speaker}: {}{}", message.text(), calls.concat())
}
