use superstep::State;

#[derive(State, Clone)]
struct Chat {
    #[state(update = ChatPatch)]
    log: Vec<String>,
}

fn main() {}
