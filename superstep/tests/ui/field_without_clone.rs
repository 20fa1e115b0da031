use superstep::State;

#[derive(Default)]
struct Client;

#[derive(State, Clone)]
struct Chat {
    #[state(untracked)]
    client: Client,
}

fn main() {}
