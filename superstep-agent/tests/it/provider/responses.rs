//! OpenAI's responses.

use serde_json::json;
use superstep::{Block, Media, Message, ToolCall};
use superstep_agent::{ChatModel, ChatRequest, ModelErrorKind, OpenAiResponses, OutputSchema, ToolChoice};

use super::server::{Answer, Server};
use super::{check, question, read, results, weather};

fn model(url: &str) -> OpenAiResponses {
    OpenAiResponses::new("gpt-5").base_url(url).api_key("sk-test").provider("openai-responses")
}

#[tokio::test(start_paused = true)]
async fn words_are_the_same_whole_and_streamed() {
    let request = ChatRequest::new([Message::system("Be brief."), Message::user("Say hello.")]);
    let hello = check("responses/text", request.temperature(0.5).max_tokens(100), model).await;
    check(
        "responses/text-next",
        ChatRequest::new([Message::user("Say hello."), hello, Message::user("Again.")]),
        model,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn encrypted_thoughts_go_back_with_the_calls() {
    let model = |url: &str| model(url).setting("reasoning", json!({"summary": "auto"}));
    let request = ChatRequest::new([question()]).tools([weather()]).tool_choice(ToolChoice::Required);
    let calls = check("responses/reasoning", request.parallel_tool_calls(true), model).await;
    let turn = [vec![question(), calls.clone()], results(&calls)].concat();
    check("responses/tool-results", ChatRequest::new(turn).tools([weather()]), model).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_form_is_held_to_a_strict_schema() {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let request = ChatRequest::new([question()]).output(OutputSchema::new("Place<City>", schema));
    assert_eq!(check("responses/structured", request, model).await.text(), r#"{"city":"Paris"}"#);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_form_can_come_by_a_tool() {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let request = ChatRequest::new([question()]).output(OutputSchema::new("Place", schema));
    let answer = check("responses/structured-by-tool", request, |url| model(url).output_by_tool()).await;
    assert_eq!((&*answer.text(), answer.tool_calls().count()), (r#"{"city":"Paris"}"#, 0));
}

#[tokio::test(start_paused = true)]
async fn pictures_and_documents_are_sent() {
    let mut report = Media::base64("application/pdf", "JVBERi0=");
    report.name = Some("report.pdf".into());
    let user = Message::user("What is this?").with_rich(|rich| {
        rich.blocks.extend([
            Block::Image(Media::base64("image/jpeg", "/9j/")),
            Block::Image(Media::id("file-1")),
            Block::File(report),
            Block::File(Media::url("https://example.org/a.pdf")),
        ]);
    });
    let call = Message::calls("", [ToolCall::new("c1", "camera", json!({}))]);
    let shot = Message::tool_result("c1", "done").with_rich(|rich| {
        rich.blocks.push(Block::Image(Media::base64("image/png", "iVBO")));
    });
    check("responses/media", ChatRequest::new([user, call, shot]), model).await;
}

#[tokio::test(start_paused = true)]
async fn what_other_providers_made_for_themselves_is_left_out() {
    let foreign = |exchange: &str| serde_json::from_str::<Message>(&read(exchange, "message.json")).unwrap();
    let messages = ["openai/reasoning", "anthropic/thinking-tools", "gemini/parallel-tools"].map(foreign);
    check("responses/foreign", ChatRequest::new([vec![question()], messages.to_vec()].concat()), model).await;
}

#[tokio::test(start_paused = true)]
async fn requests_go_to_the_address_with_the_key() {
    let server = Server::start([Answer::json(200, read("responses/text", "answer.json"))]).await;
    model(&server.url()).generate("hi".into()).await.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /responses");
    assert_eq!(request.header("authorization"), Some("Bearer sk-test"));
}

#[tokio::test]
async fn stop_words_cannot_be_asked_for() {
    let error = model("http://127.0.0.1:1").stop(["END"]).generate("hi".into()).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::InvalidRequest);
}
