use superstep::State;

#[derive(State, Clone)]
struct Chat {
    #[state(apend)]
    log: Vec<String>,
    #[state(default = 3, sum)]
    tokens: u64,
}

fn main() {}
