//! Models of providers, held against recorded exchanges that a server of the tests' own plays.
//!
//! An exchange is a folder: `request.json` is what must be sent, `answer.json` and `answer.sse` are what the provider
//! answers at once and in pieces, and `message.json` is what both must come to. `UPDATE_EXPECT=1` rewrites the first
//! and the last.

mod anthropic;
mod errors;
mod gemini;
mod graph;
mod openai;
mod requests;
mod responses;
mod secrets;
pub(crate) mod server;
mod streams;
mod timing;

use std::path::PathBuf;
use std::{env, fs};

use serde_json::{Value, json};
use superstep::{Message, MessageAssembler};
use superstep_agent::{ChatModel, ChatRequest, ChunkStream, ModelError, ToolSpec};

use server::{Answer, Server};

/// Asks a model in all ways, and holds what was sent and what came against the files of the exchange.
async fn check<M: ChatModel>(exchange: &str, request: ChatRequest, model: impl Fn(&str) -> M) -> Message {
    let sse = read(exchange, "answer.sse");
    let answers =
        [Answer::json(200, read(exchange, "answer.json")), Answer::sse(&sse), Answer::sse(&sse).in_pieces_of(1)];
    let server = Server::start(answers).await;
    let model = model(&server.url());

    let whole = model.generate(request.clone()).await.unwrap();
    expect(exchange, "message.json", &serde_json::to_value(&whole).unwrap());
    expect(exchange, "request.json", &server.requests()[0].json());
    for _ in 0..2 {
        let (streamed, words) = listen(model.stream(request.clone()).await.unwrap()).await;
        assert_eq!(streamed.unwrap(), whole, "{exchange}: streamed");
        assert_eq!(words, whole.text(), "{exchange}: no word is lost or said twice");
    }
    let sent = server.requests();
    assert_eq!(without_stream(sent[1].json()), sent[0].json());
    assert_eq!(sent[1].json(), sent[2].json());
    whole
}

/// The message that a stream makes, or its error, and the words that were heard.
async fn listen(mut pieces: ChunkStream) -> (Result<Message, ModelError>, String) {
    let (mut whole, mut words) = (MessageAssembler::new(), String::new());
    while let Some(piece) = next(&mut pieces).await {
        match piece {
            Ok(piece) => {
                words += &piece.words();
                whole.push(piece);
            }
            Err(error) => {
                assert!(next(&mut pieces).await.is_none(), "nothing comes after an error");
                return (Err(error), words);
            }
        }
    }
    (Ok(whole.finish()), words)
}

async fn next(pieces: &mut ChunkStream) -> Option<Result<superstep::MessageChunk, ModelError>> {
    std::future::poll_fn(|cx| pieces.as_mut().poll_next(cx)).await
}

fn without_stream(mut body: Value) -> Value {
    let fields = body.as_object_mut().unwrap();
    fields.remove("stream");
    fields.remove("stream_options");
    body
}

fn path(exchange: &str, file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges").join(exchange).join(file)
}

fn read(exchange: &str, file: &str) -> String {
    let path = path(exchange, file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn expect(exchange: &str, file: &str, is: &Value) {
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path(exchange, file), serde_json::to_string_pretty(is).unwrap() + "\n").unwrap();
    }
    let expected: Value = serde_json::from_str(&read(exchange, file)).unwrap();
    assert_eq!(*is, expected, "{exchange}/{file}: is\n{is:#}");
}

fn weather() -> ToolSpec {
    ToolSpec::new("get_weather", "How the weather is.").parameters(json!({
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"],
    }))
}

fn question() -> Message {
    Message::user("How is the weather in Paris and Oslo?")
}

/// The results of two calls, of which one failed.
fn results(answer: &Message) -> Vec<Message> {
    let calls: Vec<_> = answer.tool_calls().map(|call| call.id.clone()).collect();
    let failed = Message::tool_result(&*calls[1], "the station does not answer")
        .with_rich(|rich| rich.answer.as_mut().unwrap().is_error = true);
    vec![Message::tool_result(&*calls[0], "18 degrees, sunny"), failed]
}
