use superstep::State;

#[derive(State, Clone)]
#[allow(non_snake_case)]
struct Chat {
    best_answer: String,
    bestAnswer: String,
}

fn main() {}
