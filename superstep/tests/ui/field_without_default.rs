use superstep::State;

#[derive(Clone)]
struct Score(u8);

#[derive(State, Clone)]
struct Chat {
    best: Score,
}

fn main() {}
