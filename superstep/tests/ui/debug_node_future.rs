use std::rc::Rc;
use std::sync::Mutex;

use superstep::{AgentState, debug_node};

#[debug_node]
async fn holds_an_rc(_: AgentState) {
    let held = Rc::new(1);
    tokio::task::yield_now().await;
    drop(held);
}

static LOCK: Mutex<u8> = Mutex::new(0);

#[debug_node]
async fn holds_a_guard(_: AgentState) {
    let guard = LOCK.lock();
    tokio::task::yield_now().await;
    drop(guard);
}

fn main() {}
