use superstep::State;

#[derive(State, Clone)]
enum Phase {
    #[state(append)]
    Asking,
    Writing,
}

fn is_state<S: State>() {}

fn main() {
    is_state::<Phase>();
}
