// A reducer that takes updates of another type than the attribute says.
use superstep::{Reducer, State};

struct Count;
impl Reducer<u64, String> for Count {
    fn merge(&self, count: u64, _: String) -> u64 {
        count + 1
    }
}

#[derive(State, Clone)]
struct Chat {
    #[state(reducer = Count, update = bool)]
    words: u64,
    #[state(reducer = Count)]
    letters: u64,
    #[state(reduce = add, update = bool)]
    lines: u64,
}

fn add(_: &mut u64, _: char) {}

fn main() {}
