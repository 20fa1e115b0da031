// What a closure captured is lent to its future, or moved out of it at the first call.
use superstep::{AgentState, AgentStateUpdate, END, Message, START, StateGraph};

fn says(text: &str) -> AgentStateUpdate {
    AgentStateUpdate { messages: Some(vec![Message::assistant(text)]) }
}

fn main() {
    let model = String::from("small");
    StateGraph::<AgentState>::new().add_node("lends", async move |_: AgentState| says(&model));

    let model = String::from("small");
    StateGraph::<AgentState>::new().add_node("moves", move |_: AgentState| async move { says(&model) });

    let to = String::from(END);
    StateGraph::<AgentState>::new().add_conditional_edges(START, async move |_: AgentState| to.clone());
}
