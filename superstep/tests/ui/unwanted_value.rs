use superstep::State;

#[derive(State, Clone)]
struct Chat {
    #[state(append = true)]
    log: Vec<String>,
    #[state(sum(u64))]
    tokens: u64,
    #[state(topic(keep))]
    jobs: Vec<u8>,
}

fn main() {}
