//! Streams that break off, and answers that are errors in the middle.

use superstep::Message;
use superstep_agent::{Anthropic, ChatModel, ChatRequest, Gemini, ModelErrorKind, OpenAi, OpenAiResponses};

use super::server::{Answer, Server};
use super::{listen, read};

/// Cuts the connection after every byte: what was heard is a beginning of the whole, and never taken for it.
async fn breaks_off_anywhere<M: ChatModel>(exchange: &str, model: impl Fn(&str) -> M) {
    let sse = read(exchange, "answer.sse");
    let cuts: Vec<usize> = (0..sse.len()).collect();
    let server = Server::start(cuts.iter().map(|cut| Answer::sse(&sse).cut_at(*cut))).await;
    let model = model(&server.url());
    let whole: Message = serde_json::from_str(&read(exchange, "message.json")).unwrap();
    for cut in cuts {
        let (error, words) = match model.stream(ChatRequest::from("hi")).await {
            Ok(pieces) => match listen(pieces).await {
                (Err(error), words) => (error, words),
                (Ok(message), _) => {
                    assert_eq!(message, whole, "cut at {cut}");
                    continue;
                }
            },
            Err(error) => (error, String::new()),
        };
        assert_eq!(error.kind(), ModelErrorKind::BrokenStream, "cut at {cut}: {error}");
        assert!(whole.text().starts_with(&words), "cut at {cut}: {words}");
    }
}

#[tokio::test]
async fn a_completion_that_breaks_off_is_an_error() {
    breaks_off_anywhere("openai/text", |url| OpenAi::new("m").base_url(url).retries(0).provider("openai")).await;
}

#[tokio::test]
async fn a_response_that_breaks_off_is_an_error() {
    let model = |url: &str| OpenAiResponses::new("m").base_url(url).retries(0).provider("openai-responses");
    breaks_off_anywhere("responses/text-next", model).await;
}

#[tokio::test]
async fn a_message_that_breaks_off_is_an_error() {
    breaks_off_anywhere("anthropic/text", |url| Anthropic::new("m").base_url(url).retries(0).provider("anthropic"))
        .await;
}

#[tokio::test]
async fn content_that_breaks_off_is_an_error() {
    breaks_off_anywhere("gemini/text", |url| Gemini::new("m").base_url(url).retries(0).provider("gemini")).await;
}

/// Before the first words, a stream that breaks off is begun anew, and nobody notices.
#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_before_its_first_words_is_begun_anew() {
    let sse = read("anthropic/text", "answer.sse");
    let first_words = sse.find("Hello").unwrap();
    let server = Server::start([Answer::sse(&sse).cut_at(first_words), Answer::sse(&sse)]).await;
    let model = Anthropic::new("m").base_url(server.url()).provider("anthropic");
    let (message, words) = listen(model.stream("hi".into()).await.unwrap()).await;
    assert_eq!(
        serde_json::to_value(message.unwrap()).unwrap(),
        serde_json::from_str::<serde_json::Value>(&read("anthropic/text", "message.json")).unwrap()
    );
    assert_eq!((words.as_str(), server.requests().len()), ("Hello! Où puis-je aider? 🦀", 2));
}

/// After them it is not: they cannot be taken back.
#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_after_its_first_words_fails() {
    let sse = read("anthropic/text", "answer.sse");
    let later = sse.find("aider").unwrap();
    let server = Server::start([Answer::sse(&sse).cut_at(later), Answer::sse(&sse)]).await;
    let model = Anthropic::new("m").base_url(server.url());
    let (message, words) = listen(model.stream("hi".into()).await.unwrap()).await;
    assert_eq!(message.unwrap_err().kind(), ModelErrorKind::BrokenStream);
    assert_eq!((words.as_str(), server.requests().len()), ("Hello! Où puis", 1));
}

#[tokio::test(start_paused = true)]
async fn an_error_in_the_middle_of_a_stream_is_told() {
    let whole = read("anthropic/text", "answer.sse");
    let start = &whole[..whole.find("event: content_block_stop").unwrap()];
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let server = Server::start([Answer::sse(&format!("{start}event: error\ndata: {error}\n\n"))]).await;
    let model = Anthropic::new("m").base_url(server.url());
    let (message, words) = listen(model.stream("hi".into()).await.unwrap()).await;
    let error = message.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Overloaded);
    assert_eq!(error.to_string(), "model `m`: the provider is overloaded or fails: Overloaded");
    assert_eq!(words, "Hello! Où puis-je aider? 🦀");
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_something_else_is_not_understood() {
    let server = Server::start([Answer::sse("data: <html>\n\n")]).await;
    let error = OpenAi::new("m").base_url(server.url()).stream("hi".into()).await.err().unwrap();
    assert_eq!(error.kind(), ModelErrorKind::Unexpected);
    let server = Server::start([Answer::json(200, "<html>")]).await;
    let error = OpenAi::new("m").base_url(server.url()).generate("hi".into()).await.unwrap_err();
    assert_eq!(error.to_string(), "model `m`: its answer is no JSON: `<html>`");
}
