use superstep::State;

#[derive(State, Clone)]
struct Chat {
    #[state(append, topic)]
    log: Vec<String>,
    #[state(sum)]
    #[state(max)]
    tokens: u64,
}

fn main() {}
