use superstep::State;

#[derive(State, Clone)]
#[state]
struct Chat {
    #[state = "append"]
    log: Vec<String>,
    #[state(sum max)]
    tokens: u64,
}

fn main() {}
