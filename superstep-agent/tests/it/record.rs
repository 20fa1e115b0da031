//! Exchanges that are recorded and played again.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs};

use serde_json::json;
use superstep::{AgentState, EventData, Message, MessageAssembler, Mode, START, StateGraph, ToolCall};
use superstep_agent::{
    ChatModel, ChatModelExt, ChatRequest, ChunkStream, ModelError, ModelErrorKind, RecordingModel, ReplayModel, Reply,
    ScriptedModel,
};

/// A file that is gone when the test is over.
struct Tape(PathBuf);

impl Tape {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(env::temp_dir().join(format!("superstep-tape-{}-{number}.jsonl", std::process::id())))
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

async fn all(mut pieces: ChunkStream) -> (Message, Option<ModelError>) {
    let mut whole = MessageAssembler::new();
    while let Some(piece) = std::future::poll_fn(|cx| pieces.as_mut().poll_next(cx)).await {
        match piece {
            Ok(piece) => whole.push(piece),
            Err(error) => return (whole.finish(), Some(error)),
        }
    }
    (whole.finish(), None)
}

fn script() -> ScriptedModel {
    let call = Message::calls("one moment", [ToolCall::new("c1", "add", json!({"a": 1}))]).with_id("m1");
    let limit = ModelError::new(ModelErrorKind::RateLimited, "scripted", "too many requests");
    ScriptedModel::new([
        Reply::from(call),
        Reply::from(Message::assistant("two words").with_id("m2")),
        Reply::from(limit.status_code(429).retry_after(Duration::from_secs(2))),
        Reply::BreakOff("to be or".into()),
    ])
}

#[tokio::test]
async fn what_was_recorded_is_played_either_way() {
    let tape = Tape::new();
    let model = RecordingModel::new(script(), &tape.0).unwrap();
    let whole = model.generate("one".into()).await.unwrap();
    let (streamed, _) = all(model.stream("two".into()).await.unwrap()).await;
    for (first, second) in [("one", "two"), ("two", "one")] {
        let replay = ReplayModel::open(&tape.0).unwrap();
        assert_eq!((replay.name(), replay.left()), ("scripted", 2));
        let (a, b) =
            (replay.generate(first.into()).await.unwrap(), all(replay.stream(second.into()).await.unwrap()).await.0);
        assert_eq!(if first == "one" { [&a, &b] } else { [&b, &a] }, [&whole, &streamed]);
        assert_eq!(replay.left(), 0);
    }
}

#[test]
fn a_recording_that_cannot_be_read_is_named() {
    let error = ReplayModel::open("there/is/none.jsonl").unwrap_err();
    assert!(error.to_string().starts_with("there/is/none.jsonl: "), "{error}");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[tokio::test]
async fn errors_are_played_too() {
    let tape = Tape::new();
    let model = RecordingModel::new(script(), &tape.0).unwrap();
    let (_, _) = (model.ask("one").await, model.ask("two").await);
    assert!(model.stream("three".into()).await.is_err());
    all(model.stream("four".into()).await.unwrap()).await;
    let replay = ReplayModel::open(&tape.0).unwrap();
    let error = replay.generate("three".into()).await.unwrap_err();
    assert_eq!(error.to_string(), "model `scripted`: too many requests");
    assert_eq!(
        (error.kind(), error.status(), error.pause()),
        (ModelErrorKind::RateLimited, Some(429), Some(Duration::from_secs(2)))
    );
    let (said, error) = all(replay.stream("four".into()).await.unwrap()).await;
    assert_eq!((&*said.text(), error.unwrap().kind()), ("to be or", ModelErrorKind::BrokenStream));
}

#[tokio::test]
async fn another_request_is_an_error_that_shows_the_difference() {
    let tape = Tape::new();
    let model = RecordingModel::new(script(), &tape.0).unwrap();
    let request = ChatRequest::new([Message::system("Be brief."), Message::user("one").with_id("x")]).temperature(0.5);
    model.generate(request.clone()).await.unwrap();
    let replay = ReplayModel::open(&tape.0).unwrap();
    let words = async |request: ChatRequest| {
        let error = replay.generate(request).await.unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::InvalidRequest);
        error.to_string()
    };
    let before = "model `scripted`: the request was not recorded;";
    assert_eq!(
        words(request.clone().temperature(0.7)).await,
        format!("{before} `settings.temperature` was 0.5 and is 0.7")
    );
    let mut longer = request.clone();
    longer.messages.push(Message::user("two"));
    assert_eq!(
        words(longer).await,
        format!(r#"{before} `messages[2]` was missing and is {{"content":"two","type":"user"}}"#)
    );
    let mut other_ids = request.clone();
    other_ids.messages[1].id = Some("y".into());
    assert!(replay.generate(other_ids).await.is_ok(), "ids are made anew each time");
    assert_eq!(words(request).await, format!("{before} the recording is at its end"));
}

#[tokio::test]
async fn a_file_with_something_else_in_it_is_refused() {
    let error = ReplayModel::read("{}\n").unwrap_err();
    assert!(error.to_string().starts_with("line 1 is no recorded exchange: missing field `model`"), "{error}");
}

/// In a streamed graph, the words of a replay are heard piece by piece as those of the model were.
#[tokio::test]
async fn a_replay_is_heard_as_the_model_was() {
    let tape = Tape::new();
    let said = |model: std::sync::Arc<dyn ChatModel>| async move {
        let node = move |state: AgentState| {
            let model = model.clone();
            async move { model.ask(&state.messages).await.map(|answer| vec![answer]) }
        };
        let graph = StateGraph::<AgentState>::new().add_node("model", node).add_edge(START, "model").compile().unwrap();
        let input = AgentState { messages: vec![Message::user("one")] };
        let mut events = graph.stream(input).modes([Mode::Messages]).start();
        let mut heard = Vec::new();
        while let Some(event) = events.next().await {
            if let EventData::Message(piece) = event.unwrap().data {
                heard.push(piece.message.text().into_owned());
            }
        }
        heard
    };
    let recorded = said(std::sync::Arc::new(RecordingModel::new(script(), &tape.0).unwrap())).await;
    let replayed = said(std::sync::Arc::new(ReplayModel::open(&tape.0).unwrap())).await;
    assert_eq!(recorded, replayed);
    assert_eq!(recorded.concat(), "one moment");
}
