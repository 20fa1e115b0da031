use superstep::{AgentState, BoxError, EchoAgent, MemorySaver, Message, START, StateGraph};

pub(super) async fn main() -> Result<(), BoxError> {
    let app = StateGraph::<AgentState>::new()
        .add_node("echo", EchoAgent)
        .add_edge(START, "echo")
        .checkpointer(MemorySaver::new())
        .compile()?;
    app.invoke(AgentState { messages: vec![Message::user("hi")] }).await?;
    Ok(())
}
