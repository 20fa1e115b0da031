use std::sync::Mutex;

use superstep::{Persist, State};

#[derive(Clone, Default)]
struct Handle(std::sync::Arc<Mutex<u8>>);

#[derive(State, Clone)]
struct Chat {
    handle: Handle,
    #[state(untracked)]
    other: Handle,
}

fn saves<S: Persist>() {}

fn main() {
    let _ = Chat::update().handle(Handle::default());
    saves::<Chat>();
}
