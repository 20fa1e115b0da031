//! Map and reduce: a plan, one task per topic at the same time, and a report of all findings.
//!
//! `cargo run -p superstep-agent --example research`

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use superstep::{BoxError, Message, Runtime, START, Send, Sent, State, StateGraph};
use superstep_agent::{ChatModel, ChatModelExt, ChatRequest, ScriptedModel};

#[derive(State, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Research {
    question: String,
    topics: Vec<String>,
    #[state(append)]
    findings: Vec<String>,
    report: Option<String>,
}

type Model = Runtime<Arc<dyn ChatModel>>;

async fn plan(state: Research, model: Model) -> Result<ResearchUpdate, BoxError> {
    let topics = model.ask_for::<Vec<String>>(&*format!("Which topics answer this? {}", state.question)).await?;
    Ok(Research::update().topics(topics))
}

async fn look_into(Sent(topic): Sent<String>, model: Model) -> Result<ResearchUpdate, BoxError> {
    let answer = model.ask(&*format!("Look into: {topic}")).await?;
    Ok(Research::update().findings([answer.text().into_owned()]))
}

async fn report(state: Research, model: Model) -> Result<ResearchUpdate, BoxError> {
    let answer = model.ask(&*format!("Write a report of: {}", state.findings.join(" "))).await?;
    Ok(Research::update().report(answer.text().into_owned()))
}

fn one_task_per_topic(state: &Research) -> Vec<Send> {
    state.topics.iter().map(|topic| Send::new("look_into", topic.clone())).collect()
}

/// Stands for a model.
fn think(request: &ChatRequest) -> Message {
    let question = request.messages[0].text().into_owned();
    Message::assistant(match question.split_once(": ") {
        Some(("Look into", topic)) => format!("{topic} is important."),
        Some((_, findings)) => format!("In short: {findings}"),
        None => r#"["soil", "rain", "sun"]"#.to_owned(),
    })
}

pub(crate) async fn run() -> Result<String, BoxError> {
    let app = StateGraph::<Research>::new()
        .add_node("plan", plan)
        .add_node("look_into", look_into)
        .add_node("report", report)
        .add_edge(START, "plan")
        .add_conditional_edges("plan", one_task_per_topic)
        .add_edge("look_into", "report")
        .compile()?;
    let model: Arc<dyn ChatModel> = Arc::new(ScriptedModel::thinking(think));
    let input = Research { question: "How does tea grow?".into(), ..Research::default() };
    let report = app.invoke(input).context(model).await?.state.report.unwrap_or_default();
    println!("{report}");
    Ok(report)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
