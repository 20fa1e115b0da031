use superstep::{START, State, StateGraph};

#[derive(State, Default)]
struct Chat {
    topic: String,
}

fn main() {
    let app = StateGraph::<Chat>::new().add_node("say", |_: &Chat| Chat::update().topic("tea")).add_edge(START, "say").compile();
    let _ = app.map(|app| app.invoke(Chat::update().topic("x")));
}
