use superstep::State;

#[derive(State, Clone)]
struct Chat {
    #[state(untracked, internal)]
    cache: Vec<u8>,
    #[state(internal = true)]
    calls: u64,
}

fn main() {}
