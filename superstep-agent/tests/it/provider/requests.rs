//! What requests say about tools and settings, at every provider.

use serde_json::{Value, json};
use superstep_agent::{Anthropic, ChatModel, ChatRequest, Gemini, OpenAi, OpenAiResponses, ToolChoice};

use super::server::{Answer, Server};
use super::{question, read, weather};

/// The body that a request is sent as.
async fn sent<M: ChatModel>(exchange: &str, request: ChatRequest, model: impl Fn(&str) -> M) -> Value {
    let server = Server::start([Answer::json(200, read(exchange, "answer.json"))]).await;
    model(&server.url()).generate(request).await.unwrap();
    server.requests()[0].json()
}

/// The field that says whether tools are called, for each choice.
async fn choices<M: ChatModel>(exchange: &str, field: &str, model: impl Fn(&str) -> M) -> Vec<Value> {
    let mut said = Vec::new();
    for choice in [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, ToolChoice::Tool("get_weather".into())] {
        let request = ChatRequest::new([question()]).tools([weather()]).tool_choice(choice);
        said.push(sent(exchange, request, &model).await[field].take());
    }
    let without_tools = ChatRequest::new([question()]).tool_choice(ToolChoice::Required);
    assert_eq!(sent(exchange, without_tools, &model).await[field], Value::Null, "there is nothing to choose from");
    said
}

#[tokio::test(start_paused = true)]
async fn whether_tools_are_called_is_said_in_the_words_of_the_provider() {
    let function = json!({"type": "function", "function": {"name": "get_weather"}});
    let openai = choices("openai/text", "tool_choice", |url| OpenAi::new("m").base_url(url)).await;
    assert_eq!(openai, [Value::Null, json!("none"), json!("required"), function]);

    let function = json!({"type": "function", "name": "get_weather"});
    let responses = choices("responses/text", "tool_choice", |url| OpenAiResponses::new("m").base_url(url)).await;
    assert_eq!(responses, [Value::Null, json!("none"), json!("required"), function]);

    let [none, any] = ["none", "any"].map(|kind| json!({ "type": kind }));
    let anthropic = choices("anthropic/text", "tool_choice", |url| Anthropic::new("m").base_url(url)).await;
    assert_eq!(anthropic, [Value::Null, none, any, json!({"type": "tool", "name": "get_weather"})]);

    let [none, any] = ["NONE", "ANY"].map(|mode| json!({"functionCallingConfig": { "mode": mode }}));
    let only = json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}});
    let gemini = choices("gemini/text", "toolConfig", |url| Gemini::new("m").base_url(url)).await;
    assert_eq!(gemini, [Value::Null, none, any, only]);
}

#[tokio::test(start_paused = true)]
async fn one_call_at_a_time_is_said_in_the_words_of_the_provider() {
    let request = || ChatRequest::new([question()]).tools([weather()]).parallel_tool_calls(false);
    let openai = sent("openai/text", request(), |url| OpenAi::new("m").base_url(url)).await;
    assert_eq!(openai["parallel_tool_calls"], false);
    let responses = sent("responses/text", request(), |url| OpenAiResponses::new("m").base_url(url)).await;
    assert_eq!(responses["parallel_tool_calls"], false);
    let anthropic = sent("anthropic/text", request(), |url| Anthropic::new("m").base_url(url)).await;
    assert_eq!(anthropic["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
}

#[tokio::test(start_paused = true)]
async fn settings_are_said_in_the_words_of_the_provider() {
    let request = || ChatRequest::new([question()]);
    let model = |url: &str| Anthropic::new("m").base_url(url).temperature(0.5).top_p(0.25).stop(["END"]).max_tokens(7);
    let anthropic = sent("anthropic/text", request(), model).await;
    assert_eq!(
        [&anthropic["temperature"], &anthropic["top_p"], &anthropic["stop_sequences"], &anthropic["max_tokens"]],
        [&json!(0.5), &json!(0.25), &json!(["END"]), &json!(7)]
    );
    let model = |url: &str| Gemini::new("m").base_url(url).temperature(0.5).top_p(0.25).stop(["END"]).max_tokens(7);
    let gemini = sent("gemini/text", request(), model).await;
    let config = json!({"temperature": 0.5, "topP": 0.25, "stopSequences": ["END"], "maxOutputTokens": 7});
    assert_eq!(gemini["generationConfig"], config);
    let model = |url: &str| OpenAiResponses::new("m").base_url(url).temperature(0.5).top_p(0.25).max_tokens(7);
    let responses = sent("responses/text", request(), model).await;
    assert_eq!(
        [&responses["temperature"], &responses["top_p"], &responses["max_output_tokens"]],
        [&json!(0.5), &json!(0.25), &json!(7)]
    );
}

/// What a tool says to its provider beside its name is merged into what the provider is told.
#[tokio::test(start_paused = true)]
async fn tools_can_speak_to_their_provider() {
    let mut tool = weather();
    tool.extra.insert("strict".into(), json!(true));
    let request = || ChatRequest::new([question()]).tools([tool.clone()]);
    let openai = sent("openai/text", request(), |url| OpenAi::new("m").base_url(url)).await;
    assert_eq!(openai["tools"][0]["function"]["strict"], true);
    let responses = sent("responses/text", request(), |url| OpenAiResponses::new("m").base_url(url)).await;
    assert_eq!(responses["tools"][0]["strict"], true);
    let anthropic = sent("anthropic/text", request(), |url| Anthropic::new("m").base_url(url)).await;
    assert_eq!(anthropic["tools"][0]["strict"], true);
    let gemini = sent("gemini/text", request(), |url| Gemini::new("m").base_url(url)).await;
    assert_eq!(gemini["tools"][0]["functionDeclarations"][0]["strict"], true);
}
