//! A chat that remembers: in the thread what was said, in the store what is known for good.
//!
//! `cargo run -p superstep-agent --example chat_memory`

use superstep::{BoxError, MemorySaver, MemoryStore, Message, Role, Store, StoreHandle};
use superstep_agent::{ChatRequest, ScriptedModel, ToolContext, create_react_agent, tool};

/// Remembers a fact about the user for all later conversations.
#[tool]
async fn remember(
    /// One short sentence.
    fact: String,
    #[inject] store: StoreHandle,
    #[inject] cx: ToolContext,
) -> Result<String, BoxError> {
    store.put(["facts"], &cx.call().id, serde_json::json!({ "text": fact })).await?;
    Ok(format!("I will remember that {fact}"))
}

/// Recalls what is known about the user.
#[tool]
async fn recall(#[inject] store: StoreHandle) -> Result<String, BoxError> {
    let known = store.search(superstep::SearchQuery::new(["facts"])).await?;
    let facts = known.iter().filter_map(|item| item.value["text"].as_str());
    Ok(facts.collect::<Vec<_>>().join("; "))
}

/// Stands for a model: it calls the tools that a real one would.
fn think(request: &ChatRequest) -> Message {
    let last = request.messages.last().expect("there is a question");
    let call = |name: &str, args| Message::calls("", [superstep::ToolCall::new(Message::new_id(), name, args)]);
    match (last.role(), last.text()) {
        (Some(Role::Tool), text) => Message::assistant(text),
        (_, text) if text.starts_with("I ") => call("remember", serde_json::json!({ "fact": text })),
        (_, text) if text.contains("know") => call("recall", serde_json::json!({})),
        _ => {
            let turns = request.messages.iter().filter(|m| m.role() == Some(Role::User)).count();
            Message::assistant(format!("This is your message number {turns} in this thread."))
        }
    }
}

pub(crate) async fn run() -> Result<Vec<String>, BoxError> {
    let agent = create_react_agent(ScriptedModel::thinking(think), (remember, recall))
        .checkpointer(MemorySaver::new())
        .store(MemoryStore::new())
        .compile()?;
    let mut said = Vec::new();
    for (thread, words) in [
        ("monday", "I like tea."),
        ("monday", "hello"),
        ("tuesday", "hello"),
        ("tuesday", "What do you know about me?"),
    ] {
        let out = agent.invoke(words).thread(thread).await?;
        said.push(out.state.messages.last().map(|m| m.text().into_owned()).unwrap_or_default());
        println!("{thread}: {words}\n  -> {}", said[said.len() - 1]);
    }
    Ok(said)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
