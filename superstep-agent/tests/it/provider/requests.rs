//! What requests say about tools and settings, at every provider.

use serde_json::{Value, json};
use superstep::{Message, ToolCall};
use superstep_agent::{Anthropic, ChatModel, ChatRequest, Gemini, OpenAi, OpenAiResponses, OutputSchema, ToolChoice};

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

/// A comment on a field of a nested type stands beside a reference in its schema, which is refused.
#[tokio::test(start_paused = true)]
async fn references_in_an_asked_form_stand_alone() {
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Trip {
        /// Where it begins.
        from: Place,
    }
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Place {
        city: String,
    }
    let request = || ChatRequest::new([question()]).output(OutputSchema::of::<Trip>());
    let openai = sent("openai/text", request(), |url| OpenAi::new("m").base_url(url)).await;
    let from = json!({"description": "Where it begins.", "anyOf": [{"$ref": "#/$defs/Place"}]});
    assert_eq!(openai["response_format"]["json_schema"]["schema"]["properties"]["from"], from);
    let anthropic = sent("anthropic/text", request(), |url| Anthropic::new("m").base_url(url)).await;
    assert_eq!(anthropic["output_config"]["format"]["schema"]["properties"]["from"], from);
}

/// Models refuse conversations in which they have the last word already, as they have when an agent asks for the form
/// of its answer.
#[tokio::test(start_paused = true)]
async fn the_user_has_the_last_word() {
    let request = || ChatRequest::new([question(), Message::assistant("It is fine.")]);
    let form = || request().output(OutputSchema::new("f", json!({"type": "object", "properties": {}})));
    let anthropic = |request| sent("anthropic/text", request, |url| Anthropic::new("m").base_url(url));
    let said = |words: &str| json!({"role": "user", "content": [{"type": "text", "text": words}]});
    assert_eq!(anthropic(request()).await["messages"][2], said("Go on."));
    assert_eq!(anthropic(form()).await["messages"][2], said("Give that answer in the asked form."));
    let gemini = sent("gemini/text", request(), |url| Gemini::new("m").base_url(url)).await;
    assert_eq!(gemini["contents"][2], json!({"role": "user", "parts": [{"text": "Go on."}]}));
}

/// The last call of an id named the results of all calls of that id.
#[tokio::test(start_paused = true)]
async fn results_of_calls_with_one_id_keep_their_names_at_gemini() {
    let round = |name: &str| {
        let call = ToolCall::new("call_0", name, json!({}));
        [Message::calls("", [call]), Message::tool_result("call_0", "done")]
    };
    let messages = [question()].into_iter().chain(round("first")).chain(round("second"));
    let body = sent("gemini/text", ChatRequest::new(messages), |url| Gemini::new("m").base_url(url)).await;
    let name = |place: usize| body["contents"][place]["parts"][0]["functionResponse"]["name"].clone();
    assert_eq!((name(2), name(4)), (json!("first"), json!("second")));
}
