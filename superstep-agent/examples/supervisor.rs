//! A supervisor with two agents: each has its own model and tools, and all share the conversation.
//!
//! `cargo run -p superstep-agent --example supervisor`

use serde_json::{Value, json};
use superstep::{BoxError, CompiledStateGraph, Message, Role, ToolCall};
use superstep_agent::team::Supervisor;
use superstep_agent::{ReactState, ScriptedModel, create_react_agent, tool};

/// The temperature in a city.
#[tool]
fn temperature(city: String) -> i64 {
    if city == "Rome" { 24 } else { 7 }
}

/// Subtracts a number from another.
#[tool]
fn subtract(from: i64, number: i64) -> i64 {
    from - number
}

fn call(tool: &str, args: Value) -> ToolCall {
    ToolCall::new(Message::new_id(), tool, args)
}

fn weather() -> Result<CompiledStateGraph<ReactState>, BoxError> {
    let cities = ["Oslo", "Rome"].map(|city| call("temperature", json!({ "city": city })));
    let answer = Message::assistant("It is 7 degrees in Oslo and 24 in Rome.");
    let model = ScriptedModel::new([Message::calls("", cities), answer]);
    Ok(create_react_agent(model, [temperature]).name("weather").compile()?)
}

fn sums() -> Result<CompiledStateGraph<ReactState>, BoxError> {
    let difference = call("subtract", json!({ "from": 24, "number": 7 }));
    let model = ScriptedModel::new([Message::calls("", [difference]), Message::assistant("24 - 7 = 17.")]);
    Ok(create_react_agent(model, [subtract]).name("sums").compile()?)
}

/// What each said, in order.
pub(crate) async fn run() -> Result<Vec<String>, BoxError> {
    // A model of your provider goes here: it sees a tool `transfer_to_...` for each agent.
    let model = ScriptedModel::new([
        Message::calls("First the temperatures.", [call("transfer_to_weather", json!({}))]),
        Message::calls("Now the difference.", [call("transfer_to_sums", json!({}))]),
        Message::assistant("Rome is 17 degrees warmer than Oslo."),
    ]);
    let team = Supervisor::new(model)
        .prompt("You lead a team. Let `weather` look up temperatures and `sums` do the sums.")
        .agent(weather()?, "Knows the temperature in every city.")
        .agent(sums()?, "Adds and subtracts.")
        .hand_back_messages(false)
        .compile()?;
    let out = team.invoke("How much warmer is it in Rome than in Oslo?").await?;
    let spoken = out.state.messages.iter().filter(|message| message.role() == Some(Role::Assistant));
    let said: Vec<_> = spoken.map(|m| format!("{}: {}", m.name().unwrap_or_default(), m.text())).collect();
    said.iter().for_each(|words| println!("{words}"));
    Ok(said)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
