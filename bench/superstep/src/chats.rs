//! Conversations with the ReAct agent of `superstep-agent`, many at once, remembered in one SQLite file.
use crate::common::{drop_db, fresh_db, median, report};
use crate::{Bench, SYSTEM};
use async_trait::async_trait;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use superstep::{CompiledStateGraph, Message, Role, ToolCall};
use superstep_sqlite::SqliteSaver;
use superstep_agent::{
    ChatModel, ChatRequest, ChunkStream, ModelError, ModelErrorKind, ReactState, create_react_agent, tool,
};

/// The runs of a conversation, one after another: each begins with new words of a human.
const TURNS: usize = 20;
/// In every turn with such a number the model calls the tool once before it answers.
const CALLING: usize = 4;
const MESSAGES: usize = 2 * TURNS + 2 * (TURNS / CALLING);
const STEPS: usize = TURNS + 2 * (TURNS / CALLING);

pub async fn run(bench: &Bench) {
    let bytes = AtomicU64::new(0);
    let runs = bench.n * TURNS;
    let talk = || async { bytes.store(talk(bench.n).await, Relaxed) };
    if let Some(times) = bench.measure("chats", bench.n * STEPS, talk).await {
        let extra = json!({
            "runs_per_s": runs as f64 / median(&times), "turns": runs, "bytes_total": bytes.load(Relaxed),
            "note": format!("SqliteSaver, durability async, {TURNS} turns each"),
        });
        report(SYSTEM, "chats", bench.n, &times, bench.n * STEPS, extra);
    }
}

/// All conversations, in a file of their own; gives the size of the file.
async fn talk(conversations: usize) -> u64 {
    let file = fresh_db(SYSTEM);
    let saver = SqliteSaver::open(&file).unwrap();
    let agent = create_react_agent(Scripted, [lookup]).checkpointer(saver.clone()).compile().unwrap();
    let one = |number: usize| tokio::spawn(converse(agent.clone(), format!("t{number}")));
    for conversation in (0..conversations).map(one).collect::<Vec<_>>() {
        conversation.await.unwrap();
    }
    saver.database().close().await.unwrap();
    let bytes = std::fs::metadata(&file).unwrap().len();
    drop_db(&file);
    bytes
}

async fn converse(agent: CompiledStateGraph<ReactState>, thread: String) {
    let mut messages = 0;
    for turn in 1..=TURNS {
        let out = agent.invoke(&*format!("question {turn}")).thread(&*thread).await.unwrap();
        messages = out.state.messages.len();
    }
    assert_eq!(messages, MESSAGES);
}

/// Looks something up.
#[tool]
fn lookup(q: String) -> String {
    assert!(!q.is_empty());
    "r".repeat(200)
}

/// A model that answers at once and, other than `ScriptedModel`, does not keep what it was asked.
struct Scripted;

#[async_trait]
impl ChatModel for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn generate(&self, request: ChatRequest) -> Result<Message, ModelError> {
        let is_human = |message: &&Message| message.role() == Some(Role::User);
        let turn = request.messages.iter().filter(is_human).count();
        let is_asked = request.messages.last().as_ref().is_some_and(is_human);
        Ok(if is_asked && turn.is_multiple_of(CALLING) {
            Message::calls("", [ToolCall::new(format!("call{turn}"), "lookup", json!({"q": format!("query {turn}")}))])
        } else {
            Message::assistant("a".repeat(200))
        })
    }

    async fn stream(&self, _: ChatRequest) -> Result<ChunkStream, ModelError> {
        Err(ModelError::new(ModelErrorKind::Unexpected, self.name(), "nobody listens to these conversations"))
    }
}
