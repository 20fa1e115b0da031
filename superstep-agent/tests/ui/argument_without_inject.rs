#![allow(unused_variables)]

use std::sync::Arc;

use superstep::{Context, Runtime, StoreHandle, StreamWriter, ToolCall};
use superstep_agent::{ReactState, ToolContext, tool};

/// Orders something.
#[tool]
async fn order(
    what: String,
    cx: Context,
    tool_cx: ToolContext,
    call: ToolCall,
    store: StoreHandle,
    writer: StreamWriter,
    tenant: Runtime<u8>,
    by_path: superstep::Context,
    state: Arc<ReactState>,
) -> String {
    what
}

fn main() {}
