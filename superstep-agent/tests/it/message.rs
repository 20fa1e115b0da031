//! Messages in the forms of others, and conversations that are cut.

mod cut;
mod langchain;
mod openai;

use serde_json::json;
use superstep::{Block, JsonMap, Media, Message, RichMessage, Role, ToolCall, Usage};

/// A model's answer with all that it can have.
fn rich_answer() -> Message {
    let mut call = ToolCall::new("c1", "search", json!({"q": "tea"}));
    call.extra.insert("thoughtSignature".into(), json!("c=="));
    let mut image = Media::base64("image/png", "iVBO");
    image.name = Some("cup".into());
    let extra = JsonMap::from_iter([("id".to_owned(), json!("rs_1"))]);
    let mut rich = RichMessage::new(
        Role::Assistant,
        vec![
            Block::Reasoning { text: "hm".into(), signature: Some("s==".into()), extra },
            Block::Text { text: "One ".into(), extra: JsonMap::from_iter([("citations".to_owned(), json!([1]))]) },
            Block::ToolCall(call),
            Block::Opaque { provider: "anthropic".into(), value: json!({"type": "redacted_thinking", "data": "d"}) },
            Block::text("moment."),
            Block::Image(image),
        ],
    );
    rich.name = Some("writer".into());
    let mut usage = Usage::new(10, 5);
    (usage.cache_read, usage.cache_write, usage.reasoning) = (3, 2, 4);
    rich.usage = Some(usage);
    rich.response = JsonMap::from_iter([
        ("provider".to_owned(), json!("anthropic")),
        ("model".to_owned(), json!("claude")),
        ("finish_reason".to_owned(), json!("tool_use")),
    ]);
    rich.extra = JsonMap::from_iter([("audio".to_owned(), json!({"id": "a"}))]);
    Message::from(rich).with_id("m1")
}
