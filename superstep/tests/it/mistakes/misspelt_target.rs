use superstep::{AgentState, BoxError, END, START, StateGraph};

async fn node(_: AgentState) {}

pub(super) async fn main() -> Result<(), BoxError> {
    let app = StateGraph::<AgentState>::new()
        .add_node("ask", node)
        .add_node("answer", node)
        .add_edge(START, "ask")
        .add_conditional_edges("ask", |state: &AgentState| if state.messages.is_empty() { "anwser" } else { END })
        .compile()?;
    app.invoke(()).await?;
    Ok(())
}
