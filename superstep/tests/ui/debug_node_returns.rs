use superstep::{AgentState, Message, debug_node};

#[debug_node]
async fn returns_a_number(state: AgentState) -> usize {
    state.messages.len()
}

#[debug_node]
async fn returns_one_message(_: AgentState) -> Result<Message, superstep::BoxError> {
    Ok(Message::assistant("hi"))
}

#[debug_node]
fn fails_with_a_plain_box(_: &AgentState) -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}

fn main() {}
