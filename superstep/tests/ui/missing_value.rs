use superstep::State;

#[derive(State, Clone)]
#[state(update)]
struct Chat {
    #[state(reduce)]
    best: Option<u8>,
    #[state(reducer)]
    longest: String,
    #[state(rename)]
    topic: String,
}

fn main() {}
