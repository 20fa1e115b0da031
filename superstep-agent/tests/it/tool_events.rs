//! Calls of tools in the stream. What LangGraph sends was seen by running it (1.2.22).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use superstep::{
    AgentState, BoxError, Command, CompiledStateGraph, Conversation, EventData, MemorySaver, Message, Mode, Resume,
    START, StateGraph, Streaming, ToolCall, Update,
};
use superstep_agent::middleware::{CallTool, Middleware, Redact, Redaction, Sensitive, ToolAsk};
use superstep_agent::{
    OnToolError, ScriptedModel, ToolContext, ToolError, ToolNode, ToolOutput, create_react_agent, tool,
};

/// Counts, and says so on the way.
#[tool]
async fn count(to: i64, #[inject] cx: ToolContext) -> String {
    cx.emit_output_delta("half").await;
    cx.emit_output_delta(json!({ "at": to })).await;
    format!("counted to {to}")
}

/// Fails.
#[tool]
async fn fail(to: i64) -> Result<String, BoxError> {
    Err(format!("no {to} for ann@example.org").into())
}

/// Asks a human.
#[tool]
async fn ask(to: i64, #[inject] cx: ToolContext) -> Result<String, BoxError> {
    let answer: String = cx.context().interrupt(to)?;
    Ok(format!("answered {answer}"))
}

/// Answers by a command.
#[tool]
async fn command(to: i64, #[inject] call: ToolCall) -> Command<AgentState> {
    let answer = Message::tool_result(call.id, format!("by command {to}")).with_id("answer");
    Command::new().update(Update::from_writes([vec![answer]]))
}

fn node() -> ToolNode<AgentState> {
    ToolNode::new((count, fail, ask, command)).on_error(OnToolError::Tell)
}

fn graph(node: ToolNode<AgentState>) -> StateGraph<AgentState> {
    let mut graph = StateGraph::new();
    graph.add_node("tools", node).add_edge(START, "tools");
    graph
}

fn app(node: ToolNode<AgentState>) -> CompiledStateGraph<AgentState> {
    graph(node).compile().expect("the graph has no mistakes")
}

/// A call of each of these tools: `c0`, `c1`, ..
fn calling(names: &[&str]) -> AgentState {
    let call = |(nth, name): (usize, &&str)| ToolCall::new(format!("c{nth}"), *name, json!({ "to": nth }));
    AgentState { messages: vec![Message::calls("", names.iter().enumerate().map(call))] }
}

/// What a stream shows of tools; the error that ends it is left out.
async fn tools<S: superstep::Persist>(run: Streaming<S>) -> Vec<Value> {
    let mut events = run.mode(Mode::Tools).start();
    let mut all = Vec::new();
    while let Some(Ok(event)) = events.next().await {
        if let EventData::Tool(tool) = &event.data {
            all.push(tool.to_json());
        }
    }
    all
}

/// In short: what happened to which call.
fn kinds(events: &[Value]) -> Vec<String> {
    let kind = |event: &Value| {
        let (kind, call) = (event["event"].as_str().unwrap(), event["tool_call_id"].as_str().unwrap());
        format!("{call} {}", kind.trim_start_matches("tool-"))
    };
    events.iter().map(kind).collect()
}

/// The shapes are LangGraph's to the letter, the message of the tool as LangChain writes it.
#[tokio::test]
async fn a_call_is_shown_from_its_start_to_its_end() {
    let shown = tools(app(node()).stream(calling(&["count"]))).await;
    let finished = &shown[3]["output"];
    assert_eq!(
        shown[..3],
        [
            json!({ "event": "tool-started", "tool_call_id": "c0", "tool_name": "count", "input": { "to": 0 } }),
            json!({ "event": "tool-output-delta", "tool_call_id": "c0", "delta": "half" }),
            json!({ "event": "tool-output-delta", "tool_call_id": "c0", "delta": { "at": 0 } }),
        ]
    );
    assert_eq!((&shown[3]["event"], &shown[3]["tool_call_id"]), (&json!("tool-finished"), &json!("c0")));
    assert_eq!((&finished["type"], &finished["content"]), (&json!("tool"), &json!("counted to 0")));
    assert_eq!((&finished["name"], &finished["tool_call_id"]), (&json!("count"), &json!("c0")));
    assert_eq!(finished["status"], "success");
    assert_eq!(shown.len(), 4);
}

