use std::rc::Rc;

use superstep::{AgentState, StateGraph};

async fn not_send(_: AgentState) {
    let held = Rc::new(1);
    tokio::task::yield_now().await;
    drop(held);
}

async fn plain_box(_: AgentState) -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}

fn main() {
    let _ = StateGraph::<AgentState>::new().add_node("not_send", not_send);
    let _ = StateGraph::<AgentState>::new().add_node("plain_box", plain_box);
}
