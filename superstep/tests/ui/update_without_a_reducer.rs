use superstep::State;

#[derive(State, Clone)]
struct Chat {
    #[state(update = u8)]
    topic: Option<String>,
    #[state(append, update = String)]
    log: Vec<String>,
    #[state(reduce = longest, update = 3)]
    best: String,
}

fn longest(_: &mut String, _: String) {}

fn main() {}
