//! A tool that hands the conversation to another agent.

use std::marker::PhantomData;

use crate::message::answer_instead;
use async_trait::async_trait;
use serde_json::Value;
use superstep::{Command, Conversation, Goto, Message, MessageKind, ToolCall};

use super::member::{in_a_name, shared};
use crate::agent::ReactState;
use crate::tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec, open_calls};

/// The mark of the answer with which a conversation was handed over.
const HANDED_TO: &str = "handed_to";

/// A tool, `transfer_to_<agent>`, that hands the conversation to another agent of the graph around.
///
/// The other one reads all that was said, the call of the tool and its answer included. If the model calls something
/// else in the same message, that is not called.
///
/// ```
/// use superstep::{Message, ToolCall};
/// use superstep_agent::{create_react_agent, team::{handoff_tool, Swarm}, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let to_bob = Message::calls("", [ToolCall::new("c1", "transfer_to_bob", serde_json::json!({}))]);
/// let alice = create_react_agent(ScriptedModel::new([to_bob]), [handoff_tool("bob")]).name("alice").compile()?;
/// let bob = create_react_agent(ScriptedModel::new(["Bob here."]), [handoff_tool("alice")]).name("bob").compile()?;
/// let team = Swarm::new().agent(alice).agent(bob).compile()?;
/// let out = team.invoke("I want to talk to Bob.").await?;
/// let last = out.state.messages.last().unwrap();
/// assert_eq!((last.name(), &*last.text()), (Some("bob"), "Bob here."));
/// # Ok(())
/// # }
/// ```
pub fn handoff_tool(agent: impl Into<String>) -> Handoff {
    Handoff::to(agent)
}

/// A [`handoff_tool`], for agents and graphs over a state of your own.
///
/// ```
/// use superstep::AgentState;
/// use superstep_agent::{team::Handoff, Tool};
/// let tool = Handoff::<AgentState>::to("billing").description("For questions about bills.");
/// assert_eq!(tool.spec().name, "transfer_to_billing");
/// ```
pub struct Handoff<S = ReactState> {
    agent: String,
    name: String,
    description: String,
    state: PhantomData<fn(S)>,
}

crate::debug::debug_parts!([S] Handoff<S>, "Handoff", this => { agent: this.agent, name: this.name, description: this.description });

impl<S> Handoff<S> {
    /// Hands the conversation to this agent.
    pub fn to(agent: impl Into<String>) -> Self {
        let agent = agent.into();
        let name = format!("transfer_to_{}", in_a_name(&agent));
        let description = format!("Hands the conversation to `{agent}`.");
        Self { agent, name, description, state: PhantomData }
    }

    /// With other words for the model.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Under another name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The answer to a call of the message that hands over.
    fn answer(&self, call: &ToolCall, own: &ToolCall) -> Message {
        let agent = &self.agent;
        if call.id != own.id {
            let words =
                format!("Not called, because the conversation was handed to `{agent}`. Call it again if needed.");
            return answer_instead(call, words, true, "handoff");
        }
        let answer = Message::tool_result(&*call.id, format!("The conversation is with `{agent}` now."));
        answer.with_rich(|rich| {
            rich.name = Some(call.name.clone());
            rich.response.insert(HANDED_TO.to_owned(), agent.as_str().into());
        })
    }
}

#[async_trait]
impl<S: Conversation> Tool for Handoff<S> {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(&*self.name, &*self.description)
    }

    async fn call(&self, _: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let state = cx.state::<S>()?;
        let mut messages = state.conversation().to_vec();
        let open = open_calls(&messages).map_err(ToolError::failed)?;
        messages.extend(open.iter().map(|call| self.answer(call, cx.call())));
        let command = Command::<S>::to_parent(shared(&*state, messages), [Goto::from(self.agent.clone())]);
        Ok(ToolOutput::blocks(Vec::new()).command(command))
    }

    fn hands_over(&self) -> bool {
        true
    }
}

/// The agent that a message handed the conversation to.
pub(super) fn handed_to(message: &Message) -> Option<&str> {
    match &message.kind {
        MessageKind::Rich(rich) => rich.response.get(HANDED_TO)?.as_str(),
        _ => None,
    }
}
