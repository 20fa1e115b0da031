//! The ReAct loop taken apart: think, act and observe as nodes of one's own.
//!
//! `cargo run -p superstep-agent --example think_act_observe`

use std::sync::Arc;

use superstep::{
    AgentState, AgentStateUpdate, BoxError, END, MemorySaver, Message, Runtime, START, StateGraph, ToolCall,
};
use superstep_agent::{ChatModel, ChatModelExt, ChatRequest, ScriptedModel, Tool, ToolNode, tool, tools_condition};

/// How many people live in a city.
#[tool]
fn population(city: String) -> Result<u64, BoxError> {
    match city.as_str() {
        "Oslo" => Ok(717_000),
        "Rome" => Ok(2_755_000),
        other => Err(format!("nobody has counted {other}").into()),
    }
}

type Model = Runtime<Arc<dyn ChatModel>>;

async fn think(state: AgentState, model: Model) -> Result<AgentStateUpdate, BoxError> {
    let thought = model.ask(ChatRequest::new(state.messages).tools([population.spec()])).await?;
    Ok(AgentStateUpdate { messages: Some(vec![thought]) })
}

/// Looks at what the tools gave before the model does.
async fn observe(state: AgentState) {
    let results = state.messages.iter().rev().take_while(|m| m.answers().is_some());
    results.for_each(|m| println!("  observed {}: {}", m.name().unwrap_or("a tool"), m.text()));
}

pub(crate) async fn run() -> Result<Vec<String>, BoxError> {
    let app = StateGraph::<AgentState>::new()
        .add_node("think", think)
        .add_node("act", ToolNode::new([population]))
        .add_node("observe", observe)
        .add_edge(START, "think")
        .add_conditional_edges_with_map("think", tools_condition, [("tools", "act"), (END, END)])
        .add_edge("act", "observe")
        .add_edge("observe", "think")
        .checkpointer(MemorySaver::new())
        .compile()?;
    let asks = |id: &str, city: &str| ToolCall::new(id, "population", serde_json::json!({ "city": city }));
    let model: Arc<dyn ChatModel> = Arc::new(ScriptedModel::new([
        Message::calls("I need two numbers.", [asks("c1", "Oslo"), asks("c2", "Rome")]),
        Message::assistant("Rome is larger."),
    ]));
    let input = AgentState { messages: vec![Message::user("Which is larger, Oslo or Rome?")] };
    let out = app.invoke(input).thread("cities").context(model).await?;
    let said: Vec<_> = out.state.messages.iter().map(|m| m.text().into_owned()).collect();
    said.iter().for_each(|text| println!("{text}"));
    Ok(said)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