/// In LangGraph the stream has the command itself, which has no form in JSON.
#[tokio::test]
async fn of_a_command_the_messages_in_its_update_are_shown() {
    let shown = tools(app(node()).stream(calling(&["command"]))).await;
    assert_eq!(kinds(&shown), ["c0 started", "c0 finished"]);
    assert_eq!(shown[1]["output"]["update"]["messages"][0]["content"], "by command 0");
}

#[tokio::test]
async fn a_tool_that_fails_is_shown_as_it_failed_whether_the_model_is_told_or_not() {
    for policy in [OnToolError::Tell, OnToolError::Raise] {
        let shown = tools(app(node().on_error(policy)).stream(calling(&["fail"]))).await;
        assert_eq!(kinds(&shown), ["c0 started", "c0 error"]);
        assert_eq!(shown[1]["message"], "no 0 for ann@example.org");
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_an_error_of_a_call_that_started() {
    let call = ToolCall::new("c0", "count", json!({ "to": "many" }));
    let shown = tools(app(node()).stream(AgentState { messages: vec![Message::calls("", [call])] })).await;
    assert_eq!(kinds(&shown), ["c0 started", "c0 error"]);
    assert_eq!(shown[0]["input"], json!({ "to": "many" }));
}

#[tokio::test]
async fn nothing_is_shown_of_a_tool_that_does_not_exist() {
    assert!(tools(app(node()).stream(calling(&["nothing"]))).await.is_empty());
}

/// A tool that asks is paused, not failed: it starts again when it is answered, and the other one with it.
#[tokio::test]
async fn a_tool_that_asks_starts_again_when_it_is_answered() {
    let app = graph(node()).checkpointer(MemorySaver::new()).compile().unwrap();
    let shown = tools(app.stream(calling(&["ask"])).thread("t")).await;
    assert_eq!(kinds(&shown), ["c0 started"]);
    let shown = tools(app.stream(Resume::value("yes")).thread("t")).await;
    assert_eq!(kinds(&shown), ["c0 started", "c0 finished"]);
    assert_eq!(shown[1]["output"]["content"], "answered yes");
}

/// Both wait for each other: the events of one come between those of the other, each with its call.
#[tokio::test]
async fn calls_side_by_side_are_told_apart_by_their_ids() {
    /// Waits for the other one.
    #[tool]
    async fn meet(to: i64, #[inject] cx: ToolContext, #[inject] door: superstep::Runtime<tokio::sync::Barrier>) -> i64 {
        cx.emit_output_delta("here").await;
        door.wait().await;
        to
    }
    let run = |app: CompiledStateGraph<AgentState>| async move {
        let shown = tools(app.stream(calling(&["meet", "meet"])).context(tokio::sync::Barrier::new(2))).await;
        let of = |call: &str| {
            let own: Vec<Value> = shown.iter().filter(|event| event["tool_call_id"] == call).cloned().collect();
            (kinds(&own), own[2]["output"]["content"].clone())
        };
        assert_eq!(of("c0"), (vec!["c0 started".into(), "c0 output-delta".into(), "c0 finished".into()], json!("0")));
        assert_eq!(of("c1"), (vec!["c1 started".into(), "c1 output-delta".into(), "c1 finished".into()], json!("1")));
        assert_eq!(kinds(&shown[..4]).iter().filter(|kind| kind.contains("started")).count(), 2);
    };
    run(app(ToolNode::new([meet]))).await;
}

/// An agent sends each call to a task of its own.
#[tokio::test]
async fn agents_show_the_calls_of_their_tools() {
    let model = ScriptedModel::new([calling(&["count", "count"]).messages.remove(0), Message::assistant("Done.")]);
    let agent = create_react_agent(model, [count]).compile().unwrap();
    let shown = tools(agent.stream("Count!")).await;
    let of = |call: &str| kinds(&shown).into_iter().filter(|kind| kind.starts_with(call)).collect::<Vec<_>>();
    let whole = ["started", "output-delta", "output-delta", "finished"];
    assert_eq!(of("c0"), whole.map(|kind| format!("c0 {kind}")));
    assert_eq!(of("c1"), whole.map(|kind| format!("c1 {kind}")));
}

#[tokio::test]
async fn tools_of_subgraphs_are_shown_with_their_namespace() {
    let around = StateGraph::new().add_node("child", app(node())).add_edge(START, "child").compile().unwrap();
    assert!(tools(around.stream(calling(&["count"]))).await.is_empty());
    let mut events = around.stream(calling(&["count"])).mode(Mode::Tools).subgraphs().start();
    let mut shown = 0;
    while let Some(event) = events.next().await {
        assert_eq!(event.unwrap().path(), ["child"]);
        shown += 1;
    }
    assert_eq!(shown, 4);
}

/// Fails the first time.
#[tool]
async fn flaky(to: i64, #[inject] tries: superstep::Runtime<AtomicUsize>) -> Result<i64, BoxError> {
    if tries.fetch_add(1, Ordering::SeqCst) == 0 { Err("not yet".into()) } else { Ok(to) }
}

#[tokio::test(start_paused = true)]
async fn every_try_is_shown() {
    let node = ToolNode::new([flaky]).retries(1, Duration::from_secs(1));
    let shown = tools(app(node).stream(calling(&["flaky"])).context(AtomicUsize::new(0))).await;
    assert_eq!(kinds(&shown), ["c0 started", "c0 error", "c0 started", "c0 finished"]);
}

/// Never ends.
#[tool]
async fn hang(to: i64) -> i64 {
    std::future::pending::<()>().await;
    to
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_took_too_long_has_failed() {
    let shown = tools(app(ToolNode::new([hang]).timeout(Duration::from_secs(1))).stream(calling(&["hang"]))).await;
    assert_eq!(kinds(&shown), ["c0 started", "c0 error"]);
    assert_eq!(shown[1]["message"], "it took longer than 1s");
}

/// Says where Ann lives.
#[tool]
fn address(to: i64) -> String {
    format!("{to}: ann@example.org")
}

/// The words of a tool went out as they came, before the middleware had looked at them.
#[tokio::test]
async fn what_middleware_takes_out_of_a_result_is_not_shown() {
    let model = ScriptedModel::new([calling(&["address", "fail"]).messages.remove(0), Message::assistant("Done.")]);
    let redact = Redact::new().find(Sensitive::Email, Redaction::Replace);
    let agent = create_react_agent(model, (address, fail))
        .calling_tools(|node| node.on_error(OnToolError::Tell))
        .middleware(redact);
    let shown = tools(agent.compile().unwrap().stream("Who?")).await;
    assert_eq!(shown.len(), 4);
    for event in &shown {
        assert!(!event.to_string().contains("ann@"), "{event}");
    }
    let of = |call: &str| shown.iter().rfind(|event| event["tool_call_id"] == call).unwrap();
    assert_eq!(of("c0")["output"]["content"], "0: [REDACTED_EMAIL]");
    assert_eq!(of("c1")["message"], "no 1 for [REDACTED_EMAIL]");
}

struct Instead;

#[async_trait]
impl<S: Conversation> Middleware<S> for Instead {
    fn name(&self) -> &'static str {
        "instead"
    }
    async fn around_tool(&self, _: ToolAsk<S>, _: CallTool<'_, S>) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("from memory"))
    }
}

/// As in LangGraph, where middleware is around the tool and the events are the tool's.
#[tokio::test]
async fn nothing_is_shown_of_a_tool_that_middleware_did_not_call() {
    let node = node().around([Arc::new(Instead) as Arc<dyn Middleware<AgentState>>]);
    assert!(tools(app(node).stream(calling(&["count"]))).await.is_empty());
}

/// Counts how often it is encoded.
struct Counted(Arc<AtomicUsize>);

impl Serialize for Counted {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        self.0.fetch_add(1, Ordering::SeqCst);
        serializer.serialize_unit()
    }
}

/// Says how far it is.
#[tool]
async fn work(to: i64, #[inject] cx: ToolContext, #[inject] encoded: superstep::Runtime<Arc<AtomicUsize>>) -> i64 {
    cx.emit_output_delta(Counted(encoded.clone())).await;
    to
}

#[tokio::test]
async fn pieces_are_encoded_only_if_somebody_asked_for_them() {
    let encoded = Arc::new(AtomicUsize::new(0));
    let app = app(ToolNode::new([work]));
    app.invoke(calling(&["work"])).context(encoded.clone()).await.unwrap();
    let mut events = app.stream(calling(&["work"])).context(encoded.clone()).mode(Mode::Messages).start();
    while let Some(event) = events.next().await {
        assert_eq!(event.unwrap().mode, Mode::Messages);
    }
    assert_eq!(encoded.load(Ordering::SeqCst), 0);
    assert_eq!(tools(app.stream(calling(&["work"])).context(encoded.clone())).await.len(), 3);
    assert_eq!(encoded.load(Ordering::SeqCst), 1);
}
