use superstep::State;

fn keep_best(best: u8, new: u8) -> u8 {
    best.max(new)
}

#[derive(State, Clone)]
struct Chat {
    #[state(reduce = keep_best)]
    best: u8,
}

fn main() {}
