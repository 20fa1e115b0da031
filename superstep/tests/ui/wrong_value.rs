use superstep::State;

#[derive(State, Clone)]
#[state(crate = "superstep", update = "ChatPatch")]
struct Chat {
    #[state(reduce = |best, new| *best = new)]
    best: Option<u8>,
    #[state(rename = topic)]
    subject: String,
}

fn main() {}
