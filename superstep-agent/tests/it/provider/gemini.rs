//! Gemini.

use serde_json::json;
use superstep::{Block, Media, Message};
use superstep_agent::{ChatModel, ChatRequest, Gemini, ModelErrorKind, OutputSchema, ToolChoice};

use super::server::{Answer, Server};
use super::{check, question, read, results, weather};

fn model(url: &str) -> Gemini {
    Gemini::new("gemini-2.5-flash").base_url(url).api_key("AIza-test").provider("gemini")
}

#[tokio::test(start_paused = true)]
async fn words_are_the_same_whole_and_streamed() {
    let request = ChatRequest::new([Message::system("Be brief."), Message::user("Say hello.")]);
    let model = |url: &str| model(url).top_p(0.5).stop(["END"]);
    let hello = check("gemini/text", request.temperature(0.5).max_tokens(100), model).await;
    assert_eq!(hello.blocks().len(), 1, "a signature belongs to the words before it");
    check("gemini/text-next", ChatRequest::new([Message::user("Say hello."), hello, Message::user("Again.")]), model)
        .await;
}

#[tokio::test(start_paused = true)]
async fn calls_without_ids_get_some_and_signatures_stay_with_their_parts() {
    let model =
        |url: &str| model(url).setting("generationConfig", json!({"thinkingConfig": {"includeThoughts": true}}));
    let request = ChatRequest::new([question()]).tools([weather()]).tool_choice(ToolChoice::Required);
    let calls = check("gemini/parallel-tools", request, model).await;
    let ids: Vec<_> = calls.tool_calls().map(|call| &*call.id).collect();
    assert_eq!(ids, ["mQ3xaJ7kEZ6dvdIP-0", "fc-given"]);
    let turn = [vec![question(), calls.clone()], results(&calls)].concat();
    check("gemini/tool-results", ChatRequest::new(turn).tools([weather()]), model).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_form_is_held_to_a_schema() {
    let schema = json!({ "type": "object", "properties": { "celsius": { "type": "number", "format": "double" } } });
    let request = ChatRequest::new([question()]).output(OutputSchema::new("Weather", schema));
    assert_eq!(check("gemini/structured", request, model).await.text(), r#"{"celsius": 18.5}"#);
}

/// Beside other tools, Gemini cannot be held to a schema.
#[tokio::test(start_paused = true)]
async fn an_answer_in_a_form_can_come_by_a_tool() {
    let schema = json!({ "type": "object", "properties": { "celsius": { "type": "number", "format": "double" } } });
    let output = OutputSchema::new("Weather<City>", schema);
    let request = ChatRequest::new([question()]).tools([weather()]).output(output);
    let answer = check("gemini/structured-by-tool", request, |url| model(url).output_by_tool()).await;
    assert_eq!((&*answer.text(), answer.tool_calls().count()), (r#"{"celsius":18.5}"#, 0));
}

#[tokio::test(start_paused = true)]
async fn media_go_out_and_pictures_and_code_come_back() {
    let mut clip = Media::url("https://example.org/clip.mp3");
    clip.mime = Some("audio/mpeg".into());
    let user = Message::user("Paint this.").with_rich(|rich| {
        rich.blocks.extend([
            Block::Image(Media::base64("image/jpeg", "/9j/")),
            Block::Audio(clip),
            Block::File(Media::id("files/1")),
        ]);
    });
    let painted = check("gemini/media", ChatRequest::new([user.clone()]), model).await;
    check("gemini/media-next", ChatRequest::new([user, painted, Message::user("Thanks.")]), model).await;
}

#[tokio::test(start_paused = true)]
async fn what_other_providers_made_for_themselves_is_left_out() {
    let foreign = |exchange: &str| serde_json::from_str::<Message>(&read(exchange, "message.json")).unwrap();
    let messages = ["openai/reasoning", "anthropic/thinking-tools", "responses/reasoning"].map(foreign);
    check("gemini/foreign", ChatRequest::new([vec![question()], messages.to_vec()].concat()), model).await;
}

#[tokio::test(start_paused = true)]
async fn requests_go_to_the_address_of_the_model_with_the_key() {
    let text = read("gemini/text", "answer.sse");
    let server = Server::start([Answer::json(200, read("gemini/text", "answer.json")), Answer::sse(&text)]).await;
    let model = model(&server.url());
    model.generate("hi".into()).await.unwrap();
    drop(model.stream("hi".into()).await.unwrap());
    let requests = server.requests();
    assert_eq!(requests[0].line, "POST /models/gemini-2.5-flash:generateContent");
    assert_eq!(requests[1].line, "POST /models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    assert_eq!(requests[0].header("x-goog-api-key"), Some("AIza-test"));
}

#[tokio::test]
async fn one_call_at_a_time_cannot_be_asked_for() {
    let request = ChatRequest::new([question()]).tools([weather()]).parallel_tool_calls(false);
    let error = model("http://127.0.0.1:1").generate(request).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::InvalidRequest);
}
