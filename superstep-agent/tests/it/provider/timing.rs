//! How long is waited, and what happens when nobody waits any more.

use std::time::Duration;

use superstep_agent::{Anthropic, ChatModel, ModelErrorKind, OpenAi};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;

use super::server::{Answer, Server};
use super::{listen, read};

fn model(server: &Server) -> OpenAi {
    OpenAi::new("m").base_url(server.url())
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_takes_too_long_is_given_up() {
    let server = Server::start([Answer::json(200, "{}").silent_at(1)]).await;
    let start = Instant::now();
    let error = model(&server).timeout(Duration::from_secs(30)).generate("hi".into()).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Timeout);
    assert_eq!(error.to_string(), "model `m`: no whole answer within 30s; give it more with `timeout`");
    assert_eq!(start.elapsed().as_secs(), 30);
    server.left().await;
}

/// The time is for all tries together.
#[tokio::test(start_paused = true)]
async fn tries_share_the_time_of_the_answer() {
    let slow = || Answer::json(500, "{}").with_pauses(Duration::from_secs(20));
    let server = Server::start([slow(), slow(), slow()]).await;
    let start = Instant::now();
    let error = model(&server).timeout(Duration::from_secs(30)).generate("hi".into()).await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed().as_secs()), (ModelErrorKind::Timeout, 30));
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_be_long_but_not_silent() {
    let sse = read("openai/text", "answer.sse");
    let slow = Answer::sse(&sse).in_pieces_of(100).with_pauses(Duration::from_secs(4));
    let server = Server::start([slow, Answer::sse(&sse).silent_at(sse.find("puis").unwrap() + 300)]).await;
    let model = model(&server).silence(Duration::from_secs(5));
    let start = Instant::now();
    assert!(listen(model.stream("hi".into()).await.unwrap()).await.0.is_ok());
    assert!(start.elapsed() > Duration::from_mins(1));

    let (message, words) = listen(model.stream("hi".into()).await.unwrap()).await;
    let error = message.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Timeout);
    assert_eq!(error.to_string(), "model `m`: it was silent for 5s; give it more with `silence`");
    assert_eq!(words, "Hello! Où puis");
}

#[tokio::test(start_paused = true)]
async fn silence_before_the_first_words_is_broken_by_another_try() {
    let sse = read("anthropic/text", "answer.sse");
    let silent = Answer::sse(&sse).silent_at(sse.find("Hello").unwrap());
    let server = Server::start([silent, Answer::sse(&sse)]).await;
    let model = Anthropic::new("m").base_url(server.url()).silence(Duration::from_secs(5));
    assert!(listen(model.stream("hi".into()).await.unwrap()).await.0.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_time() {
    let sse = read("openai/text", "answer.sse");
    let slow = Answer::sse(&sse).in_pieces_of(100).with_pauses(Duration::from_secs(4));
    let server = Server::start([slow]).await;
    let start = Instant::now();
    let model = model(&server).timeout(Duration::from_secs(30));
    let (message, _) = listen(model.stream("hi".into()).await.unwrap()).await;
    assert_eq!((message.unwrap_err().kind(), start.elapsed().as_secs()), (ModelErrorKind::Timeout, 30));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_wait_any_more_cancels_the_request() {
    let server = Server::start([Answer::json(200, "{}").silent_at(0)]).await;
    let model = model(&server);
    tokio::select! {
        _ = model.generate("hi".into()) => unreachable!("the server does not answer"),
        () = server.asked() => {}
    }
    server.left().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_cancels_the_request() {
    let sse = read("openai/text", "answer.sse");
    let server = Server::start([Answer::sse(&sse).silent_at(sse.find("puis").unwrap())]).await;
    drop(model(&server).stream("hi".into()).await.unwrap());
    server.left().await;
}

/// A server with a full queue lets others wait.
#[tokio::test(start_paused = true)]
async fn connecting_does_not_take_for_ever() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let _first = TcpStream::connect(address).await.unwrap();
    let model = OpenAi::new("m").base_url(format!("http://{address}")).retries(0);
    let start = Instant::now();
    let error = model.connect_timeout(Duration::from_secs(3)).generate("hi".into()).await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed().as_secs()), (ModelErrorKind::Connection, 3));
    assert_eq!(error.to_string(), "model `m`: cannot be reached in time");
}
