//! Calls of tools: results, errors, progress, time and cancellation.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use superstep::{
    AgentState, Block, EventData, Media, MessageKind, Mode, NodeOptions, START, StateGraph, TimeoutPolicy,
};
use superstep_agent::mcp::{McpProgress, McpServers};
use superstep_agent::{OnToolError, ScriptedModel, ToolNode};

use super::desk::Desk;
use super::{answer, app, app_of, asking};

#[tokio::test]
async fn every_kind_of_content_becomes_a_block_and_data_the_artifact() {
    let tools = Desk::default().servers().tools().await.unwrap();
    let answer = answer(tools, "everything", json!({})).await.unwrap();
    let mut pdf = Media::base64("application/pdf", "cGRm");
    pdf.name = Some("desk://pdf".to_owned());
    let blocks = [
        Block::text("see:"),
        Block::Image(Media::base64("image/png", "aW1n")),
        Block::Audio(Media::base64("audio/wav", "c25k")),
        Block::text("a note"),
        Block::File(pdf),
        Block::text("more (desk://more): There is more."),
    ];
    assert_eq!(*answer.blocks(), blocks);
    let MessageKind::Rich(rich) = &answer.kind else { panic!("it has more than text") };
    assert_eq!(rich.answer.as_ref().unwrap().artifact, Some(json!({ "seen": 6 })));
}

#[tokio::test]
async fn data_without_words_is_read_as_json() {
    let tools = Desk::default().servers().tools().await.unwrap();
    assert_eq!(answer(tools, "data", json!({})).await.unwrap().text(), r#"{"n":1}"#);
}

#[tokio::test]
async fn an_error_of_the_tool_is_told_to_the_model() {
    let tools = Desk::default().servers().tools().await.unwrap();
    let answer = answer(tools, "fail", json!({})).await.unwrap();
    assert!(answer.is_error());
    assert_eq!(answer.text(), "no such flight");
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_to_the_model() {
    let tools = Desk::default().servers().tools().await.unwrap();
    let missing = answer(tools.clone(), "echo", json!({})).await.unwrap();
    assert!(missing.is_error() && missing.text().contains("`text` is missing"), "{missing:?}");
    let no_object = answer(tools, "echo", json!("hello")).await.unwrap();
    assert!(no_object.text().contains("the arguments are no JSON object: \"hello\""), "{no_object:?}");
}

#[tokio::test]
async fn progress_is_seen_in_the_stream() {
    let app = app(Desk::default().servers().tools().await.unwrap());
    let mut events = app.stream(asking([("steps", json!({}))])).thread("t").modes([Mode::Custom]).start();
    let mut seen: Vec<McpProgress> = Vec::new();
    while let Some(event) = events.next().await {
        if let EventData::Custom(value) = event.unwrap().data {
            seen.push(serde_json::from_value(value).unwrap());
        }
    }
    let told: Vec<_> = seen.iter().map(|step| (step.progress, step.total, step.message.as_deref())).collect();
    assert_eq!(
        told,
        [(1.0, Some(3.0), Some("step 1")), (2.0, Some(3.0), Some("step 2")), (3.0, Some(3.0), Some("step 3"))]
    );
    assert_eq!((&*seen[0].server, &*seen[0].tool, &*seen[0].call), ("desk", "steps", "c0"));
}

#[tokio::test]
async fn a_call_is_cancelled_at_the_server_when_the_run_is_dropped() {
    let desk = Desk::default();
    let app = app(desk.servers().tools().await.unwrap());
    let run = tokio::spawn(async move { app.invoke(asking([("wait", json!({}))])).thread("t").await.map(drop) });
    desk.waits.notified().await;
    run.abort();
    desk.cancelled.notified().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_fails_and_is_cancelled() {
    let desk = Desk::default();
    let servers = McpServers::new().add("desk", desk.server().timeout(Duration::from_secs(2)));
    let error = answer(servers.tools().await.unwrap(), "wait", json!({})).await.unwrap_err();
    assert!(error.contains("tool `wait` failed: it took longer than 2s"), "{error}");
    desk.cancelled.notified().await;
}

#[tokio::test]
async fn a_broken_connection_fails_the_call_and_is_made_again_for_the_next() {
    let desk = Desk::default();
    let servers = desk.servers();
    let tools = servers.tools().await.unwrap();
    let version = servers.tools_version();
    let app = app(tools.clone());
    let run = tokio::spawn(async move { app.invoke(asking([("wait", json!({}))])).thread("t").await });
    desk.waits.notified().await;
    desk.die();
    let error = run.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("MCP server `desk` broke the connection before it answered"), "{error}");
    assert_eq!(answer(tools, "echo", json!({ "text": "back" })).await.unwrap().text(), "back");
    assert_eq!(desk.connections.load(Ordering::SeqCst), 2);
    assert!(servers.tools_version() > version, "the tools may be others now");
}

#[tokio::test]
async fn a_tool_node_can_try_a_broken_call_again() {
    let desk = Desk::default();
    let tools = desk.servers().tools().await.unwrap();
    let app = app_of(ToolNode::new(tools).retries(1, Duration::ZERO).on_error(OnToolError::Tell));
    let run = tokio::spawn(async move { app.invoke(asking([("wait", json!({}))])).thread("t").await });
    desk.waits.notified().await;
    desk.die();
    desk.waits.notified().await;
    assert_eq!((desk.connections.load(Ordering::SeqCst), desk.calls.load(Ordering::SeqCst)), (2, 2));
    run.abort();
}

#[tokio::test]
async fn a_server_can_ask_the_model_that_it_was_given() {
    let desk = Desk::default();
    let servers = McpServers::new().add("desk", desk.server().sampling(ScriptedModel::new(["Green tea."])));
    let said = answer(servers.tools().await.unwrap(), "sample", json!({})).await.unwrap();
    assert_eq!(said.text(), "Green tea.");
}

#[tokio::test]
async fn a_server_that_was_given_no_model_is_refused() {
    let error = answer(Desk::default().servers().tools().await.unwrap(), "sample", json!({})).await.unwrap_err();
    assert!(error.contains("there is no model for servers to ask"), "{error}");
}

/// Each step takes three seconds: the whole call is longer than any limit here.
#[tokio::test(start_paused = true)]
async fn progress_is_a_sign_of_life() {
    let servers = McpServers::new().add("desk", Desk::default().server().timeout(Duration::from_secs(4)));
    let node = ToolNode::new(servers.tools().await.unwrap());
    let options = NodeOptions::new().timeout(TimeoutPolicy::idle_only(Duration::from_secs(4)));
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node_with("tools", node, options).add_edge(START, "tools");
    let out = graph.compile().unwrap().invoke(asking([("crawl", json!({}))])).await.unwrap();
    assert_eq!(out.state.messages[1].text(), "done");
}
