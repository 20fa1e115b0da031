use superstep::State;

#[derive(Clone, Default)]
struct Score;

#[derive(State, Clone)]
struct Chat {
    #[state(max)]
    best: Score,
}

fn main() {}
