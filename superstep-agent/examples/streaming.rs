//! An agent whose words appear in the terminal as the model says them.
//!
//! `cargo run -p superstep-agent --example streaming`

use std::io::Write;
use std::time::Duration;

use superstep::{BoxError, EventData, Message, Mode, StreamWriter, ToolCall};
use superstep_agent::{ScriptedModel, create_react_agent, tool};

/// Boils water and tells how it goes.
#[tool]
async fn boil(litres: f64, #[inject] progress: StreamWriter) -> String {
    for degrees in [40, 70, 100] {
        tokio::time::sleep(Duration::from_millis(50)).await;
        progress.send(format!("{degrees} degrees")).await;
    }
    format!("{litres} l of water boil")
}

pub(crate) async fn run() -> Result<String, BoxError> {
    let call = ToolCall::new("c1", "boil", serde_json::json!({ "litres": 0.5 }));
    let model = ScriptedModel::new([
        Message::calls("Let me put the kettle on. ", [call]),
        Message::assistant("The water boils; now let the tea draw for three minutes."),
    ]);
    let agent = create_react_agent(model, [boil]).compile()?;
    let mut events = agent.stream("Make tea, please.").modes([Mode::Messages, Mode::Custom]).start();
    let mut seen = String::new();
    while let Some(event) = events.next().await {
        let text = match event?.data {
            EventData::Message(said) if said.chunk.is_some() => said.message.text().into_owned(),
            EventData::Message(said) => format!("\n[{}: {}]\n", said.node, said.message.text()),
            EventData::Custom(progress) => format!("\n  {progress}"),
            _ => continue,
        };
        print!("{text}");
        std::io::stdout().flush()?;
        seen += &text;
    }
    println!();
    Ok(seen)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
