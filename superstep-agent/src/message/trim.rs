//! Conversations that fit into so many tokens.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use superstep::{Block, Message, Role};

/// The part of a conversation that fits. A tool call and its results are kept or left out together.
///
/// ```
/// use superstep::{Message, Role};
/// use superstep_agent::message::{trim_messages, Trim};
/// let messages = [
///     Message::system("Be brief."),
///     Message::user("one"),
///     Message::assistant("1"),
///     Message::user("two"),
///     Message::assistant("2"),
/// ];
/// // Every message counts as one token here.
/// let trim = Trim::to(4, |_| 1).keep_system().start_on([Role::User]);
/// assert_eq!(trim_messages(&messages, &trim), [messages[0].clone(), messages[3].clone(), messages[4].clone()]);
/// ```
pub fn trim_messages(messages: &[Message], trim: &Trim) -> Vec<Message> {
    let system = if trim.keeps_system { leading_system(messages) } else { 0 };
    let (kept, rest) = messages.split_at(system);
    let count = |messages: &[Message]| messages.iter().map(|message| (trim.count)(message)).sum::<usize>();
    let room = trim.tokens.saturating_sub(count(kept));
    let units = units(rest);
    let mut used = 0;
    let mut fits = |unit: &&Range<usize>| {
        used += count(&rest[(*unit).clone()]);
        used <= room
    };
    let chosen: Vec<&Range<usize>> = if trim.keeps_first {
        units.iter().take_while(&mut fits).collect()
    } else {
        let last = units.iter().rev().take_while(&mut fits).collect::<Vec<_>>();
        last.into_iter().rev().collect()
    };
    let starts = |unit: &&&Range<usize>| !trim.may_start(&rest[unit.start]);
    let chosen = chosen.iter().skip_while(starts).flat_map(|unit| &rest[(**unit).clone()]);
    kept.iter().chain(chosen).cloned().collect()
}

/// How a conversation is cut.
///
/// ```
/// use superstep_agent::message::{approximate_tokens, Trim};
/// let trim = Trim::to(1000, approximate_tokens).keep_first();
/// # let _ = trim;
/// ```
#[derive(Clone)]
pub struct Trim {
    tokens: usize,
    count: Arc<dyn Fn(&Message) -> usize + Send + Sync>,
    keeps_first: bool,
    keeps_system: bool,
    starts: HashSet<Role>,
}

impl Trim {
    /// To so many tokens, by a function that counts those of a message. The last messages are kept.
    pub fn to(tokens: usize, count: impl Fn(&Message) -> usize + Send + Sync + 'static) -> Self {
        Self { tokens, count: Arc::new(count), keeps_first: false, keeps_system: false, starts: HashSet::new() }
    }

    /// The first messages are kept instead.
    pub fn keep_first(mut self) -> Self {
        self.keeps_first = true;
        self
    }

    /// The system messages at the beginning are kept whatever they take.
    pub fn keep_system(mut self) -> Self {
        self.keeps_system = true;
        self
    }

    /// What is kept, besides the system messages, begins with a message of one of these.
    pub fn start_on(mut self, roles: impl IntoIterator<Item = Role>) -> Self {
        self.starts.extend(roles);
        self
    }

    fn may_start(&self, message: &Message) -> bool {
        self.starts.is_empty() || message.role().is_some_and(|role| self.starts.contains(&role))
    }
}

impl fmt::Debug for Trim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trim")
            .field("tokens", &self.tokens)
            .field("keeps_first", &self.keeps_first)
            .field("keeps_system", &self.keeps_system)
            .field("starts", &self.starts)
            .finish_non_exhaustive()
    }
}

/// About how many tokens a message takes: a quarter of its characters, and some for who says it.
///
/// Pictures, sound and documents count as 85 each, which is too little for large ones.
///
/// ```
/// use superstep::Message;
/// assert_eq!(superstep_agent::message::approximate_tokens(&Message::user("eight ch")), 5);
/// ```
pub fn approximate_tokens(message: &Message) -> usize {
    let blocks = message.blocks();
    let of = |block: &Block| match block {
        Block::Text { text, .. } | Block::Reasoning { text, .. } => text.chars().count().div_ceil(4),
        Block::ToolCall(call) => (call.name.len() + call.args.to_string().len()).div_ceil(4),
        Block::Opaque { value, .. } => value.to_string().len().div_ceil(4),
        _ => 85,
    };
    3 + blocks.iter().map(of).sum::<usize>()
}

fn leading_system(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.role() == Some(Role::System)).count()
}

/// Messages that stay together: a call of tools with all up to its last result, or one message.
fn units(messages: &[Message]) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    let mut end = 0;
    for (place, message) in messages.iter().enumerate() {
        let calls: HashSet<&str> = message.tool_calls().map(|call| &*call.id).collect();
        let last = messages.iter().rposition(|message| message.answers().is_some_and(|call| calls.contains(call)));
        let needs = last.map_or(place + 1, |last| last.max(place) + 1);
        match units.last_mut() {
            Some(unit) if place < end => unit.end = unit.end.max(needs),
            _ => units.push(place..needs),
        }
        end = end.max(needs);
    }
    units
}
