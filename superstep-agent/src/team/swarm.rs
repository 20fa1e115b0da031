//! Agents that hand the conversation to each other.

use superstep::{CompiledStateGraph, Conversation, END, Message, Persist, Role, START, StateGraph};

use super::error::{TeamError, TeamMistake};
use super::handoff::handed_to;
use super::member;
use crate::changes::Changes;

/// Agents that hand the conversation to each other, as peers.
///
/// Each has a [`handoff_tool`](super::handoff_tool) for every other that it may turn to. The next run of the thread
/// resumes with the agent that had the conversation last: the conversation itself tells who that was.
///
/// ```
/// use superstep::{MemorySaver, Message, ToolCall};
/// use superstep_agent::{create_react_agent, team::{handoff_tool, Swarm}, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let to_bills = Message::calls("", [ToolCall::new("c1", "transfer_to_bills", serde_json::json!({}))]);
/// let desk = create_react_agent(ScriptedModel::new([to_bills]), [handoff_tool("bills")]).name("desk").compile()?;
/// let bills = create_react_agent(ScriptedModel::new(["Which bill?", "It is paid."]), ()).name("bills").compile()?;
/// let team = Swarm::new().agent(desk).agent(bills).checkpointer(MemorySaver::new()).compile()?;
/// team.invoke("A question about a bill.").thread("t").await?;
/// let out = team.invoke("The last one.").thread("t").await?;
/// assert_eq!(out.state.messages.last().unwrap().text(), "It is paid.");
/// # Ok(())
/// # }
/// ```
#[must_use = "a team does nothing until it is compiled"]
pub struct Swarm<S: Conversation> {
    agents: Vec<CompiledStateGraph<S>>,
    first: Option<String>,
    changes: Changes<S>,
}

crate::debug::debug_parts!([S: Conversation] Swarm<S>, "Swarm", this => { agents: this.agents, first: this.first });

impl<S: Conversation + Persist> Swarm<S> {
    /// A swarm of nobody.
    pub fn new() -> Self {
        Self { agents: Vec::new(), first: None, changes: Changes::none() }
    }

    /// With an agent, under the name that it was compiled with.
    pub fn agent(mut self, agent: CompiledStateGraph<S>) -> Self {
        self.agents.push(agent);
        self
    }

    /// Begins with this agent, instead of the one that was added first.
    pub fn begin_with(mut self, agent: impl Into<String>) -> Self {
        self.first = Some(agent.into());
        self
    }

    /// The swarm, ready to run.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn compile(self) -> Result<CompiledStateGraph<S>, TeamError> {
        let names: Vec<String> = self.agents.iter().map(|agent| agent.name().to_owned()).collect();
        TeamError::unless_empty(self.mistakes(&names))?;
        let first = self.first.unwrap_or_else(|| names[0].clone());
        let mut graph = StateGraph::new();
        // Whom the conversation is handed to is looked at by the paths, which know who is there.
        graph.ignore_unknown_targets(true);
        for agent in self.agents {
            let (name, known) = (agent.name().to_owned(), names.clone());
            let others = names.iter().filter(|other| **other != name).cloned().collect();
            let path = move |state: &S| member::handed_over(state.conversation(), &known).map(|_| END);
            member::add(&mut graph, agent, |state: &S| state.conversation().to_vec(), others)
                .add_conditional_edges_with_map(name, path, [END]);
        }
        let targets = names.clone();
        let path = move |state: &S| active(state.conversation(), &names).unwrap_or(&first).to_owned();
        graph.add_conditional_edges_with_map(START, path, targets);
        self.changes.make(&mut graph);
        Ok(graph.compile()?)
    }

    fn mistakes(&self, names: &[String]) -> Vec<TeamMistake> {
        let mut mistakes = member::mistakes(names.iter().map(String::as_str));
        if let Some(first) = self.first.as_ref().filter(|first| !names.contains(first)) {
            mistakes.push(TeamMistake::UnknownStart { name: first.clone(), known: names.to_vec() });
        }
        mistakes
    }
}

super::configurable!(Swarm);

impl<S: Conversation + Persist> Default for Swarm<S> {
    fn default() -> Self {
        Self::new()
    }
}

/// The agent that has the conversation: the last that it was handed to, or that spoke.
fn active<'a>(messages: &[Message], names: &'a [String]) -> Option<&'a str> {
    let named = |name: &str| names.iter().find(|known| *known == name).map(String::as_str);
    let tells = |message: &Message| {
        let spoke = message.name().filter(|_| message.role() == Some(Role::Assistant));
        handed_to(message).or(spoke).and_then(named)
    };
    messages.iter().rev().find_map(tells)
}
