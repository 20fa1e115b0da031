//! The smallest graph: one agent that says back what it hears.
//!
//! `cargo run -p superstep-agent --example state_graph_echo -- "hello, graph"`

use superstep::{AgentState, BoxError, END, EchoAgent, Message, START, StateGraph};

/// What was said, message by message.
///
/// # Errors
/// If the graph is put together wrongly, or the run fails.
pub(crate) async fn run(words: &str) -> Result<Vec<String>, BoxError> {
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("echo", EchoAgent::new());
    graph.add_edge(START, "echo");
    graph.add_edge("echo", END);
    let app = graph.compile()?;

    let out = app.invoke(AgentState { messages: vec![Message::user(words)] }).await?;
    Ok(out.state.messages.iter().map(|message| message.text().into_owned()).collect())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let words = std::env::args().nth(1).unwrap_or_else(|| "hello".to_owned());
    run(&words).await?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
