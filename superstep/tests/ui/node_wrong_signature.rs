use superstep::{AgentState, START, StateGraph};

async fn count(state: AgentState) -> usize {
    state.messages.len()
}

fn main() {
    let _ = StateGraph::<AgentState>::new().add_node("count", count).add_edge(START, "count");
}
