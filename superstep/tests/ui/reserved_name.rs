use superstep::State;

#[derive(State, Clone)]
struct Chat {
    __start__: u8,
    #[state(rename = "__end__")]
    last: u8,
    #[state(rename = "branch:to")]
    branch: u8,
    #[state(rename = "")]
    nameless: u8,
}

fn main() {}
