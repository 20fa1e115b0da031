//! An agent that answers with a value of a Rust type.
//!
//! `cargo run -p superstep-agent --example structured_output`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::BoxError;
use superstep_agent::{ChatModelExt, ScriptedModel, create_react_agent};

/// What a customer wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Order {
    /// What it is.
    pub(crate) item: String,
    /// How many of it.
    pub(crate) pieces: u32,
}

pub(crate) async fn run() -> Result<(Order, Order), BoxError> {
    // A model alone: an answer that does not fit is sent back with the reason.
    let model = ScriptedModel::new([r#"{"item": "cup", "pieces": "two"}"#, r#"{"item": "cup", "pieces": 2}"#]);
    let alone: Order = model.ask_for("Two cups, please.").await?;
    println!("the model: {alone:?}");

    // An agent: after its last round it is asked for the value.
    let model = ScriptedModel::new(["Certainly, three plates.", r#"{"item": "plate", "pieces": 3}"#]);
    let agent = create_react_agent(model, ()).response_format::<Order>().compile()?;
    let out = agent.invoke("Three plates, please.").await?;
    let order = out.state.structured::<Order>()?.ok_or("the agent gave no answer")?;
    println!("the agent: {order:?}");
    Ok((alone, order))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
