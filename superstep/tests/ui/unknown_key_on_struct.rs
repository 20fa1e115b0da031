use superstep::State;

#[derive(State, Clone)]
#[state(rename_all = "camelCase", append)]
struct Chat {
    log: Vec<String>,
}

fn main() {}
