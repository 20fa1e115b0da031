//! Messages that are more than text: their normal form, their way through checkpoints, and their pieces.

use serde_json::json;
use superstep::{
    AgentState, Block, Context, Delta, DeltaPart, EchoAgent, Event, EventData, Media, MemorySaver, Message,
    MessageAssembler, MessageChunk, MessageKind, Mode, RichMessage, Role, START, State, StateGraph, ToolCall, Usage,
    current,
};

fn everything() -> Message {
    let call = ToolCall::new("c1", "search", json!({ "q": "tea" }));
    let blocks = vec![
        Block::Reasoning { text: "hm".into(), signature: Some("sig".into()), extra: fields(json!({ "n": 1 })) },
        Block::Text { text: "look:".into(), extra: fields(json!({ "citations": [{ "url": "u" }] })) },
        Block::Image(Media::base64("image/png", "AAAA")),
        Block::Audio(Media::url("https://example.org/a.ogg")),
        Block::File(Media::id("file-1")),
        Block::ToolCall(call),
        Block::Opaque { provider: "acme".into(), value: json!({ "secret": [1, null, "x"] }) },
    ];
    let mut rich = RichMessage::new(Role::Assistant, blocks);
    rich.name = Some("writer".into());
    let mut usage = Usage::new(10, 5);
    usage.cache_read = 3;
    rich.usage = Some(usage);
    rich.response = fields(json!({ "model": "m-1", "finish_reason": "tool_calls" }));
    rich.extra = fields(json!({ "thought_signature": "abc" }));
    Message::from(rich).with_id("m1")
}

