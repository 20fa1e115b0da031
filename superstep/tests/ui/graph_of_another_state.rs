use superstep::{AgentState, CompiledStateGraph, State, StateGraph};

#[derive(State, Clone, Default)]
struct Outer {
    topic: Option<String>,
}

fn nest(graph: &mut StateGraph<Outer>, inner: CompiledStateGraph<AgentState>) {
    graph.add_node("inner", inner);
}

fn main() {
    let _ = nest;
}
