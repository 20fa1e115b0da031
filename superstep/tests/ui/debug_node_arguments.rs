use std::rc::Rc;
use std::sync::Arc;

use superstep::{AgentState, Context, Sent, Store, debug_node};

#[debug_node]
async fn asks_for_a_store(_: AgentState, _: Context, _: Arc<dyn Store>) {}

#[debug_node]
fn asks_for_what_cannot_be_sent(_: &AgentState, _: Option<Rc<Context>>) {}

#[debug_node]
async fn takes_no_state(_: String) {}

struct NotSerde;

#[debug_node(state = AgentState)]
async fn takes_what_no_checkpoint_holds(_: Sent<NotSerde>) {}

fn main() {}
