//! Real servers: `@modelcontextprotocol/server-everything` over stdio and HTTP, and `mcp-server-time`.
//!
//! `cargo xtask test` fetches them and says where they are; without it, these tests say that they were not run.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use superstep::{Block, EventData, JsonMap, Message, Mode, Resume};
use superstep_agent::mcp::{Elicitation, McpServer, McpServers, serve_tool};
use superstep_agent::{ScriptedModel, Tool, create_react_agent};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use super::log::Log;
use super::{answer, app, asking, names};

fn set(variable: &str) -> Option<OsString> {
    let value = std::env::var_os(variable);
    if value.is_none() {
        eprintln!("NOT RUN: `{variable}` is not set; run it with `cargo xtask test`");
    }
    value
}

/// `node` and the script of the server.
fn everything() -> Option<(OsString, OsString)> {
    Some((set("SUPERSTEP_TEST_NODE")?, set("SUPERSTEP_TEST_MCP_EVERYTHING")?))
}

fn over_stdio() -> Option<McpServers> {
    let (node, script) = everything()?;
    let server = McpServer::stdio(node, [script, "stdio".into()]).env("TEA", "green");
    Some(McpServers::new().add("everything", server))
}

/// The tools, once the server has all of them: it adds some when it has heard what the client can do.
async fn all_tools(servers: &McpServers) -> Vec<Arc<dyn Tool>> {
    loop {
        let version = servers.tools_version();
        let tools = servers.tools().await.unwrap();
        if names(&tools).contains(&"trigger-elicitation-request".to_owned()) {
            return tools;
        }
        servers.tools_changed_since(version).await;
    }
}

async fn said(tools: &[Arc<dyn Tool>], name: &'static str, args: Value) -> Message {
    answer(tools.to_vec(), name, args).await.unwrap()
}

async fn check_tools(servers: &McpServers) {
    let tools = all_tools(servers).await;
    assert_eq!(said(&tools, "echo", json!({ "message": "tea" })).await.text(), "Echo: tea");
    assert!(said(&tools, "get-sum", json!({ "a": 20, "b": 22 })).await.text().contains("42"));
    let wrong = said(&tools, "get-sum", json!({ "a": "x" })).await;
    assert!(wrong.is_error(), "{wrong:?}");
    let picture = said(&tools, "get-tiny-image", json!({})).await;
    assert!(picture.blocks().iter().any(|block| matches!(block, Block::Image(_))), "{picture:?}");
    let weather = said(&tools, "get-structured-content", json!({ "location": "Chicago" })).await;
    let artifact = weather.into_rich().unwrap().answer.unwrap().artifact.unwrap();
    assert!(artifact["temperature"].is_number(), "{artifact}");
    let resources = servers.resources().await.unwrap();
    let read = servers.read_resource("everything", &resources[0].uri).await.unwrap();
    assert!(!read.is_empty());
    let prompts = servers.prompts().await.unwrap();
    let simple = prompts.iter().find(|prompt| prompt.required.is_empty()).unwrap();
    assert!(!servers.get_prompt("everything", &simple.name, JsonMap::new()).await.unwrap().is_empty());
}

async fn check_progress(servers: &McpServers) {
    let app = app(servers.tools().await.unwrap());
    let args = json!({ "duration": 0.3, "steps": 3 });
    let input = asking([("trigger-long-running-operation", args)]);
    let mut events = app.stream(input).thread("t").modes([Mode::Custom]).start();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        if let EventData::Custom(value) = event.unwrap().data {
            seen.push(value["progress"].as_f64().unwrap());
        }
    }
    assert_eq!(seen, [1.0, 2.0, 3.0]);
}

async fn check_question(servers: &McpServers) {
    let app = app(all_tools(servers).await);
    let out = app.invoke(asking([("trigger-elicitation-request", json!({}))])).thread("t").await.unwrap();
    let question: Elicitation = out.interrupts[0].value_as().unwrap();
    assert!(question.schema.as_ref().unwrap()["properties"]["name"].is_object(), "{question:?}");
    let answer = question.accept(json!({ "name": "Ada", "check": true }));
    let out = app.invoke(Resume::value(answer)).thread("t").await.unwrap();
    assert!(out.state.messages[1].text().contains("- Name: Ada"), "{out:?}");
}

/// A call that would take a minute ends at once for whoever drops it, and the server goes on.
async fn check_cancel(servers: &McpServers) {
    let tools = servers.tools().await.unwrap();
    let app = app(tools.clone());
    let input = asking([("trigger-long-running-operation", json!({ "duration": 60, "steps": 600 }))]);
    let mut events = app.stream(input).thread("t").modes([Mode::Custom]).start();
    assert!(events.next().await.unwrap().is_ok(), "it has begun");
    drop(events);
    assert_eq!(said(&tools, "echo", json!({ "message": "still there" })).await.text(), "Echo: still there");
}

#[tokio::test]
async fn everything_works_over_stdio() {
    let Some(servers) = over_stdio() else { return };
    check_tools(&servers).await;
    check_progress(&servers).await;
    check_question(&servers).await;
    check_cancel(&servers).await;
    servers.close().await;
    assert_eq!(servers.process_id("everything").await, None);
}

#[tokio::test]
async fn a_program_gets_the_environment_that_it_was_given_and_no_secrets() {
    let Some(servers) = over_stdio() else { return };
    let env = said(&servers.tools().await.unwrap(), "get-env", json!({})).await;
    let env: Value = serde_json::from_str(&env.text()).unwrap();
    assert_eq!(env["TEA"], "green");
    assert!(env["PATH"].is_string() && env["CARGO_MANIFEST_DIR"].is_null(), "{env}");
}

