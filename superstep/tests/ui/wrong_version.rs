use superstep::State;

#[derive(State, Clone)]
#[state(version = 0)]
struct Zero {
    #[state(version = 2)]
    log: Vec<String>,
}

#[derive(State, Clone)]
#[state(version = "two")]
struct Text {
    log: Vec<String>,
}

#[derive(State, Clone)]
#[state(version = 2, version = 3)]
struct Twice {
    log: Vec<String>,
}

fn main() {}
