use superstep::{AgentState, BoxError, START, Send, StateGraph};

async fn work(_: AgentState) {}

pub(super) async fn main() -> Result<(), BoxError> {
    let app = StateGraph::<AgentState>::new()
        .add_node("work", work)
        .add_conditional_edges(START, |_: &AgentState| vec![Send::new("work", 1), Send::new("work", 2)])
        .compile()?;
    app.invoke(()).await?;
    Ok(())
}
