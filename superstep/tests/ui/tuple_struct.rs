use superstep::State;

#[derive(State, Clone)]
struct Pair(#[state(append)] Vec<String>, u64);

fn is_state<S: State>() {}

fn main() {
    is_state::<Pair>();
}
