//! An agent that lets others work.

use superstep::{CompiledStateGraph, Conversation, END, Message, Persist, START, StateGraph};

use super::error::{TeamError, TeamMistake};
use super::handoff::Handoff;
use super::member::{self, OutputMode};
use crate::agent::{Prompt, ReactAgent};
use crate::changes::Changes;
use crate::model::ChatModel;
use crate::tool::Tool;

/// An agent that hands work to others and gets the conversation back from each.
///
/// It has a tool `transfer_to_<agent>` for each of them. Teams can be members of teams.
///
/// ```
/// use superstep::{Message, ToolCall};
/// use superstep_agent::{create_react_agent, team::Supervisor, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let to_math = Message::calls("", [ToolCall::new("c1", "transfer_to_math", serde_json::json!({}))]);
/// let model = ScriptedModel::new([to_math, Message::assistant("The answer is 42.")]);
/// let math = create_react_agent(ScriptedModel::new(["20 + 22 = 42"]), ()).name("math").compile()?;
/// let team = Supervisor::new(model)
///     .prompt("You lead a team. Let `math` do the sums.")
///     .agent(math, "Does sums.")
///     .compile()?;
/// let out = team.invoke("What is 20 + 22?").await?;
/// let said: Vec<_> = out.state.messages.iter().filter_map(|m| m.name()).collect();
/// assert_eq!(said, ["supervisor", "transfer_to_math", "math", "math", "transfer_back_to_supervisor", "supervisor"]);
/// # Ok(())
/// # }
/// ```
#[must_use = "a team does nothing until it is compiled"]
pub struct Supervisor<S: Conversation> {
    name: String,
    lead: ReactAgent<S>,
    agents: Vec<(CompiledStateGraph<S>, String)>,
    output: OutputMode,
    hands_back: bool,
    changes: Changes<S>,
}

crate::debug::debug_parts!([S: Conversation] Supervisor<S>, "Supervisor", this => { name: this.name, lead: this.lead, agents: this.agents });

impl<S: Conversation + Persist> Supervisor<S> {
    /// A supervisor of nobody, called `supervisor`.
    pub fn new(model: impl ChatModel) -> Self {
        Self {
            name: "supervisor".to_owned(),
            lead: ReactAgent::new(model),
            agents: Vec::new(),
            output: OutputMode::default(),
            hands_back: true,
            changes: Changes::none(),
        }
    }

    /// With another name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// With instructions.
    pub fn prompt(mut self, prompt: impl Into<Prompt<S>>) -> Self {
        self.lead = self.lead.prompt(prompt);
        self
    }

    /// With an agent, under the name that it was compiled with, and what it is good for.
    pub fn agent(mut self, agent: CompiledStateGraph<S>, description: impl Into<String>) -> Self {
        self.agents.push((agent, description.into()));
        self
    }

    /// How much of the agents' work the supervisor, and who reads the thread, sees.
    pub fn output(mut self, mode: OutputMode) -> Self {
        self.output = mode;
        self
    }

    /// Whether messages tell that an agent gave the conversation back; they do if nothing is said.
    pub fn hand_back_messages(mut self, add: bool) -> Self {
        self.hands_back = add;
        self
    }

    /// With any change to the supervisor itself, which is an agent: tools, middleware, settings.
    ///
    /// ```
    /// use superstep_agent::middleware::{Limits, Per};
    /// use superstep_agent::{team::Supervisor, ReactState, ScriptedModel};
    /// let team = Supervisor::<ReactState>::new(ScriptedModel::new(["ok"]))
    ///     .lead(|agent| agent.middleware(Limits::new().model_calls(Per::Run, 10)));
    /// # let _ = team;
    /// ```
    pub fn lead(mut self, change: impl FnOnce(ReactAgent<S>) -> ReactAgent<S>) -> Self {
        self.lead = change(self.lead);
        self
    }

    /// The team, ready to run, under the name of the supervisor.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn compile(self) -> Result<CompiledStateGraph<S>, TeamError> {
        let names: Vec<String> = self.agents.iter().map(|(agent, _)| agent.name().to_owned()).collect();
        let mut mistakes = member::mistakes(names.iter().map(String::as_str));
        if names.contains(&self.name) {
            mistakes.push(TeamMistake::SameName { name: self.name.clone() });
        }
        TeamError::unless_empty(mistakes)?;
        let lead =
            self.agents.iter().fold(self.lead, |lead, (agent, description)| lead.tool(handoff(agent, description)));
        let lead = lead.name(&*self.name).compile()?;
        let known = names.clone();
        let may_end = move |state: &S| member::handed_over(state.conversation(), &known).map(|_| END);
        let mut graph = StateGraph::new();
        // Whom the conversation is handed to is looked at by the paths, which know who is there.
        graph.ignore_unknown_targets(true);
        member::add(&mut graph, lead, |state: &S| state.conversation().to_vec(), names.clone())
            .add_edge(START, &*self.name)
            .add_conditional_edges_with_map(&*self.name, may_end, [END])
            .name(&*self.name);
        let work = Work { lead: self.name, names, mode: self.output, hands_back: self.hands_back };
        for (agent, _) in self.agents {
            work.add(&mut graph, agent);
        }
        self.changes.make(&mut graph);
        Ok(graph.compile()?)
    }
}

super::configurable!(Supervisor);

/// What becomes of an agent's work.
#[derive(Clone)]
struct Work {
    lead: String,
    names: Vec<String>,
    mode: OutputMode,
    hands_back: bool,
}

impl Work {
    /// Adds an agent, from which the conversation goes back to the supervisor unless it was handed on.
    fn add<S: Conversation + Persist>(&self, graph: &mut StateGraph<S>, agent: CompiledStateGraph<S>) {
        let (name, lead) = (agent.name().to_owned(), self.lead.clone());
        let (given, known) = ((self.clone(), name.clone()), self.clone());
        let output = move |state: &S| given.0.of(&given.1, state.conversation());
        let back = move |state: &S| {
            let handed_on = member::handed_over(state.conversation(), &known.names)?;
            Ok::<_, String>((!handed_on).then(|| known.lead.clone()))
        };
        member::add(graph, agent, output, Vec::new()).add_conditional_edges_with_map(name, back, [lead]);
    }

    fn of(&self, agent: &str, messages: &[Message]) -> Vec<Message> {
        let back = self.hands_back.then(|| member::hand_back(agent, &self.lead));
        member::work(messages, self.mode).iter().cloned().chain(back.into_iter().flatten()).collect()
    }
}

fn handoff<S: Conversation>(agent: &CompiledStateGraph<S>, description: &str) -> impl Tool {
    let name = agent.name();
    Handoff::<S>::to(name).description(format!("Hands the conversation to `{name}`, who gives it back: {description}"))
}
