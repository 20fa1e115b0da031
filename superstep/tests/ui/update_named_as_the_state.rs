use superstep::State;

#[derive(State, Clone)]
#[state(update = Chat)]
struct Chat {
    log: Vec<String>,
}

fn main() {
    let _: ChatUpdate = Chat::update();
}
