//! Think, act and observe in a straight line: each is a type that implements `Node`, and says how to go on.
//!
//! There is one round of tools and no way back; `think_act_observe` has the loop.
//!
//! `cargo run -p superstep-agent --example react_linear`

use std::sync::Arc;

use async_trait::async_trait;
use superstep::{AgentState, BoxError, Message, Next, Node, StateGraph, ToolCall};
use superstep_agent::{ChatModel, ChatModelExt, ChatRequest, ScriptedModel, Tool, tool};

/// How many people live in a city.
#[tool]
fn population(city: String) -> Result<u64, BoxError> {
    match city.as_str() {
        "Oslo" => Ok(717_000),
        "Rome" => Ok(2_755_000),
        other => Err(format!("nobody has counted {other}").into()),
    }
}

/// Lets the model say what it needs to know.
struct Think {
    model: Arc<dyn ChatModel>,
}

#[async_trait]
impl Node<AgentState> for Think {
    fn id(&self) -> &'static str {
        "think"
    }

    async fn run(&self, mut state: AgentState) -> Result<(AgentState, Next), BoxError> {
        let request = ChatRequest::new(state.messages.clone()).tools([population.spec()]);
        let thought = self.model.ask(request).await?;
        // Who needs nothing has answered already.
        let next = if thought.tool_calls().next().is_some() { Next::Continue } else { Next::End };
        state.messages.push(thought);
        Ok((state, next))
    }
}

/// Finds it out.
struct Act;

#[async_trait]
impl Node<AgentState> for Act {
    fn id(&self) -> &'static str {
        "act"
    }

    async fn run(&self, mut state: AgentState) -> Result<(AgentState, Next), BoxError> {
        let calls: Vec<ToolCall> = state.messages.iter().flat_map(Message::tool_calls).cloned().collect();
        for call in calls {
            let city = serde_json::from_value(call.args["city"].clone())?;
            let result = population::run(city).map_or_else(|error| error.to_string(), |people| people.to_string());
            state.messages.push(Message::tool_result(call.id, result));
        }
        Ok((state, Next::Continue))
    }
}

/// Lets the model answer with what was found.
struct Observe {
    model: Arc<dyn ChatModel>,
}

#[async_trait]
impl Node<AgentState> for Observe {
    fn id(&self) -> &'static str {
        "observe"
    }

    async fn run(&self, mut state: AgentState) -> Result<(AgentState, Next), BoxError> {
        let answer = self.model.ask(state.messages.clone()).await?;
        state.messages.push(answer);
        Ok((state, Next::Continue))
    }
}

/// Stands for a model that asks for two numbers.
pub(crate) fn script() -> ScriptedModel {
    let asks = |id: &str, city: &str| ToolCall::new(id, "population", serde_json::json!({ "city": city }));
    ScriptedModel::new([
        Message::calls("I need two numbers.", [asks("c1", "Oslo"), asks("c2", "Atlantis")]),
        Message::assistant("Oslo is larger than what nobody has counted."),
    ])
}

/// What was said, message by message.
///
/// # Errors
/// If the graph is put together wrongly, or the run fails.
pub(crate) async fn run(model: impl ChatModel) -> Result<Vec<String>, BoxError> {
    let model: Arc<dyn ChatModel> = Arc::new(model);
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("think", Think { model: model.clone() });
    graph.add_node("act", Act);
    graph.add_node("observe", Observe { model });
    graph.add_sequence(&["think", "act", "observe"]);
    let app = graph.compile()?;

    let input = AgentState { messages: vec![Message::user("Which is larger, Oslo or Atlantis?")] };
    let out = app.invoke(input).await?;
    Ok(out.state.messages.iter().map(|message| message.text().into_owned()).collect())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run(script()).await?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
