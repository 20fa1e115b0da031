use superstep::{Reducer, State};

struct Longest;

impl Reducer<String> for Longest {
    fn merge(&self, current: String, update: String) -> String {
        if update.len() > current.len() { update } else { current }
    }
}

#[derive(State, Clone, Default)]
struct Draft {
    #[state(reducer = Longest)]
    words: u64,
}

fn main() {}