#[tokio::test]
async fn a_killed_server_fails_its_call_and_is_started_again() {
    let Some(servers) = over_stdio() else { return };
    let tools = servers.tools().await.unwrap();
    let killed = servers.process_id("everything").await.unwrap();
    let app = app(tools.clone());
    let input = asking([("trigger-long-running-operation", json!({ "duration": 60, "steps": 600 }))]);
    let mut events = app.stream(input).thread("t").modes([Mode::Custom]).start();
    assert!(events.next().await.unwrap().is_ok(), "it has begun");
    assert!(Command::new("kill").args(["-9", &killed.to_string()]).status().await.unwrap().success());
    let error = loop {
        match events.next().await.expect("the run fails") {
            Ok(_) => {}
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("MCP server `everything` broke the connection before it answered"), "{error}");
    assert_eq!(said(&tools, "echo", json!({ "message": "back" })).await.text(), "Echo: back");
    assert_ne!(servers.process_id("everything").await.unwrap(), killed);
}

/// The server over HTTP, killed when it is dropped.
struct Http {
    child: Child,
    port: u16,
}

impl Http {
    async fn start(port: Option<u16>) -> Option<Self> {
        let (node, script) = everything()?;
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port = port.unwrap_or_else(free);
        let mut command = Command::new(node);
        command.arg(script).arg("streamableHttp").env("PORT", port.to_string()).kill_on_drop(true);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        while !lines.next_line().await.unwrap().expect("it says that it listens").contains("listening") {}
        // Nobody reads on: what it still has to say must not block it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Some(Self { child, port })
    }

    fn servers(&self) -> McpServers {
        let server = McpServer::http(format!("http://127.0.0.1:{}/mcp", self.port));
        McpServers::new().add("everything", server.tries(3, Duration::from_millis(50)))
    }
}

#[tokio::test]
async fn everything_works_over_http() {
    let Some(http) = Http::start(None).await else { return };
    let servers = http.servers();
    check_tools(&servers).await;
    check_progress(&servers).await;
    check_question(&servers).await;
    check_cancel(&servers).await;
    servers.close().await;
}

#[tokio::test]
async fn a_killed_server_over_http_fails_its_call_and_is_connected_again() {
    let Some(mut http) = Http::start(None).await else { return };
    let servers = http.servers();
    let tools = servers.tools().await.unwrap();
    let app = app(tools.clone());
    let input = asking([("trigger-long-running-operation", json!({ "duration": 60, "steps": 600 }))]);
    let mut events = app.stream(input).thread("t").modes([Mode::Custom]).start();
    assert!(events.next().await.unwrap().is_ok(), "it has begun");
    let port = http.port;
    http.child.kill().await.unwrap();
    let error = loop {
        match events.next().await.expect("the run fails") {
            Ok(_) => {}
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("MCP server `everything` broke the connection"), "{error}");
    let _again = Http::start(Some(port)).await.unwrap();
    assert_eq!(said(&tools, "echo", json!({ "message": "back" })).await.text(), "Echo: back");
}

#[tokio::test]
async fn a_server_in_python_works_over_stdio() {
    let Some(program) = set("SUPERSTEP_TEST_MCP_TIME") else { return };
    let server = McpServer::stdio(program, ["--local-timezone", "Europe/Oslo"]).folder(std::env::temp_dir());
    let servers = McpServers::new().add("time", server);
    let tools = servers.tools().await.unwrap();
    assert_eq!(names(&tools), ["get_current_time", "convert_time"]);
    let args = json!({ "source_timezone": "Europe/Oslo", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    let answer = said(&tools, "convert_time", args).await;
    assert!(answer.text().contains("Asia/Tokyo"), "{answer:?}");
    let wrong = json!({ "source_timezone": "Nowhere/Town", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    assert!(said(&tools, "convert_time", wrong).await.is_error());
    assert!(servers.prompts().await.unwrap().is_empty() && servers.resources().await.unwrap().is_empty());
    servers.close().await;
}

/// Somebody else's client finds our tool, in the newest protocol and in the one before.
#[tokio::test]
async fn a_client_in_python_calls_a_graph() {
    let Some(program) = set("SUPERSTEP_TEST_MCP_TIME") else { return };
    let python = Path::new(&program).with_file_name("python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.py");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let poet = create_react_agent(ScriptedModel::new(["Roses are red.", "Violets are blue."]), ()).compile().unwrap();
    let serving = tokio::spawn(serve_tool(poet, "poet", "Writes a poem.").serve_http(listener));
    for (mode, line) in [("auto", "Roses are red."), ("legacy", "Violets are blue.")] {
        let client = Command::new(&python).arg(&script).args([&url, mode, "a poem"]).output().await.unwrap();
        let complaint = String::from_utf8_lossy(&client.stderr);
        assert!(client.status.success(), "{mode}: {complaint}");
        let seen: Value = serde_json::from_slice(&client.stdout).unwrap();
        assert_eq!(seen, json!({ "tools": ["poet"], "said": [line] }), "{mode}");
    }
    serving.abort();
}

#[tokio::test]
async fn what_a_program_says_on_its_standard_error_is_logged() {
    let Some(servers) = over_stdio() else { return };
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    servers.tools().await.unwrap();
    log.wait_for("Starting default (STDIO) server...").await;
}
