//! The agent: a model that calls tools, a human who approves, and the edges between them.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use superstep::{
    Command, CompilationError, CompiledStateGraph, Context, END, Interrupted, MemorySaver, NodeOptions, Runtime, START,
    Send, Sent, State, StateGraph,
};
use tokio::time::sleep;

use crate::script::{self, Turn};
use crate::world::World;

/// The graph of the tour.
pub(crate) type App = CompiledStateGraph<Incident>;

/// How often a tool tells how far it is.
const TICK: Duration = Duration::from_millis(40);
/// How long the model takes for a word.
const WORD: Duration = Duration::from_millis(28);

/// What the agent knows about the incident that it works on.
#[derive(State, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Incident {
    /// What woke the agent.
    pub(crate) alert: String,
    /// What tools found and did, in the order of the calls.
    #[state(append)]
    pub(crate) results: Vec<Finding>,
    /// What the model wants to do about it.
    pub(crate) proposal: Option<Proposal>,
    /// What the human said to that.
    pub(crate) verdict: Option<Verdict>,
    /// How it ended.
    pub(crate) ending: Option<String>,
}

/// A tool call, as the model asks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Call {
    /// The tool.
    pub(crate) tool: String,
    /// What it will answer: the tools are scripted, too.
    pub(crate) answer: String,
    /// How long it takes.
    pub(crate) millis: u64,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// The tool.
    pub(crate) tool: String,
    /// Its answer.
    pub(crate) text: String,
}

/// A cause and what helps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proposal {
    /// The cause.
    pub(crate) cause: String,
    /// What helps.
    pub(crate) fix: String,
}

/// A human's answer to a proposal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Do it.
    Yes,
    /// Do not.
    No,
    /// Do this instead.
    Edit(String),
}

/// What nodes tell while they run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Beat {
    /// The model says one more word.
    Word { step: i64, word: String },
    /// A tool is so far.
    Progress { step: i64, tool: String, share: f64 },
}

/// Builds the graph over a saver; two graphs over one saver share their threads.
pub(crate) fn build(saver: MemorySaver) -> Result<App, CompilationError> {
    StateGraph::<Incident>::new()
        .add_node_with("model", model, ways())
        .add_node("tool", tool)
        .add_node("approve", approve)
        .add_edge(START, "model")
        .add_edge("tool", "model")
        .add_edge("approve", "model")
        .checkpointer(saver)
        .compile()
}

/// Where the model can go: drawings show it, and `compile` checks it.
fn ways() -> NodeOptions<Incident> {
    NodeOptions::new().destinations(["tool", "approve", END])
}

/// Thinks aloud, then goes to the tools (one task for every call), to the human, or to the end.
async fn model(incident: Incident, cx: Context) -> Command<Incident> {
    let (words, turn) = script::reply(&incident);
    for word in words.split(' ') {
        cx.emit(Beat::Word { step: cx.step(), word: word.to_owned() }).await;
        sleep(WORD).await;
    }
    match turn {
        Turn::Call(calls) => Command::new().goto_all(calls.into_iter().map(|call| Send::new("tool", call))),
        Turn::Propose(proposal) => Command::new().update(Incident::update().proposal(proposal)).goto("approve"),
        Turn::End(ending) => Command::new().update(Incident::update().ending(ending)).goto(END),
    }
}

/// Runs one tool call and tells how far it is.
async fn tool(Sent(call): Sent<Call>, cx: Context, world: Runtime<World>) -> IncidentUpdate {
    let entry = world.enter(&call.tool);
    let (start, takes) = (Instant::now(), Duration::from_millis(call.millis));
    while start.elapsed() < takes {
        let share = start.elapsed().as_secs_f64() / takes.as_secs_f64();
        cx.emit(Beat::Progress { step: cx.step(), tool: call.tool.clone(), share }).await;
        sleep(TICK.min(takes.saturating_sub(start.elapsed()))).await;
    }
    world.leave(entry);
    Incident::update().results([Finding { tool: call.tool, text: call.answer }])
}

/// Asks the human; the run pauses here until there is an answer.
async fn approve(incident: Incident, cx: Context) -> Result<IncidentUpdate, Interrupted> {
    let verdict: Verdict = cx.interrupt(incident.proposal)?;
    Ok(Incident::update().verdict(verdict))
}

/// The lines of [`build`] that the drawing is of, as they are in this file.
pub(crate) fn source() -> Vec<String> {
    let from_graph = include_str!("graph.rs").lines().skip_while(|line| !line.contains("StateGraph::<"));
    let until_built = from_graph.take_while(|line| *line != "}");
    // Half the indent, to leave room for the drawing.
    until_built.map(|line| line.replacen("    ", "", 1).replacen("    ", "  ", 1)).collect()
}
