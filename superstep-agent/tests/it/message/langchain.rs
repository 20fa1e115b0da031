//! LangChain's JSON.

use serde_json::{Value, json};
use superstep::{Block, Media, Message, ToolCall};
use superstep_agent::message::{from_langchain, to_langchain};

use super::rich_answer;

#[track_caller]
fn reads(value: Value, expected: Message) {
    assert_eq!(from_langchain(&[value]).unwrap(), [expected]);
}

#[test]
fn what_is_written_is_read_back() {
    let failed = Message::tool_result("c1", "no").with_rich(|rich| {
        let answer = rich.answer.as_mut().unwrap();
        (answer.is_error, answer.artifact) = (true, Some(json!({"rows": [1]})));
    });
    let messages = [
        Message::system("Be brief.").with_id("s"),
        Message::user("hi").with_name("ada"),
        Message::user("what is this?").with_rich(|rich| {
            rich.blocks.push(Block::Image(Media::url("https://example.org/a.png")));
            rich.blocks.push(Block::Audio(Media::base64("audio/wav", "UklG")));
            rich.blocks.push(Block::File(Media::id("file-1")));
        }),
        Message::calls(
            "one moment",
            [ToolCall::new("c1", "add", json!({"a": 1})), ToolCall::new("c2", "add", json!("{oops"))],
        ),
        failed,
        Message::tool_result("c2", "2"),
        rich_answer(),
        Message::remove("m1"),
        Message::remove_all(),
    ];
    assert_eq!(from_langchain(&to_langchain(&messages)).unwrap(), messages);
}

#[test]
fn an_answer_is_written_as_langchain_has_it() {
    let written = to_langchain(&[rich_answer()]).remove(0);
    assert_eq!((&written["type"], &written["id"], &written["name"]), (&json!("ai"), &json!("m1"), &json!("writer")));
    assert_eq!(
        written["tool_calls"],
        json!([{"name": "search", "args": {"q": "tea"}, "id": "c1", "type": "tool_call"}])
    );
    assert_eq!(
        written["usage_metadata"],
        json!({
            "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
            "input_token_details": {"cache_read": 3, "cache_creation": 2},
            "output_token_details": {"reasoning": 4},
        })
    );
    assert_eq!(
        written["response_metadata"],
        json!({"model_provider": "anthropic", "model_name": "claude", "finish_reason": "tool_use"})
    );
    assert_eq!(written["additional_kwargs"], json!({"audio": {"id": "a"}}));
    assert_eq!(
        written["content"][0],
        json!({"type": "reasoning", "reasoning": "hm", "extras": {"id": "rs_1", "signature": "s=="}})
    );
}

#[test]
fn all_forms_of_a_message_are_read() {
    let call = || Message::calls("", [ToolCall::new("c1", "add", json!({"a": 1}))]);
    let tool_calls = json!([{"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}]);
    reads(json!({"type": "ai", "content": "", "tool_calls": tool_calls, "invalid_tool_calls": []}), call());
    reads(json!({"type": "ai", "data": {"content": "", "tool_calls": tool_calls, "type": "ai"}}), call());
    reads(json!({"role": "user", "content": "hi"}), Message::user("hi"));
    reads(
        json!({"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "AIMessage"],
               "kwargs": {"content": "", "tool_calls": tool_calls, "id": "m"}}),
        call().with_id("m"),
    );
    let raw = json!([{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}}]);
    reads(json!({"type": "ai", "content": "", "additional_kwargs": {"tool_calls": raw}}), call());
    reads(json!({"type": "AIMessageChunk", "content": "", "tool_calls": tool_calls}), call());
    let tool_use = json!([{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}]);
    reads(json!({"type": "ai", "content": tool_use, "tool_calls": tool_calls}), call());
}

#[test]
fn blocks_of_providers_are_read() {
    let message = from_langchain(&[json!({
        "type": "ai",
        "response_metadata": {"model_provider": "anthropic"},
        "additional_kwargs": {"reasoning_content": "first"},
        "content": [
            "words",
            {"type": "thinking", "thinking": "hm", "signature": "s", "index": 0},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "image", "source_type": "base64", "data": "iVBO", "mime_type": "image/png"},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
        ],
    })]);
    let opaque =
        Block::Opaque { provider: "anthropic".into(), value: json!({"type": "redacted_thinking", "data": "d"}) };
    let first = superstep::JsonMap::from_iter([("field".to_owned(), json!("reasoning_content"))]);
    assert_eq!(
        *message.unwrap()[0].blocks(),
        [
            Block::Reasoning { text: "first".into(), signature: None, extra: first },
            Block::text("words"),
            Block::Reasoning { text: "hm".into(), signature: Some("s".into()), extra: superstep::JsonMap::new() },
            opaque,
            Block::Image(Media::base64("image/png", "iVBO")),
            Block::Image(Media::url("https://example.org/a.png")),
            Block::Image(Media::base64("image/png", "iVBO")),
        ]
    );
}

#[test]
fn what_is_no_message_is_named() {
    let words =
        |value: Value| from_langchain(&[json!({"type": "human", "content": "hi"}), value]).unwrap_err().to_string();
    assert_eq!(words(json!("hi")), "message 1: it is no object");
    assert_eq!(words(json!({"content": "hi"})), "message 1: it has no `type`");
    assert_eq!(words(json!({"type": "bard"})), "message 1: there is no message of type `bard`");
    assert_eq!(words(json!({"type": "tool", "content": ""})), "message 1: a tool's message has no `tool_call_id`");
    assert_eq!(words(json!({"type": "human", "content": 1})), "message 1: `content` is neither text nor blocks: 1");
}
