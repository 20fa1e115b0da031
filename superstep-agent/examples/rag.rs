//! Answers out of documents: the store finds those that are near to the question.
//!
//! `cargo run -p superstep-agent --example rag`

use async_trait::async_trait;
use superstep::{BoxError, Embedder, MemoryStore, Message, Role, SearchQuery, Store, StoreHandle, StoreIndex};
use superstep_agent::{ChatRequest, ScriptedModel, create_react_agent, tool};

/// Stands for an embedding model: texts that share words are near to each other.
struct Words;

const KNOWN: [&str; 6] = ["tea", "coffee", "water", "hot", "green", "roast"];

#[async_trait]
impl Embedder for Words {
    fn dimensions(&self) -> usize {
        KNOWN.len()
    }
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, BoxError> {
        let count = |text: &String, word: &str| text.to_lowercase().matches(word).fold(0.01, |n, _| n + 1.0);
        Ok(texts.iter().map(|text| KNOWN.iter().map(|word| count(text, word)).collect()).collect())
    }
}

/// Searches the handbook.
#[tool]
async fn search(question: String, #[inject] store: StoreHandle) -> Result<String, BoxError> {
    let found = store.search(SearchQuery::new(["handbook"]).near(question).limit(2)).await?;
    let texts = found.iter().filter_map(|item| item.value["text"].as_str());
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

/// Stands for a model: it searches, and answers with what was found.
fn think(request: &ChatRequest) -> Message {
    let last = request.messages.last().expect("there is a question");
    if last.role() == Some(Role::Tool) {
        return Message::assistant(format!("The handbook says:\n{}", last.text()));
    }
    let args = serde_json::json!({ "question": last.text() });
    Message::calls("", [superstep::ToolCall::new("c1", "search", args)])
}

pub(crate) async fn run() -> Result<String, BoxError> {
    let store = MemoryStore::new().with_index(StoreIndex::new().paths(["text"]).embedder(Words));
    for (key, text) in [
        ("tea", "Green tea wants water that is not too hot."),
        ("coffee", "Coffee is best soon after the roast."),
        ("water", "Soft water makes better tea."),
    ] {
        store.put(["handbook"], key, serde_json::json!({ "text": text })).await?;
    }
    let agent = create_react_agent(ScriptedModel::thinking(think), [search]).store(store).compile()?;
    let out = agent.invoke("How do I make green tea?").await?;
    let answer = out.state.messages.last().map(|m| m.text().into_owned()).unwrap_or_default();
    println!("{answer}");
    Ok(answer)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
