use superstep::{AgentState, BoxError, END, START, StateGraph};

async fn node(_: AgentState) {}

pub(super) fn main() -> Result<(), BoxError> {
    StateGraph::<AgentState>::new()
        .add_node("plan", node)
        .add_node("write", node)
        .add_edge(START, "plan")
        .add_edge("plan", "wirte")
        .add_edge("review", END)
        .compile()?;
    Ok(())
}
