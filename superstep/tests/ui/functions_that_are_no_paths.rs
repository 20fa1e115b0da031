use std::rc::Rc;

use superstep::{AgentState, Context, StateGraph};

async fn not_send(_: AgentState) -> &'static str {
    let held = Rc::new(1);
    tokio::task::yield_now().await;
    drop(held);
    "a"
}

async fn plain_box(_: AgentState, _: Context) -> Result<&'static str, Box<dyn std::error::Error>> {
    Ok("a")
}

async fn asks_for_a_number(_: AgentState, _: u32) -> &'static str {
    "a"
}

async fn leads_to_a_number(_: AgentState, _: Context) -> u32 {
    1
}

fn plain_with_a_context(_: &AgentState, _: Context) -> &'static str {
    "a"
}

fn main() {
    let _ = StateGraph::<AgentState>::new().add_conditional_edges("a", not_send);
    let _ = StateGraph::<AgentState>::new().add_conditional_edges("a", plain_box);
    let _ = StateGraph::<AgentState>::new().add_conditional_edges("a", asks_for_a_number);
    let _ = StateGraph::<AgentState>::new().add_conditional_edges("a", leads_to_a_number);
    let _ = StateGraph::<AgentState>::new().add_conditional_edges("a", plain_with_a_context);
}
