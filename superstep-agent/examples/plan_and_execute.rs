//! Plan and execute: a planner, an agent with tools that does the first step of the plan, and a planner that looks again.
//!
//! After LangGraph's notebook "Plan-and-Execute". `cargo run -p superstep-agent --example plan_and_execute`

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::{
    BoxError, CompiledStateGraph, Context, END, Message, Runtime, START, State, StateGraph, StateNode, ToolCall,
};
use superstep_agent::{ChatModel, ChatModelExt, ReactState, ScriptedModel, create_react_agent, tool};

type Planner = Runtime<Arc<dyn ChatModel>>;

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Work {
    objective: String,
    plan: Vec<String>,
    #[state(append)]
    done: Vec<(String, String)>,
    response: Option<String>,
}

/// What is next.
#[derive(Serialize, Deserialize, JsonSchema)]
enum Act {
    /// The answer to the user.
    Respond(String),
    /// The steps that are left, in order.
    Plan(Vec<String>),
}

/// Searches the web.
#[tool]
fn search(query: String) -> &'static str {
    if query.contains("winner") { "Jannik Sinner" } else { "Sexten, in South Tyrol" }
}

async fn plan(work: Arc<Work>, planner: Planner) -> Result<WorkUpdate, BoxError> {
    let steps: Vec<String> = planner.ask_for(format!("Plan, step by step: {}", work.objective)).await?;
    Ok(Work::update().plan(steps))
}

/// Does the first step of the plan.
struct Execute {
    agent: CompiledStateGraph<ReactState>,
}

#[async_trait]
impl StateNode<Work> for Execute {
    type Input = Arc<Work>;
    type Output = WorkUpdate;
    async fn run(&self, work: Arc<Work>, cx: Context) -> Result<WorkUpdate, BoxError> {
        let step = work.plan.first().ok_or("the plan is empty")?.clone();
        let request = format!("For this plan: {}. Do its first step: {step}", work.plan.join("; "));
        let out = cx.invoke(&self.agent, Message::user(request)).await?;
        let result = out.state.messages.last().map(|message| message.text().into_owned()).unwrap_or_default();
        Ok(Work::update().done([(step, result)]))
    }
}

async fn replan(work: Arc<Work>, planner: Planner) -> Result<WorkUpdate, BoxError> {
    let question = format!("For `{}`, of the plan {:?} this is done: {:?}", work.objective, work.plan, work.done);
    Ok(match planner.ask_for(question).await? {
        Act::Respond(response) => Work::update().response(response),
        Act::Plan(steps) => Work::update().plan(steps),
    })
}

pub(crate) async fn run() -> Result<(Vec<(String, String)>, String), BoxError> {
    let planner: Arc<dyn ChatModel> = Arc::new(ScriptedModel::new(
        [
            json!(["find the winner of the Australian Open 2024", "find the hometown of the winner"]).to_string(),
            json!({ "Plan": ["find the hometown of Jannik Sinner"] }).to_string(),
            json!({ "Respond": "Jannik Sinner is from Sexten." }).to_string(),
        ]
        .map(Message::assistant),
    ));
    let call = |query| Message::calls("", [ToolCall::new(Message::new_id(), "search", json!({ "query": query }))]);
    let model = ScriptedModel::new([
        call("winner of the Australian Open 2024"),
        Message::assistant("Jannik Sinner won."),
        call("hometown of Jannik Sinner"),
        Message::assistant("He is from Sexten."),
    ]);
    let agent = create_react_agent(model, [search]).prompt("You are a helpful assistant.").compile()?;
    let app = StateGraph::<Work>::new()
        .add_node("plan", plan)
        .add_node("execute", Execute { agent })
        .add_node("replan", replan)
        .add_edge(START, "plan")
        .add_edge("plan", "execute")
        .add_edge("execute", "replan")
        .add_conditional_edges_with_map(
            "replan",
            |work: &Work| if work.response.is_some() { END } else { "execute" },
            ["execute", END],
        )
        .compile()?;
    let objective = "What is the hometown of the winner of the Australian Open 2024?";
    let work = app.invoke(Work::update().objective(objective)).context(planner).await?.state;
    work.done.iter().for_each(|(step, result)| println!("{step}: {result}"));
    Ok((work.done, work.response.unwrap_or_default()))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
