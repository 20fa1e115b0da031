//! Chat completions.

use serde_json::json;
use superstep::{Block, Media, Message, ToolCall};
use superstep_agent::{ChatModel, ChatRequest, OpenAi, OutputSchema, ToolChoice};

use super::server::{Answer, Server};
use super::{check, listen, question, read, results, weather};

fn model(url: &str) -> OpenAi {
    OpenAi::new("gpt-5").base_url(url).api_key("sk-test").provider("openai")
}

#[tokio::test(start_paused = true)]
async fn words_are_the_same_whole_and_streamed() {
    let request = ChatRequest::new([Message::system("Be brief."), Message::user("Say hello.").with_name("ada")]);
    let answer = check("openai/text", request.temperature(0.5).max_tokens(100), model).await;
    assert_eq!(answer.id.as_deref(), Some("chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT"));
}

#[tokio::test(start_paused = true)]
async fn tools_are_called_in_parallel_and_their_results_told() {
    let request = ChatRequest::new([question()]).tools([weather()]).tool_choice(ToolChoice::Required);
    let calls = check("openai/parallel-tools", request.parallel_tool_calls(true), model).await;
    assert_eq!(calls.tool_calls().count(), 2);
    let turn = [vec![question(), calls.clone()], results(&calls)].concat();
    check("openai/tool-results", ChatRequest::new(turn).tools([weather()]), model).await;
}

/// DeepSeek, Zhipu and others: thoughts go back in the turn that they belong to, in the field that they came in.
#[tokio::test(start_paused = true)]
async fn thoughts_are_given_back_in_their_turn_only() {
    let model = |url: &str| OpenAi::new("deepseek-reasoner").base_url(url).provider("deepseek");
    let thinking = check("openai/reasoning", ChatRequest::new([question()]).tools([weather()]), model).await;
    let turn = [vec![question(), thinking.clone()], results(&thinking)].concat();
    let answer = check("openai/reasoning-results", ChatRequest::new(turn.clone()).tools([weather()]), model).await;
    let next = [turn, vec![answer, Message::user("Thanks.")]].concat();
    check("openai/reasoning-next-turn", ChatRequest::new(next), model).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_form_is_held_to_a_strict_schema() {
    let answer = check("openai/structured", ChatRequest::new([question()]).output(form()), model).await;
    assert_eq!(answer.text(), r#"{"city":"Paris","celsius":18.5}"#);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_form_can_come_by_a_tool() {
    let model = |url: &str| model(url).output_by_tool();
    let answer = check("openai/structured-by-tool", ChatRequest::new([question()]).output(form()), model).await;
    assert_eq!((&*answer.text(), answer.tool_calls().count()), (r#"{"celsius":18.5,"city":"Paris"}"#, 0));
}

fn form() -> OutputSchema {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weather",
        "type": "object",
        "properties": { "city": { "type": "string" }, "celsius": { "type": ["number", "null"], "format": "double" } },
        "required": ["city"],
    });
    OutputSchema::new("Weather", schema)
}

#[tokio::test(start_paused = true)]
async fn pictures_sound_and_documents_are_sent() {
    let mut low = Media::url("https://example.org/a.png");
    low.extra.insert("detail".into(), json!("low"));
    let mut report = Media::base64("application/pdf", "JVBERi0=");
    report.name = Some("report.pdf".into());
    let user = Message::user("What is this?").with_rich(|rich| {
        rich.blocks.extend([
            Block::Image(low),
            Block::Image(Media::base64("image/jpeg", "/9j/")),
            Block::Audio(Media::base64("audio/mpeg", "SUQz")),
            Block::File(report),
            Block::File(Media::id("file-1")),
        ]);
    });
    let call = Message::calls("", [ToolCall::new("c1", "camera", json!({}))]);
    let shot = Message::tool_result("c1", "").with_rich(|rich| {
        rich.blocks.push(Block::Image(Media::base64("image/png", "iVBO")));
    });
    check("openai/media", ChatRequest::new([user, call, shot]), model).await;
}

/// Asked in turn, one provider's thoughts and marks are not shown to another.
#[tokio::test(start_paused = true)]
async fn what_other_providers_made_for_themselves_is_left_out() {
    let foreign = |exchange: &str| serde_json::from_str::<Message>(&read(exchange, "message.json")).unwrap();
    let messages = ["anthropic/thinking-tools", "gemini/parallel-tools", "responses/reasoning"].map(foreign);
    check("openai/foreign", ChatRequest::new([vec![question()], messages.to_vec()].concat()), model).await;
}

#[tokio::test(start_paused = true)]
async fn settings_of_the_request_win_over_those_of_the_model() {
    let model = |url: &str| {
        let model = model(url).temperature(1.0).top_p(0.9).max_tokens(10).stop(["END"]);
        model.setting("seed", 7).setting("metadata", json!({"a": 1})).setting("metadata", json!({"b": 2}))
    };
    let mut request = ChatRequest::new([Message::user("Say hello.")]).temperature(0.0);
    request.settings.extra.insert("metadata".into(), json!({"b": 3}));
    check("openai/settings", request, model).await;
}

#[tokio::test(start_paused = true)]
async fn requests_go_to_the_address_with_the_key_and_the_headers() {
    let server = Server::start([Answer::json(200, read("openai/text", "answer.json"))]).await;
    let model = model(&format!("{}/v1/", server.url())).header("x-team", "seven");
    model.generate("hi".into()).await.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /v1/chat/completions");
    assert_eq!(request.header("authorization"), Some("Bearer sk-test"));
    assert_eq!((request.header("x-team"), request.header("content-type")), (Some("seven"), Some("application/json")));
}

/// Some servers give all calls the number 0, some none, some do not stream, and Ollama's ids come again.
#[tokio::test(start_paused = true)]
async fn careless_servers_are_understood() {
    let message = check("openai/careless", ChatRequest::new([question()]).tools([weather()]), model).await;
    assert_eq!(message.tool_calls().map(|call| &*call.id).collect::<Vec<_>>(), ["call_a", "call_b"]);
    let server = Server::start([Answer::json(200, read("openai/text", "answer.json"))]).await;
    let (message, words) = listen(model(&server.url()).stream("hi".into()).await.unwrap()).await;
    assert_eq!(
        (message.unwrap().text().into_owned(), words),
        ("Hello! Où puis-je aider? 🦀".into(), "Hello! Où puis-je aider? 🦀".into())
    );
    let short = read("openai/text", "answer.json").replace("chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "chatcmpl-7");
    let server = Server::start([Answer::json(200, &*short), Answer::json(200, &*short)]).await;
    let model = model(&server.url());
    let (one, two) = (model.generate("hi".into()).await.unwrap(), model.generate("hi".into()).await.unwrap());
    assert_ne!(one.id, two.id, "one answer must not replace the other");
}
