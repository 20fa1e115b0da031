//! Hierarchical teams: a model leads a team of agents, and another one a team of such teams.
//!
//! After LangGraph's notebook "Hierarchical Agent Teams". `cargo run -p superstep-agent --example hierarchical_teams`

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use superstep::{
    BoxError, Command, CompiledStateGraph, Context, END, Message, NodeOptions, START, StateGraph, StateNode,
};
use superstep::{Conversation, ToolCall};
use superstep_agent::{ChatModelExt, ChatRequest, ReactState, ScriptedModel, create_react_agent, tool};

type Graph = CompiledStateGraph<ReactState>;

/// Says which member works next.
struct Lead {
    model: ScriptedModel,
    members: Vec<String>,
}

#[async_trait]
impl StateNode<ReactState> for Lead {
    type Input = Arc<ReactState>;
    type Output = Command<ReactState>;
    async fn run(&self, state: Arc<ReactState>, _: Context) -> Result<Command<ReactState>, BoxError> {
        let instructions = format!("You lead {:?}. Say who acts next, or FINISH.", self.members);
        let said = state.messages.iter().cloned();
        let next: String =
            self.model.ask_for(ChatRequest::new([Message::system(instructions)].into_iter().chain(said))).await?;
        Ok(Command::new().goto(if next == "FINISH" { END.to_owned() } else { next }))
    }
}

/// An agent or a team: it reports what it said last.
struct Member {
    name: String,
    graph: Graph,
}

#[async_trait]
impl StateNode<ReactState> for Member {
    type Input = Arc<ReactState>;
    type Output = Command<ReactState>;
    async fn run(&self, state: Arc<ReactState>, cx: Context) -> Result<Command<ReactState>, BoxError> {
        let out = cx.invoke(&self.graph, state.messages.clone()).await?;
        let last = out.state.messages.last().map(|message| message.text().into_owned()).unwrap_or_default();
        Ok(Command::new().update(ReactState::say(vec![Message::user(last).with_name(&*self.name)])))
    }
}

fn team(lead: ScriptedModel, members: Vec<(&str, Graph)>) -> Result<Graph, BoxError> {
    let names: Vec<String> = members.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut graph = StateGraph::new();
    let leads_to = NodeOptions::new().destinations(names.iter().cloned().chain([END.to_owned()]));
    graph.add_edge(START, "lead").add_node_with("lead", Lead { model: lead, members: names }, leads_to);
    for (name, member) in members {
        graph.add_node(name, Member { name: name.to_owned(), graph: member }).add_edge(name, "lead");
    }
    Ok(graph.compile()?)
}

/// Searches the web.
#[tool]
fn search(query: String) -> String {
    format!("cats sleep {} hours", query.len())
}

/// What was written.
static PAPER: Mutex<String> = Mutex::new(String::new());

/// Writes a document.
#[tool]
fn write_document(content: String) -> &'static str {
    *PAPER.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = content;
    "written"
}

/// An agent that calls its tool once.
fn agent(tool: impl superstep_agent::Tool, args: serde_json::Value, says: &str) -> Result<Graph, BoxError> {
    let call = ToolCall::new(Message::new_id(), tool.spec().name, args);
    let model = ScriptedModel::new([Message::calls("", [call]), Message::assistant(says)]);
    Ok(create_react_agent(model, [tool]).compile()?)
}

fn decides(next: &[&str]) -> ScriptedModel {
    ScriptedModel::new(next.iter().map(|name| Message::assistant(serde_json::json!(name).to_string())))
}

pub(crate) async fn run() -> Result<(Vec<String>, String), BoxError> {
    let searcher = agent(search, serde_json::json!({ "query": "cats sleep time" }), "Cats sleep 15 hours a day.")?;
    let writer =
        agent(write_document, serde_json::json!({ "content": "Cats sleep, 15 hours." }), "The poem is written.")?;
    let research = team(decides(&["searcher", "FINISH"]), vec![("searcher", searcher)])?;
    let writing = team(decides(&["writer", "FINISH"]), vec![("writer", writer)])?;
    let all = team(decides(&["research", "writing", "FINISH"]), vec![("research", research), ("writing", writing)])?;
    let out = all.invoke("Find out how long cats sleep, and write a poem about it.").await?;
    let said = out.state.messages.iter().filter_map(|message| Some(format!("{}: {}", message.name()?, message.text())));
    let said: Vec<_> = said.collect();
    said.iter().for_each(|words| println!("{words}"));
    Ok((said, PAPER.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
