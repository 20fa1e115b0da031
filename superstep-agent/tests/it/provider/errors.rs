//! Errors that providers answer with, refusals, and what is tried again.

use std::time::Duration;

use serde_json::json;
use superstep_agent::middleware::RetryModel;
use superstep_agent::{
    Anthropic, ChatModel, Gemini, ModelError, ModelErrorKind, OpenAi, OpenAiResponses, chat_model, create_react_agent,
};
use tokio::time::Instant;

use super::listen;
use super::server::{Answer, Server};
use crate::provider::read;

fn hello() -> Answer {
    Answer::json(200, read("openai/text", "answer.json"))
}

fn complaint(status: u16, code: &str) -> Answer {
    let body = json!({ "error": { "message": "no", "type": "error", "param": null, "code": code } });
    Answer::json(status, body.to_string())
}

#[tokio::test(start_paused = true)]
async fn what_will_not_pass_is_told_at_once() {
    use ModelErrorKind::{Auth, ContextTooLong, InvalidRequest, NotFound, RateLimited, Refused};
    for (status, code, kind) in [
        (401, "invalid_api_key", Auth),
        (403, "", Auth),
        (404, "model_not_found", NotFound),
        (400, "context_length_exceeded", ContextTooLong),
        (400, "content_policy_violation", Refused),
        (422, "", InvalidRequest),
        (429, "insufficient_quota", RateLimited),
    ] {
        let server = Server::start([complaint(status, code), hello()]).await;
        let error = OpenAi::new("m").base_url(server.url()).generate("hi".into()).await.unwrap_err();
        assert_eq!((error.kind(), error.status(), server.requests().len()), (kind, Some(status), 1), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_again_after_a_growing_pause() {
    for status in [408, 409, 429, 500, 502, 503, 529] {
        let server = Server::start([complaint(status, ""), complaint(status, ""), hello()]).await;
        let model = OpenAi::new("m").base_url(server.url());
        assert!(model.generate("hi".into()).await.is_ok(), "{status}");
        let at: Vec<Instant> = server.requests().iter().map(|request| request.at).collect();
        let pauses = [at[1] - at[0], at[2] - at[1]];
        assert!(pauses[0] >= Duration::from_millis(375) && pauses[0] <= Duration::from_millis(510), "{pauses:?}");
        assert!(pauses[1] >= Duration::from_millis(750) && pauses[1] <= Duration::from_millis(1010), "{pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn tries_are_limited() {
    let server = Server::start([complaint(500, ""), complaint(500, ""), hello()]).await;
    let error = OpenAi::new("m").base_url(server.url()).retries(1).generate("hi".into()).await.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ModelErrorKind::Overloaded, 2));
    assert_eq!(error.to_string(), "model `m`: the provider is overloaded or fails (status 500): no");
}

#[tokio::test(start_paused = true)]
async fn the_pause_that_the_provider_asks_for_is_kept() {
    for (header, value, least) in [
        ("retry-after", "7", 7000),
        ("retry-after-ms", "1500", 1500),
        ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", 0),
    ] {
        let server = Server::start([complaint(429, "").header(header, value), hello()]).await;
        OpenAi::new("m").base_url(server.url()).generate("hi".into()).await.unwrap();
        let requests = server.requests();
        let pause = requests[1].at - requests[0].at;
        assert!((least..least + 50).contains(&pause.as_millis()), "{value}: {pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_pause_is_left_to_the_program() {
    let server = Server::start([complaint(429, "").header("retry-after", "3600"), hello()]).await;
    let error = OpenAi::new("m").base_url(server.url()).generate("hi".into()).await.unwrap_err();
    assert_eq!((error.pause(), server.requests().len()), (Some(Duration::from_hours(1)), 1));
    let year_2999 = complaint(429, "").header("retry-after", "Tue, 01 Jan 2999 00:00:00 GMT");
    let server = Server::start([year_2999, hello()]).await;
    let error = OpenAi::new("m").base_url(server.url()).generate("hi".into()).await.unwrap_err();
    assert!(error.pause() > Some(Duration::from_hours(24 * 365)));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_cannot_be_reached_is_a_connection_error() {
    let server = Server::start([]).await;
    tokio::task::yield_now().await;
    let error = OpenAi::new("m").base_url(server.url()).retries(1).generate("hi".into()).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Connection);
}

/// A redirect would take the key to another host.
#[tokio::test(start_paused = true)]
async fn redirects_are_not_followed() {
    let server = Server::start([Answer::json(308, "").header("location", "http://example.org/v1"), hello()]).await;
    let error = OpenAi::new("m").base_url(server.url()).generate("hi".into()).await.unwrap_err();
    assert_eq!(error.to_string(), "model `m`: it was moved to `http://example.org/v1`: set the `base_url` accordingly");
}

/// A refusal is the same error whole and streamed.
async fn refuses<M: ChatModel>(
    whole: serde_json::Value,
    events: &[serde_json::Value],
    model: impl Fn(&str) -> M,
) -> ModelError {
    let sse = events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
    let server = Server::start([Answer::json(200, whole.to_string()), Answer::sse(&sse)]).await;
    let model = model(&server.url());
    let error = model.generate("hi".into()).await.unwrap_err();
    let streamed = match model.stream("hi".into()).await {
        Ok(pieces) => listen(pieces).await.0.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ModelErrorKind::Refused);
    assert_eq!((streamed.kind(), streamed.to_string()), (error.kind(), error.to_string()));
    assert_eq!(server.requests().len(), 2, "a refusal is not asked for twice");
    error
}

#[tokio::test(start_paused = true)]
async fn refusals_are_errors_of_their_own_kind() {
    let openai = |url: &str| OpenAi::new("m").base_url(url);
    let choice = |message: &str, value: serde_json::Value, reason: &str| json!({ "choices": [{ "index": 0, message: value, "finish_reason": reason }] });
    let no = json!({ "content": null, "refusal": "I cannot." });
    let error = refuses(choice("message", no.clone(), "stop"), &[choice("delta", no, "stop")], openai).await;
    assert_eq!(error.to_string(), "model `m`: it refuses: I cannot.");
    let cut = json!({ "content": "We" });
    refuses(choice("message", cut.clone(), "content_filter"), &[choice("delta", cut, "content_filter")], openai).await;

    let item = json!({ "type": "message", "id": "m", "content": [{ "type": "refusal", "refusal": "No." }] });
    let done = json!({ "type": "response.output_item.done", "output_index": 0, "item": item });
    let response = json!({ "id": "r", "status": "completed", "output": [item] });
    let events = [done, json!({ "type": "response.completed", "response": response })];
    refuses(response, &events, |url| OpenAiResponses::new("m").base_url(url)).await;

    let start = json!({ "type": "message_start", "message": { "id": "m", "content": [] } });
    let stop = json!({ "type": "message_delta", "delta": { "stop_reason": "refusal" } });
    let whole = json!({ "id": "m", "type": "message", "content": [], "stop_reason": "refusal" });
    let events = [start, stop, json!({ "type": "message_stop" })];
    refuses(whole, &events, |url| Anthropic::new("m").base_url(url)).await;

    let gemini = |url: &str| Gemini::new("m").base_url(url);
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
    refuses(blocked.clone(), &[blocked], gemini).await;
    let held = json!({ "candidates": [{ "content": { "parts": [{ "text": "We" }] }, "finishReason": "RECITATION" }] });
    refuses(held.clone(), &[held], gemini).await;
}

#[test]
fn models_by_name_say_what_is_missing() {
    let words = |name: &str| chat_model(name).err().unwrap().to_string();
    assert_eq!(words("gpt-5"), "model `gpt-5`: say whose model it is, like `openai:gpt-5`");
    assert_eq!(chat_model("ollama:qwen3:8b").unwrap().name(), "qwen3:8b");
}

/// The provider is not asked again inside the model, but it was by the middleware around it.
#[tokio::test(start_paused = true)]
async fn what_no_other_try_mends_is_not_tried_again_by_anybody() {
    let quota = r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    for (status, body) in [(429, quota), (402, r#"{"error":{"message":"pay first"}}"#)] {
        let server = Server::start([Answer::json(status, body), Answer::json(status, body)]).await;
        let model = OpenAi::new("m").base_url(server.url());
        let agent = create_react_agent(model, ()).middleware(RetryModel::new()).compile().unwrap();
        let error = agent.invoke("hi").await.unwrap_err();
        let error = error.downcast_ref::<ModelError>().unwrap();
        assert_eq!((error.kind(), error.is_retryable()), (ModelErrorKind::RateLimited, false));
        assert_eq!(server.requests().len(), 1, "status {status}");
    }
}
