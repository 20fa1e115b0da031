use superstep::State;

#[derive(State, Clone)]
#[state(update = A)]
#[state(update = B)]
struct Chat {
    #[state(rename = "a", rename = "b")]
    log: Vec<String>,
}

fn main() {}
