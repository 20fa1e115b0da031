use superstep::State;

#[derive(State, Clone)]
struct Chat {
    #[state(version = 2)]
    log: Vec<String>,
}

fn main() {}
