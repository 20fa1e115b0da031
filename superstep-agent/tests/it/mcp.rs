//! MCP servers: one of our own in the same program, real ones, and graphs as servers.

mod calls;
mod connecting;
mod desk;
mod listing;
mod log;
mod questions;
mod real;
mod serving;

use std::sync::Arc;

use serde_json::Value;
use superstep::{AgentState, CompiledStateGraph, MemorySaver, Message, START, StateGraph, ToolCall};
use superstep_agent::{Tool, ToolNode};

/// A graph that carries out the calls it is given.
fn app(tools: Vec<Arc<dyn Tool>>) -> CompiledStateGraph<AgentState> {
    app_of(ToolNode::new(tools))
}

fn app_of(node: ToolNode<AgentState>) -> CompiledStateGraph<AgentState> {
    let mut graph = StateGraph::new();
    graph.add_node("tools", node).add_edge(START, "tools");
    graph.checkpointer(MemorySaver::new()).compile().unwrap()
}

fn asking(calls: impl IntoIterator<Item = (&'static str, Value)>) -> AgentState {
    let calls = calls.into_iter().enumerate().map(|(at, (name, args))| ToolCall::new(format!("c{at}"), name, args));
    AgentState { messages: vec![Message::calls("", calls)] }
}

/// The answer to one call.
async fn answer(tools: Vec<Arc<dyn Tool>>, name: &'static str, args: Value) -> Result<Message, String> {
    let out = app(tools).invoke(asking([(name, args)])).thread("t").await;
    out.map(|mut out| out.state.messages.remove(1)).map_err(|e| e.to_string())
}

fn names(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    tools.iter().map(|tool| tool.spec().name).collect()
}
