//! The example that asks Zhipu, with a server of the test in its place.

#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../../examples/react_zhipu.rs"]
mod react_zhipu;

use serde_json::{Value, json};

use crate::provider::server::{Answer, Server};

#[tokio::test]
async fn zhipu_is_asked_like_openai_at_its_own_address() {
    let answer = |message: Value, reason: &str| {
        let choice = json!({ "index": 0, "message": message, "finish_reason": reason });
        Answer::json(200, json!({ "id": reason, "model": "glm-4-flash", "choices": [choice] }).to_string())
    };
    let function = json!({ "name": "temperature", "arguments": r#"{"city":"Oslo"}"# });
    let call = json!({ "id": "call_1", "type": "function", "function": function });
    let calls = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let says = json!({ "role": "assistant", "content": "4.5 degrees." });
    let server = Server::start([answer(calls, "tool_calls"), answer(says, "stop")]).await;

    let model = react_zhipu::zhipu(&format!("{}/api/paas/v4", server.url()), "zhipu-key".into(), "glm-4-flash");
    let said = react_zhipu::run(model).await.unwrap();
    assert_eq!(said, ["How warm is it in Oslo?", "", "4.5", "4.5 degrees."]);

    let requests = server.requests();
    for request in &requests {
        assert_eq!(request.line, "POST /api/paas/v4/chat/completions");
        assert_eq!(request.header("authorization"), Some("Bearer zhipu-key"));
        assert_eq!(request.json()["model"], "glm-4-flash");
        assert_eq!(request.json()["tools"][0]["function"]["name"], "temperature");
    }
    let told = requests[1].json()["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(told, json!({ "role": "tool", "tool_call_id": "call_1", "content": "4.5" }));
}

#[tokio::test]
async fn a_script_stands_in_for_zhipu() {
    let said = react_zhipu::run(react_zhipu::script()).await.unwrap();
    assert_eq!(said, ["How warm is it in Oslo?", "", "4.5", "It is 4.5 °C in Oslo."]);
}
