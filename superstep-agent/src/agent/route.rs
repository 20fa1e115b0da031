//! Where an agent goes on.

use crate::message::refuses;
use superstep::{END, Goto, Message, Role, Send, ToolCall};

use crate::middleware::Jump;
use crate::model::is_paused;
use crate::tool::{open_calls, or_only_leaving};

pub(super) const AGENT: &str = "agent";
pub(super) const TOOLS: &str = "tools";
pub(super) const STRUCTURED: &str = "generate_structured_response";

/// The ways through the graph of one agent.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    /// The agent's name.
    pub(super) agent: Option<String>,
    /// Where a round begins: the model, or the first hook before it.
    pub(super) round: String,
    /// Where the answer goes: to the structured response, the hooks after the agent, or the end.
    pub(super) answer: String,
    /// The hooks after the agent, or the end.
    pub(super) exit: String,
    /// The tools whose results are answers.
    pub(super) direct: Vec<String>,
    /// The tools that hand the conversation to somebody else.
    pub(super) leaving: Vec<String>,
    pub(super) has_tools: bool,
}

impl Routes {
    /// After a model, and all hooks after it.
    pub(super) fn after_model(&self, messages: &[Message]) -> Vec<Goto> {
        let calls = self.calls(messages);
        if !calls.is_empty() {
            return calls;
        }
        // Somebody else answered all calls: the model has to read that. Or it has more to say.
        let goes_on = messages.last().is_some_and(|message| message.role() == Some(Role::Tool) || is_paused(message));
        vec![Goto::from(if goes_on { self.round.clone() } else { self.answer.clone() })]
    }

    /// After the tools: a result that is the answer ends the rounds, also if another task has it. Of a call that was
    /// refused there is none.
    pub(super) fn after_tools(&self, messages: &[Message]) -> String {
        let model = messages.iter().rposition(|message| message.role() != Some(Role::Tool));
        let (model, answers) = model.map_or((None, messages), |at| (Some(&messages[at]), &messages[at + 1..]));
        let is_direct = |call: &&ToolCall| self.direct.contains(&call.name);
        let mut direct = model.into_iter().flat_map(Message::tool_calls).filter(is_direct);
        let gives_answer = direct.any(|call| !answers.iter().any(|answer| refuses(answer, call)));
        if gives_answer { self.answer.clone() } else { self.round.clone() }
    }

    /// Where a hook jumps.
    pub(super) fn jump(&self, to: Jump, messages: &[Message]) -> Vec<Goto> {
        match to {
            Jump::Model => vec![Goto::from(self.round.clone())],
            Jump::End => vec![Goto::from(self.exit.clone())],
            Jump::Tools => match self.calls(messages) {
                calls if calls.is_empty() => vec![Goto::from(self.round.clone())],
                calls => calls,
            },
        }
    }

    /// All places where one can come to after the model.
    pub(super) fn destinations(&self) -> Vec<String> {
        let tools = self.has_tools.then(|| TOOLS.to_owned());
        let mut places: Vec<String> = tools.into_iter().chain([self.answer.clone()]).collect();
        places.dedup();
        places
    }

    fn calls(&self, messages: &[Message]) -> Vec<Goto> {
        if !self.has_tools {
            return Vec::new();
        }
        let calls = or_only_leaving(open_calls(messages).unwrap_or_default(), &self.leaving);
        calls.into_iter().map(|call| Goto::from(Send::new(TOOLS, call))).collect()
    }
}

/// The end, as the name of a node.
pub(super) fn end() -> String {
    END.to_owned()
}
