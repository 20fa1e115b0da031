//! Models of providers in the nodes of a graph.

use serde_json::{Value, json};
use superstep::{AgentState, AgentStateUpdate, EventData, MemorySaver, Message, Mode, START, StateGraph};
use superstep_agent::{Anthropic, ChatModelExt, ChatRequest, create_react_agent, tool};

use super::server::{Answer, Server};
use super::{question, read, results, weather, without_stream};

/// Thoughts, their signatures and what only the provider understands survive the checkpoint, and the stream shows
/// what the state keeps.
#[tokio::test(start_paused = true)]
async fn a_conversation_goes_on_from_its_checkpoint_as_it_was() {
    let exchanges = ["anthropic/thinking-tools", "anthropic/tool-results"];
    let server = Server::start(exchanges.map(|exchange| Answer::sse(&read(exchange, "answer.sse")))).await;
    let model = Anthropic::new("claude-sonnet-4-5")
        .base_url(server.url())
        .provider("anthropic")
        .max_tokens(16_000)
        .setting("thinking", json!({"type": "enabled", "budget_tokens": 10_000}));
    let node = move |state: AgentState| {
        let model = model.clone();
        async move {
            let request = ChatRequest::new(state.messages).tools([weather()]);
            model.ask(request).await.map(|answer| vec![answer])
        }
    };
    let app = StateGraph::<AgentState>::new()
        .add_node("model", node)
        .add_edge(START, "model")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();

    let calls: Message = serde_json::from_str(&read(exchanges[0], "message.json")).unwrap();
    let turns = [vec![question()], [results(&calls), vec![Message::user("In one line, please.")]].concat()];
    for (turn, exchange) in turns.into_iter().zip(exchanges) {
        let whole: Message = serde_json::from_str(&read(exchange, "message.json")).unwrap();
        let input = AgentStateUpdate { messages: Some(turn) };
        let mut events = app.stream(input).thread("t1").modes([Mode::Messages]).start();
        let mut heard = String::new();
        while let Some(event) = events.next().await {
            let EventData::Message(said) = event.unwrap().data else { continue };
            assert_eq!(said.message.id, whole.id);
            heard += &said.message.text();
        }
        assert_eq!(heard, whole.text());
        let state = app.thread("t1").state().await.unwrap();
        assert_eq!(state.state.messages.last(), Some(&whole));
    }
    let expected: Value = serde_json::from_str(&read(exchanges[1], "request.json")).unwrap();
    assert_eq!(without_stream(server.requests()[1].json()), expected);
}

/// The provider's own tools threw the agent's away, and a turn that the provider broke off was taken for the answer.
#[tokio::test(start_paused = true)]
async fn tools_of_the_provider_stand_beside_those_of_the_agent() {
    /// Adds.
    #[tool]
    fn add(a: i64, b: i64) -> i64 {
        a + b
    }
    let answer = |words: &str, reason: &str| {
        let content = json!([{ "type": "text", "text": words }]);
        let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
        let (id, role) = (format!("msg_{reason}"), "assistant");
        let body = json!({ "id": id, "type": "message", "role": role, "model": "m", "content": content,
            "stop_reason": reason, "usage": usage });
        Answer::json(200, body.to_string())
    };
    let server = Server::start([answer("Let me see.", "pause_turn"), answer("Found.", "end_turn")]).await;
    let search = json!([{ "type": "web_search_20250305", "name": "web_search" }]);
    let model = Anthropic::new("m").base_url(server.url()).setting("tools", search);
    let agent = create_react_agent(model, [add]).compile().unwrap();
    let out = agent.invoke("Look it up.").await.unwrap();
    let said: Vec<_> = out.state.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(said, ["Look it up.", "Let me see.", "Found."]);
    let asked: Vec<Value> = server.requests().iter().map(|request| request.json()).collect();
    let tools: Vec<_> = asked[0]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(tools, ["add", "web_search"]);
    assert_eq!(asked[1]["messages"][1]["role"], "assistant");
    assert_eq!(asked[1]["messages"].as_array().unwrap().len(), 2, "it goes on where it was");
}
