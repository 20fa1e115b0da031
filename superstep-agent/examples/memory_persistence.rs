//! A chat that a file keeps: the next process goes on where the last one ended.
//!
//! `cargo run -p superstep-agent --example memory_persistence -- "I am Ada."`, and then
//! `cargo run -p superstep-agent --example memory_persistence -- "Who am I?"`
//!
//! `chat_memory` remembers as long as its process lives.

use std::path::Path;

use superstep::{BoxError, Message, Role};
use superstep_agent::{ChatRequest, ScriptedModel, create_react_agent};
use superstep_sqlite::SqliteSaver;

/// Stands for a model: it knows what it was told before.
fn think(request: &ChatRequest) -> Message {
    let told = request.messages.iter().filter(|message| message.role() == Some(Role::User));
    let told: Vec<_> = told.map(|message| message.text().into_owned()).collect();
    Message::assistant(match told.split_last() {
        Some((_, before)) if !before.is_empty() => format!("You told me before: {}", before.join(" ")),
        _ => "Nice to meet you.".to_owned(),
    })
}

/// Opens the file, says something in the chat that is kept there, and closes the file.
///
/// # Errors
/// If the file cannot be opened, or the run fails.
pub(crate) async fn run(file: &Path, words: &str) -> Result<String, BoxError> {
    let saver = SqliteSaver::open(file)?;
    let agent = create_react_agent(ScriptedModel::thinking(think), ()).checkpointer(saver.clone()).compile()?;
    let out = agent.invoke(words).thread("ada").await?;
    saver.database().close().await?;
    Ok(out.state.messages.last().map(|message| message.text().into_owned()).unwrap_or_default())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let file = std::env::temp_dir().join("superstep-memory.db");
    let words = std::env::args().nth(1).unwrap_or_else(|| "Hello.".to_owned());
    println!("{words}\n  -> {}", run(&file, &words).await?);
    println!("(kept in {}; delete it to be forgotten)", file.display());
    Ok(())
}
