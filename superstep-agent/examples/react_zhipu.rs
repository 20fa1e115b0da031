//! A ReAct agent with a model of Zhipu, which speaks the language of OpenAI at an address of its own.
//!
//! `ZHIPU_API_KEY=… cargo run -p superstep-agent --features openai --example react_zhipu`
//!
//! `ZHIPU_MODEL` names another model than `glm-4-flash`. Without the key a script answers.

use std::sync::Arc;

use superstep::{BoxError, Message, ToolCall};
use superstep_agent::{ChatModel, OpenAi, ScriptedModel, create_react_agent, tool};

/// How warm it is in a city, in degrees Celsius.
#[tool]
fn temperature(city: String) -> f64 {
    if city == "Oslo" { 4.5 } else { 21.0 }
}

/// Any server that speaks OpenAI's language is asked like this.
pub(crate) fn zhipu(url: &str, key: String, model: &str) -> OpenAi {
    OpenAi::new(model).base_url(url).api_key(key)
}

/// The model that the environment names, or a script.
fn model() -> Arc<dyn ChatModel> {
    let key = std::env::var("ZHIPU_API_KEY").unwrap_or_default();
    if key.is_empty() {
        println!("`ZHIPU_API_KEY` is not set; a script answers instead");
        return Arc::new(script());
    }
    let model = std::env::var("ZHIPU_MODEL").unwrap_or_else(|_| "glm-4-flash".to_owned());
    Arc::new(zhipu("https://open.bigmodel.cn/api/paas/v4", key, &model))
}

pub(crate) fn script() -> ScriptedModel {
    let call = ToolCall::new("c1", "temperature", serde_json::json!({ "city": "Oslo" }));
    ScriptedModel::new([Message::calls("", [call]), Message::assistant("It is 4.5 °C in Oslo.")])
}

/// What was said, message by message.
///
/// # Errors
/// If the model cannot be reached, or the run fails.
pub(crate) async fn run(model: impl ChatModel) -> Result<Vec<String>, BoxError> {
    let agent = create_react_agent(model, [temperature]).prompt("Answer in one sentence.").compile()?;
    let out = agent.invoke("How warm is it in Oslo?").await?;
    Ok(out.state.messages.iter().map(|message| message.text().into_owned()).collect())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run(model()).await?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
