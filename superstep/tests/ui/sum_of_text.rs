use superstep::State;

#[derive(State, Clone)]
struct Chat {
    #[state(sum)]
    names: Vec<String>,
}

fn main() {}
