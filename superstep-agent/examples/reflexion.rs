//! Reflexion: a first answer with a critique of itself and questions that would improve it; research; a revised answer, again.
//!
//! After LangGraph's notebook "Reflexion". `cargo run -p superstep-agent --example reflexion`

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::{BoxError, END, Message, Runtime, START, Send, Sent, State, StateGraph};
use superstep_agent::{ChatModel, ChatModelExt, ScriptedModel};

type Model = Runtime<Arc<dyn ChatModel>>;

const MOST_REVISIONS: usize = 2;

/// An answer, what is wrong with it, and what to look up to improve it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Answer {
    /// About 250 words.
    pub(crate) text: String,
    missing: String,
    superfluous: String,
    /// One to three.
    queries: Vec<String>,
    #[serde(default)]
    pub(crate) references: Vec<String>,
}

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Research {
    question: String,
    #[state(append)]
    drafts: Vec<Answer>,
    #[state(append)]
    findings: Vec<String>,
}

async fn draft(state: Arc<Research>, model: Model) -> Result<ResearchUpdate, BoxError> {
    let first: Answer = model.ask_for(format!("Answer, and be severe with yourself: {}", state.question)).await?;
    Ok(Research::update().drafts([first]))
}

/// Stands for a search engine: one task for each question, at the same time.
async fn look_up(Sent(query): Sent<String>) -> ResearchUpdate {
    Research::update().findings([format!("{query}: https://example.com/{}", query.replace(' ', "-"))])
}

async fn revise(state: Arc<Research>, model: Model) -> Result<ResearchUpdate, BoxError> {
    let last = state.drafts.last().ok_or("there is no draft")?;
    let question = format!(
        "Revise `{}`: it lacks {}, and could do without {}. Cite what you use of: {}",
        last.text,
        last.missing,
        last.superfluous,
        state.findings.join("; "),
    );
    let revised: Answer = model.ask_for(question).await?;
    Ok(Research::update().drafts([revised]))
}

fn queries(state: &Research) -> Vec<Send> {
    let queries = state.drafts.last().into_iter().flat_map(|last| &last.queries);
    queries.map(|query| Send::new("look_up", query.clone())).collect()
}

/// More research, or none if there is nothing to look up or it has been revised often enough.
fn goes_on(state: &Research) -> Vec<Send> {
    if state.drafts.len() > MOST_REVISIONS { Vec::new() } else { queries(state) }
}

fn answer(text: &str, queries: &[&str], references: &[&str]) -> Message {
    let value = json!({
        "text": text, "missing": "numbers", "superfluous": "praise", "queries": queries, "references": references,
    });
    Message::assistant(value.to_string())
}

pub(crate) async fn run() -> Result<(Vec<String>, Answer), BoxError> {
    let model: Arc<dyn ChatModel> = Arc::new(ScriptedModel::new([
        answer("Trees help.", &["carbon in trees", "cost of trees"], &[]),
        answer("Trees bind carbon [1].", &["area for trees"], &["https://example.com/carbon-in-trees"]),
        answer("Trees bind carbon [1], if there is room [2].", &[], &["https://example.com/carbon-in-trees"]),
    ]));
    let app = StateGraph::<Research>::new()
        .add_node("draft", draft)
        .add_node("look_up", look_up)
        .add_node("revise", revise)
        .add_edge(START, "draft")
        .add_conditional_edges_with_map("draft", queries, ["look_up"])
        .add_edge("look_up", "revise")
        .add_conditional_edges_with_map("revise", goes_on, ["look_up", END])
        .compile()?;
    let input = Research::update().question("How should we handle the climate crisis?");
    let state = app.invoke(input).context(model).await?.state;
    let last = state.drafts.last().cloned().unwrap_or_default();
    println!("{}\n{}", last.text, last.references.join("\n"));
    Ok((state.findings, last))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
