use superstep::State;

#[derive(State, Clone)]
struct Chat {
    log: Vec<String>,
    #[state(rename = "log")]
    notes: Vec<String>,
}

fn main() {}
