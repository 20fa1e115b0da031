//! Agent simulation: a model plays the customer, so that a chat bot can be tried without one.
//!
//! After LangGraph's notebook "Chat Bot Evaluation as Multi-agent Simulation". `cargo run -p superstep-agent --example agent_simulation`

use std::sync::Arc;

use superstep::{AgentState, AgentStateUpdate, BoxError, END, Message, Role, START, StateGraph};
use superstep_agent::{ChatModel, ChatModelExt, ChatRequest, ScriptedModel};

const BOT: &str = "You are a customer support agent for an airline.";
const CUSTOMER: &str = "You are Harrison, a customer of an airline. You want ALL the money back for a trip to Alaska five years \
                        ago. When you are finished with the conversation, say FINISHED.";

/// A node that answers the conversation as one of the two; each hears the other as its user.
fn plays(
    model: Arc<dyn ChatModel>,
    instructions: &'static str,
    role: Role,
) -> impl Fn(Arc<AgentState>) -> Speaking + Send + Sync + use<> {
    move |state| {
        let model = model.clone();
        Box::pin(async move {
            let said = state.messages.iter().map(|message| heard_by(role, message));
            let request = ChatRequest::new([Message::system(instructions)].into_iter().chain(said));
            let words = model.ask(request).await?.text().into_owned();
            let message = if role == Role::User { Message::user(words) } else { Message::assistant(words) };
            Ok(AgentStateUpdate { messages: Some(vec![message]) })
        })
    }
}

type Speaking = std::pin::Pin<Box<dyn Future<Output = Result<AgentStateUpdate, BoxError>> + Send>>;

fn heard_by(role: Role, message: &Message) -> Message {
    if message.role() == Some(role) { Message::assistant(message.text()) } else { Message::user(message.text()) }
}

fn goes_on(state: &AgentState) -> &'static str {
    let is_finished = state.messages.last().is_some_and(|message| message.text() == "FINISHED");
    if is_finished || state.messages.len() > 6 { END } else { "bot" }
}

pub(crate) async fn run() -> Result<Vec<String>, BoxError> {
    let bot =
        ScriptedModel::new(["Hi! How can I help you?", "After five years there is no refund.", "I am sorry, no."]);
    let customer = ScriptedModel::new(["I want a refund for Alaska.", "I want ALL of it.", "FINISHED"]);
    let app = StateGraph::<AgentState>::new()
        .add_node("bot", plays(Arc::new(bot), BOT, Role::Assistant))
        .add_node("customer", plays(Arc::new(customer), CUSTOMER, Role::User))
        .add_edge(START, "bot")
        .add_edge("bot", "customer")
        .add_conditional_edges_with_map("customer", goes_on, ["bot", END])
        .compile()?;
    let out = app.invoke(()).await?;
    let said: Vec<_> = out.state.messages.iter().map(|message| message.text().into_owned()).collect();
    said.iter().for_each(|words| println!("{words}"));
    Ok(said)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
