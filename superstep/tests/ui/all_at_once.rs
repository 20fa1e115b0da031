// One build shows every mistake, and the uses of the state are not errors too.
use superstep::{IntoUpdate, State};

#[derive(State, Clone)]
#[state(unknown)]
struct Chat {
    #[state(apend)]
    log: Vec<String>,
    #[state(sum, max)]
    tokens: u64,
    #[state(rename = "log", reduce)]
    topic: Option<String>,
}

fn main() {
    let update = Chat::update().tokens(3).topic("tea").overwrite(Chat::LOG, vec![]);
    let _ = update.into_update();
}
