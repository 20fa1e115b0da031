use superstep::{AgentState, Context, Sent, debug_node};

#[debug_node]
async fn takes_nothing() {}

#[debug_node]
async fn borrows(_: &AgentState) {}

#[debug_node]
fn changes(_: &mut AgentState) {}

#[debug_node]
async fn borrows_its_context(_: AgentState, _: &Context) {}

#[debug_node]
async fn is_generic<T: Send>(_: T) {}

#[debug_node]
async fn takes_anything(_: impl Send) {}

#[debug_node]
async fn tells_no_state(_: Sent<u8>) {}

#[debug_node(over = AgentState)]
async fn names_the_state(_: Sent<u8>) {}

struct Type;

impl Type {
    #[debug_node]
    async fn is_a_method(&self, _: AgentState) {}
}

#[debug_node]
#[rustfmt::skip]
fn asks_for_too_much(_: &AgentState, _: Context, _: Context, _: Context, _: Context, _: Context, _: Context, _: Context) {}

fn main() {}
