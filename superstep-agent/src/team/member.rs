//! An agent as a part of a team: what it is given, and what the others learn of its work.

use crate::message::{answer_instead, is_summary, written_by};
use superstep::{
    CompiledStateGraph, Conversation, FieldKind, MappedGraph, Message, NodeOptions, Persist, Role, StateGraph,
    ToolCall, Update,
};

use super::error::TeamMistake;
use super::handoff::handed_to;

/// The name of graphs that were given none.
const NAMELESS: &str = "graph";
const WRITER: &str = "team";

/// How much of an agent's work the others see.
///
/// ```
/// assert_eq!(superstep_agent::team::OutputMode::default(), superstep_agent::team::OutputMode::LastMessage);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputMode {
    /// Its answer.
    #[default]
    LastMessage,
    /// Everything that it said and called.
    FullHistory,
}

/// What is wrong with the names of agents.
pub(super) fn mistakes<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<TeamMistake> {
    let mut seen: Vec<String> = Vec::new();
    let mut mistakes = Vec::new();
    for name in names {
        if name.is_empty() || name == NAMELESS {
            mistakes.push(TeamMistake::Unnamed);
        } else if seen.contains(&in_a_name(name)) {
            mistakes.push(TeamMistake::SameName { name: name.to_owned() });
        }
        seen.push(in_a_name(name));
    }
    if seen.is_empty() {
        mistakes.push(TeamMistake::Empty);
    }
    mistakes
}

/// Adds an agent to the graph of its team.
pub(super) fn add<S: Conversation + Persist>(
    graph: &mut StateGraph<S>,
    agent: CompiledStateGraph<S>,
    output: impl Fn(&S) -> Vec<Message> + Send + Sync + 'static,
    leads_to: Vec<String>,
) -> &mut StateGraph<S> {
    let name = agent.name().to_owned();
    let node = MappedGraph::new(agent, S::clone, move |state: &S| shared(state, output(state)));
    graph.add_node_with(name, node, NodeOptions::new().destinations(leads_to))
}

/// What the team learns from an agent: these messages, and the fields that keep their last value.
pub(super) fn shared<S: Conversation>(state: &S, messages: Vec<Message>) -> Update<S> {
    let fields = S::fields(&()).iter().enumerate().filter(|(_, field)| field.kind() == FieldKind::LastValue);
    let values = fields.filter_map(|(ix, _)| state.read(&(), ix));
    // The team has the messages that a summary of the agent stands for.
    let messages = messages.into_iter().filter(|message| !is_summary(message)).collect();
    Update::from_writes(values).and(S::say(messages))
}

/// Whether an agent ended its turn by handing the conversation to another of these.
///
/// # Errors
/// If the other one is none of them.
pub(super) fn handed_over(messages: &[Message], names: &[String]) -> Result<bool, String> {
    let mut newest = messages.iter().rev().take_while(|message| message.role() != Some(Role::Assistant));
    match newest.find_map(handed_to) {
        None => Ok(false),
        Some(name) if names.iter().any(|known| known == name) => Ok(true),
        Some(name) => {
            Err(format!("the conversation was handed to `{name}`, who is not in the team; there are {names:?}"))
        }
    }
}

/// The messages that count as an agent's work.
pub(super) fn work(messages: &[Message], mode: OutputMode) -> &[Message] {
    match mode {
        OutputMode::FullHistory => messages,
        OutputMode::LastMessage => {
            // If a tool's result is the answer, the call of it belongs to it.
            let answer = messages.iter().rposition(|message| message.role() == Some(Role::Assistant));
            &messages[answer.unwrap_or(0)..]
        }
    }
}

/// The messages with which an agent gives the conversation back.
pub(super) fn hand_back(agent: &str, to: &str) -> [Message; 2] {
    let call = ToolCall::new(Message::new_id(), format!("transfer_back_to_{}", in_a_name(to)), serde_json::json!({}));
    let answer = answer_instead(&call, format!("The conversation is back with `{to}`."), false, WRITER);
    let words = format!("I give the conversation back to `{to}`.");
    [written_by(Message::calls(words, [call]).with_name(agent), WRITER), answer]
}

/// The name of an agent as a part of a tool's name, which providers want without spaces.
pub(super) fn in_a_name(agent: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '_' };
    agent.trim().chars().map(fit).collect()
}
