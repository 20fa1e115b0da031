use superstep::State;

#[derive(State, Clone)]
struct Chat<'a, T> {
    topic: &'a str,
    value: T,
    #[state(apend)]
    log: Vec<String>,
}

fn main() {}
