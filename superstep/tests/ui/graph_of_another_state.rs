use superstep::{AgentState, CompiledStateGraph, State, StateGraph};

#[derive(State, Clone, Default)]
struct Outer {
    topic: Option<String>,
}

fn nest(inner: CompiledStateGraph<AgentState>) -> StateGraph<Outer> {
    StateGraph::<Outer>::new().add_node("inner", inner)
}

fn main() {
    let _ = nest;
}
