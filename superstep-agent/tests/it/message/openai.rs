//! OpenAI's chat JSON.

use serde_json::json;
use superstep::{Block, Media, Message, ToolCall};
use superstep_agent::message::{from_openai, to_openai};

use super::rich_answer;

#[test]
fn what_is_read_is_written_back() {
    let conversation = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi", "name": "ada"},
        {"role": "user", "content": [
            {"type": "text", "text": "what is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
            {"type": "file", "file": {"file_id": "file-1"}},
        ]},
        {"role": "assistant", "content": null, "reasoning_content": "hm", "audio": {"id": "a"}, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}},
            {"id": "c2", "type": "function", "function": {"name": "add", "arguments": "{oops"}, "extra_content": {"s": 1}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "no"},
    ]);
    let messages = from_openai(conversation.as_array().unwrap()).unwrap();
    assert_eq!(serde_json::Value::Array(to_openai(&messages).unwrap()), conversation);
    assert_eq!(messages[3].tool_calls().nth(1).unwrap().args, json!("{oops"));
}

#[test]
fn what_has_no_words_is_left_out() {
    let written =
        to_openai(&[Message::remove_all(), rich_answer(), Message::assistant("hi").with_name("two words")]).unwrap();
    let arguments = r#"{"q":"tea"}"#;
    let call = json!({"id": "c1", "type": "function", "function": {"name": "search", "arguments": arguments}, "thoughtSignature": "c=="});
    assert_eq!(
        written[0],
        json!({"role": "assistant", "content": "One moment.", "name": "writer", "tool_calls": [call],
               "audio": {"id": "a"}, "reasoning_content": "hm", "id": null})
        .as_object()
        .map(|fields| fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect())
        .map(serde_json::Value::Object)
        .unwrap()
    );
    assert_eq!(written[1], json!({"role": "assistant", "content": "hi"}));
}

#[test]
fn what_tools_show_follows_their_words() {
    let shot = Message::tool_result("c1", "")
        .with_rich(|rich| rich.blocks.push(Block::Image(Media::url("https://example.org/a.png"))));
    let calls = Message::calls("", [ToolCall::new("c1", "camera", json!({})), ToolCall::new("c2", "add", json!({}))]);
    let written = to_openai(&[calls, shot, Message::tool_result("c2", "2")]).unwrap();
    assert_eq!(written[1], json!({"role": "tool", "tool_call_id": "c1", "content": "see the next message"}));
    assert_eq!(written[2], json!({"role": "tool", "tool_call_id": "c2", "content": "2"}));
    assert_eq!(
        written[3],
        json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]})
    );
}

#[test]
fn what_cannot_be_sent_is_named() {
    let sound =
        Message::user("").with_rich(|rich| rich.blocks.push(Block::Audio(Media::url("https://example.org/a.mp3"))));
    let error = to_openai(&[Message::user("hi"), sound]).unwrap_err();
    assert_eq!((error.place(), &*error.to_string()), (1, "message 1: sound can only be sent in base64"));
}
