use superstep::{Message, State};

#[derive(State, Clone)]
struct Chat {
    #[state(append)]
    tokens: u64,
    #[state(delta)]
    topic: Option<String>,
    #[state(topic)]
    job: String,
    #[state(messages)]
    last: Option<Message>,
}

fn main() {}
