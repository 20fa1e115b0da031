//! Self-RAG: documents are graded before they are used, and an answer before it is given; the question is put anew if need be.
//!
//! After LangGraph's notebook "Self-RAG". `cargo run -p superstep-agent --example self_rag`

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use superstep::{BoxError, Routes, Runtime, START, State, StateGraph};
use superstep_agent::{ChatModel, ChatModelExt, ScriptedModel};

type Model = Runtime<Arc<dyn ChatModel>>;

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Search {
    question: String,
    documents: Vec<String>,
    answer: String,
    #[state(append)]
    steps: Vec<String>,
}

const LIBRARY: [&str; 3] = [
    "Agents keep short-term memory in their context.",
    "Agents keep long-term memory in a store outside of the model.",
    "Tea is best at eighty degrees.",
];

/// Stands for a search by nearness of meaning.
fn retrieve(search: &Search) -> SearchUpdate {
    let is_near = |text: &&str| search.question.split(' ').any(|word| word.len() > 4 && text.contains(word));
    let found: Vec<String> = LIBRARY.into_iter().filter(is_near).map(str::to_owned).collect();
    Search::update().documents(found).steps([format!("search: {}", search.question)])
}

async fn grade(search: Arc<Search>, model: Model) -> Result<SearchUpdate, BoxError> {
    let mut relevant = Vec::new();
    for document in &search.documents {
        if model.ask_for(format!("Is `{document}` about `{}`?", search.question)).await? {
            relevant.push(document.clone());
        }
    }
    let step = format!("{} of {} are relevant", relevant.len(), search.documents.len());
    Ok(Search::update().documents(relevant).steps([step]))
}

async fn generate(search: Arc<Search>, model: Model) -> Result<SearchUpdate, BoxError> {
    let said = model.ask(format!("Answer `{}` by: {}", search.question, search.documents.join(" "))).await?;
    Ok(Search::update().answer(said.text()).steps([format!("answer: {}", said.text())]))
}

async fn rephrase(search: Arc<Search>, model: Model) -> Result<SearchUpdate, BoxError> {
    let said = model.ask(format!("Put it better: {}", search.question)).await?;
    Ok(Search::update().question(said.text()))
}

#[derive(Routes)]
enum Graded {
    Generate,
    Rephrase,
}

fn after_grading(search: &Search) -> Graded {
    if search.documents.is_empty() { Graded::Rephrase } else { Graded::Generate }
}

#[derive(Routes)]
enum Judged {
    #[route(END)]
    Useful,
    #[route("rephrase")]
    OfNoUse,
    #[route("generate")]
    NotSupported,
}

async fn judge(search: Arc<Search>, model: Model) -> Result<Judged, BoxError> {
    let is_supported = format!("Does `{}` support `{}`?", search.documents.join(" "), search.answer);
    if !model.ask_for::<bool>(is_supported).await? {
        return Ok(Judged::NotSupported);
    }
    let is_useful = model.ask_for(format!("Is `{}` an answer to `{}`?", search.answer, search.question)).await?;
    Ok(if is_useful { Judged::Useful } else { Judged::OfNoUse })
}

pub(crate) async fn run() -> Result<Vec<String>, BoxError> {
    let model: Arc<dyn ChatModel> = Arc::new(ScriptedModel::new([
        "false", // tea is not what is asked about
        "What memory do agents have?",
        "true",
        "true",
        "As elephants do.",
        "false", // no document supports that
        "Short-term and long-term memory.",
        "true",
        "true",
    ]));
    let app = StateGraph::<Search>::new()
        .add_node("retrieve", retrieve)
        .add_node("grade", grade)
        .add_node("generate", generate)
        .add_node("rephrase", rephrase)
        .add_edge(START, "retrieve")
        .add_edge("retrieve", "grade")
        .add_conditional_edges("grade", after_grading)
        .add_edge("rephrase", "retrieve")
        .add_conditional_edges("generate", judge)
        .compile()?;
    let question = Search::update().question("What do they remember, degrees aside?");
    let steps = app.invoke(question).context(model).await?.state.steps;
    steps.iter().for_each(|step| println!("{step}"));
    Ok(steps)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
