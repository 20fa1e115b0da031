use superstep::{MemorySaver, START, State, StateGraph};

#[derive(Clone, Default)]
struct Connection;

#[derive(State, Clone, Default)]
struct Draft {
    topic: Option<String>,
    connection: Connection,
}

async fn write(_: Draft) {}

fn main() {
    let _ = StateGraph::<Draft>::new().add_node("write", write).add_edge(START, "write").checkpointer(MemorySaver::new());
}
