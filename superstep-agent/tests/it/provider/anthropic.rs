//! Anthropic's messages.

use serde_json::json;
use superstep::{Block, Media, Message, ToolCall};
use superstep_agent::{Anthropic, ChatModel, ChatRequest, OutputSchema, ToolChoice};

use super::server::{Answer, Server};
use super::{check, question, read, results, weather};

fn model(url: &str) -> Anthropic {
    Anthropic::new("claude-sonnet-4-5").base_url(url).api_key("sk-ant-test").provider("anthropic")
}

#[tokio::test(start_paused = true)]
async fn words_are_the_same_whole_and_streamed() {
    let mut cached = Message::system("Be brief.").into_rich().unwrap();
    let mut mark = superstep::JsonMap::new();
    mark.insert("cache_control".into(), json!({ "type": "ephemeral" }));
    cached.blocks = vec![Block::Text { text: "Be brief.".into(), extra: mark }];
    let request = ChatRequest::new([Message::user("Say hello."), cached.into(), Message::system("Be kind.")]);
    let answer = check("anthropic/text", request.temperature(0.5).max_tokens(100), model).await;
    let usage = answer.usage().unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.cache_write, usage.output), (2134, 2000, 122, 6));
}

#[tokio::test(start_paused = true)]
async fn thoughts_and_calls_go_back_as_they_came() {
    let model = |url: &str| {
        model(url).max_tokens(16_000).setting("thinking", json!({"type": "enabled", "budget_tokens": 10_000}))
    };
    let request = ChatRequest::new([question()]).tools([weather()]).parallel_tool_calls(true);
    let calls = check("anthropic/thinking-tools", request, model).await;
    let turn = [vec![question(), calls.clone()], results(&calls), vec![Message::user("In one line, please.")]].concat();
    check("anthropic/tool-results", ChatRequest::new(turn).tools([weather()]), model).await;
}

/// What server tools leave is understood by the provider alone, and citations belong to their words.
#[tokio::test(start_paused = true)]
async fn what_only_the_provider_understands_goes_back_as_it_came() {
    let search = Message::user("What is new?");
    let found = check("anthropic/server-tools", ChatRequest::new([search.clone()]), model).await;
    check("anthropic/server-tools-next", ChatRequest::new([search, found, Message::user("Thanks.")]), model).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_form_is_held_to_a_schema() {
    let answer = check("anthropic/structured", ChatRequest::new([question()]).output(form()), model).await;
    assert_eq!(answer.text(), r#"{"city":"Paris"}"#);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_form_can_come_by_a_tool() {
    let model = |url: &str| model(url).output_by_tool();
    let request = ChatRequest::new([question()]).output(form());
    let answer = check("anthropic/structured-by-tool", request, model).await;
    assert_eq!((&*answer.text(), answer.tool_calls().count()), (r#"{"city":"Paris"}"#, 0));
}

fn form() -> OutputSchema {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string", "minLength": 1 } } });
    OutputSchema::new("Place", schema)
}

#[tokio::test(start_paused = true)]
async fn pictures_documents_and_foreign_calls_are_sent() {
    let mut report = Media::url("https://example.org/report.pdf");
    report.name = Some("report".into());
    let user = Message::user("What is this?").with_rich(|rich| {
        rich.blocks.extend([
            Block::Image(Media::base64("image/jpeg", "/9j/")),
            Block::Image(Media::id("file_1")),
            Block::File(report),
            Block::text("  "),
        ]);
    });
    let calls =
        Message::calls("", [ToolCall::new("c|1", "camera", json!({})), ToolCall::new("c2", "zoom", json!("in"))]);
    let shot = Message::tool_result("c|1", "done").with_rich(|rich| {
        rich.blocks.push(Block::Image(Media::base64("image/png", "iVBO")));
    });
    let request = ChatRequest::new([user, calls, shot, Message::tool_result("c2", "")]).tools([weather()]);
    check("anthropic/media", request.tool_choice(ToolChoice::Tool("get_weather".into())), model).await;
}

#[tokio::test(start_paused = true)]
async fn what_other_providers_made_for_themselves_is_left_out() {
    let foreign = |exchange: &str| serde_json::from_str::<Message>(&read(exchange, "message.json")).unwrap();
    let messages = ["openai/reasoning", "gemini/parallel-tools", "responses/reasoning"].map(foreign);
    check("anthropic/foreign", ChatRequest::new([vec![question()], messages.to_vec()].concat()), model).await;
}

#[tokio::test(start_paused = true)]
async fn requests_go_to_the_address_with_the_key_and_the_version() {
    let server = Server::start([Answer::json(200, read("anthropic/text", "answer.json"))]).await;
    model(&server.url()).generate("hi".into()).await.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /v1/messages");
    assert_eq!(request.header("x-api-key"), Some("sk-ant-test"));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
}
