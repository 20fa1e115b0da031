use superstep::State;

#[derive(State, Clone, Default)]
struct Draft {
    topic: Option<String>,
}

fn main() {
    let _ = Draft::update().topic("tea").tpoic("tea");
}