fn fields(value: serde_json::Value) -> superstep::JsonMap {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_message_is_as_plain_as_it_can_be_whichever_way_it_was_made() {
    let calls = vec![ToolCall::new("c1", "f", json!({}))];
    let plain = [
        Message::system("be brief"),
        Message::user("hello"),
        Message::assistant("hi"),
        Message::assistant(""),
        Message::calls("one moment", calls.clone()),
        Message::calls("", calls),
        Message::tool_result("c1", "42"),
        Message::tool_result("c1", ""),
    ];
    for message in plain {
        let rich = message.clone().into_rich().unwrap();
        assert_eq!(Message::from(rich), message);
    }
    assert!(matches!(Message::user("a").with_name("Ada").kind, MessageKind::Rich(_)));
    assert!(Message::remove("a").into_rich().is_err());
    assert_eq!(Message::remove_all().with_name("Ada"), Message::remove_all());
}

#[test]
fn what_a_plain_message_cannot_say_is_kept() {
    let failed = Message::tool_result("c1", "no").with_rich(|m| m.answer.as_mut().unwrap().is_error = true);
    assert!(failed.is_error());
    assert_eq!((failed.answers(), &*failed.text(), failed.role()), (Some("c1"), "no", Some(Role::Tool)));
    let drawn = Message::tool_result("c1", "see").with_rich(|m| {
        m.answer.as_mut().unwrap().artifact = Some(json!([1, 2]));
    });
    assert!(matches!(drawn.kind, MessageKind::Rich(_)));
    let two = RichMessage::new(Role::User, vec![Block::text("a"), Block::text("b"), Block::text("c")]);
    assert_eq!(Message::from(two).text(), "abc");
    let call_first = RichMessage::new(
        Role::Assistant,
        vec![Block::ToolCall(ToolCall::new("c1", "f", json!({}))), Block::text("and now?")],
    );
    assert_eq!(*Message::from(call_first.clone()).blocks(), *call_first.blocks);
}

#[tokio::test]
async fn every_part_of_a_message_survives_a_checkpoint() {
    let saver = MemorySaver::new();
    let app = || {
        StateGraph::<AgentState>::new()
            .add_node("echo", EchoAgent)
            .add_edge(START, "echo")
            .checkpointer(saver.clone())
            .compile()
            .unwrap()
    };
    app().invoke(AgentState { messages: vec![everything()] }).thread("t").await.unwrap();
    let state = app().thread("t").state().await.unwrap().state;
    assert_eq!(state.messages[0], everything());
    let json = serde_json::to_value(everything()).unwrap();
    assert_eq!(serde_json::from_value::<Message>(json).unwrap(), everything());
}

#[test]
fn pieces_make_the_message_that_was_said_at_once() {
    let piece = || MessageChunk::new("m1");
    let call = |id: Option<&str>, args: &str| DeltaPart::ToolCall {
        id: id.map(Into::into),
        name: id.map(|_| "search".into()),
        args: args.into(),
    };
    let think =
        |text: &str, sig: Option<&str>| DeltaPart::Reasoning { text: text.into(), signature: sig.map(Into::into) };
    let mut last = piece().with(Delta::new(7, call(None, "}")));
    last.usage = Some(Usage::new(10, 5));
    last.response = fields(json!({ "model": "m-1" }));
    let pieces = [
        // A call before the words: the place decides, not the time.
        piece().with(Delta::new(5, call(Some("c1"), r#"{"q":"#))),
        piece().with(Delta::new(0, think("h", None))),
        piece().with(Delta::new(0, think("m", Some("si")))),
        piece().with(Delta::new(0, think("", Some("g")))),
        piece().with(Delta::text(1, "lo")).with(Delta::text(1, "ok")),
        piece().with(Delta::new(5, call(None, r#""tea"}"#))),
        piece().with(Delta::new(5, DeltaPart::Extra { extra: fields(json!({ "sig": 1 })) })),
        piece().with(Delta::new(6, DeltaPart::Block { value: Block::Image(Media::url("u")) })),
        piece().with(Delta::new(7, call(Some("c2"), r#"{"broken":"#))),
        piece().with(Delta::text(8, "")),
        last,
    ];
    let mut whole = MessageAssembler::new();
    assert!(whole.is_empty());
    pieces.into_iter().for_each(|p| whole.push(p));

    let mut first = ToolCall::new("c1", "search", json!({ "q": "tea" }));
    first.extra = fields(json!({ "sig": 1 }));
    let broken = ToolCall::new("c2", "search", json!(r#"{"broken":}"#));
    let mut rich = RichMessage::new(
        Role::Assistant,
        vec![
            Block::Reasoning { text: "hm".into(), signature: Some("sig".into()), extra: fields(json!({})) },
            Block::text("look"),
            Block::ToolCall(first),
            Block::Image(Media::url("u")),
            Block::ToolCall(broken),
        ],
    );
    rich.usage = Some(Usage::new(10, 5));
    rich.response = fields(json!({ "model": "m-1" }));
    assert_eq!(whole.finish(), Message::from(rich).with_id("m1"));
}

async fn recite(id: &str) -> Message {
    for word in ["to ", "be"] {
        current::emit_chunk(MessageChunk::text(id, word)).await;
    }
    Message::assistant("to be").with_id(id)
}

fn poet() -> superstep::CompiledStateGraph<AgentState> {
    StateGraph::<AgentState>::new()
        .add_node("poet", |_: AgentState| async { vec![recite("m1").await] })
        .add_edge(START, "poet")
        .compile()
        .unwrap()
}

async fn heard<S: State>(mut events: superstep::EventStream<S>) -> Vec<(usize, String, bool)> {
    let mut heard = Vec::new();
    while let Some(event) = events.next().await {
        let Event { namespace, data: EventData::Message(said), .. } = event.unwrap() else { continue };
        heard.push((namespace.len(), format!("{}: {}", said.node, said.message.text()), said.chunk.is_some()));
    }
    heard
}

#[tokio::test]
async fn pieces_said_without_a_context_are_heard_and_the_whole_is_not_said_again() {
    let said = heard(poet().stream(()).mode(Mode::Messages).start()).await;
    assert_eq!(said, [(0, "poet: to ".into(), true), (0, "poet: be".into(), true)]);
}

#[tokio::test]
async fn pieces_are_heard_from_parallel_nodes_and_out_of_graphs_inside() {
    let app = StateGraph::<AgentState>::new()
        .add_node("inner", poet())
        .add_node("other", |_: AgentState| async { vec![recite("m2").await] })
        .add_edge(START, "inner")
        .add_edge(START, "other")
        .compile()
        .unwrap();
    let mut said = heard(app.stream(()).mode(Mode::Messages).subgraphs().start()).await;
    said.sort();
    let pieces = [(0, "other: be"), (0, "other: to "), (1, "poet: be"), (1, "poet: to ")];
    assert_eq!(said, pieces.map(|(depth, text)| (depth, text.to_owned(), true)));
    let outer = heard(app.stream(()).mode(Mode::Messages).start()).await;
    assert!(outer.iter().all(|(depth, ..)| *depth == 0), "{outer:?}");
}

#[tokio::test]
async fn nobody_listens_unless_the_run_is_streamed_for_its_messages() {
    let asks = |_: AgentState| async { vec![Message::assistant(current::wants_messages().to_string())] };
    let app = StateGraph::<AgentState>::new().add_node("n", asks).add_edge(START, "n").compile().unwrap();
    assert!(!current::wants_messages());
    assert_eq!(app.invoke(()).await.unwrap().state.messages[0].text(), "false");
    for (mode, answer) in [(Mode::Values, "false"), (Mode::Messages, "true")] {
        let mut events = app.stream(()).mode(mode).start();
        while events.next().await.is_some() {}
        assert_eq!(events.output().unwrap().state.messages[0].text(), answer, "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_piece_is_a_sign_of_life() {
    let slow = |_: AgentState| async {
        for word in ["a", "b", "c"] {
            tokio::time::sleep(std::time::Duration::from_secs(8)).await;
            current::emit_chunk(MessageChunk::text("m", word)).await;
        }
    };
    let limit = superstep::TimeoutPolicy::idle_only(std::time::Duration::from_secs(10));
    let app = StateGraph::<AgentState>::new()
        .add_node_with("slow", slow, superstep::NodeOptions::new().timeout(limit))
        .add_edge(START, "slow")
        .compile()
        .unwrap();
    app.invoke(()).await.unwrap();
}

#[tokio::test]
async fn pieces_sent_through_a_context_are_heard_too() {
    async fn node(_: AgentState, cx: Context) {
        cx.emit_chunk(MessageChunk::text("m", "hi")).await;
    }
    let app = StateGraph::<AgentState>::new().add_node("n", node).add_edge(START, "n").compile().unwrap();
    assert_eq!(heard(app.stream(()).mode(Mode::Messages).start()).await, [(0, "n: hi".into(), true)]);
}
