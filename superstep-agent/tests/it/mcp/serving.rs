//! Graphs as tools of an MCP server.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::{AgentState, Context, MemorySaver, Message, MessageKind, START, State, StateGraph};
use superstep_agent::mcp::{McpServer, McpServers, ToolServer, serve_tool};
use superstep_agent::{ScriptedModel, create_react_agent};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::{answer, app, asking, names};

fn client(server: ToolServer) -> McpServers {
    let pipe = McpServer::pipe(move || {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(server.clone().serve(theirs));
        async { Ok(ours) }
    });
    McpServers::new().add("graphs", pipe)
}

fn poet() -> ToolServer {
    let agent = create_react_agent(ScriptedModel::new(["Roses are red."]), ()).checkpointer(MemorySaver::new());
    serve_tool(agent.compile().unwrap(), "poet", "Writes a poem.")
}

#[tokio::test]
async fn an_agent_is_a_tool_that_takes_a_message_and_answers() {
    let tools = client(poet()).tools().await.unwrap();
    let spec = tools[0].spec();
    assert_eq!((&*spec.name, &*spec.description), ("poet", "Writes a poem."));
    assert_eq!(spec.parameters["required"], json!(["message"]));
    let said = answer(tools.clone(), "poet", json!({ "message": "a rose" })).await.unwrap();
    assert_eq!(said.text(), "Roses are red.");
    let wrong = answer(tools, "poet", json!({ "massage": "a rose" })).await.unwrap();
    assert!(wrong.is_error() && wrong.text().contains("missing field `message`"), "{wrong:?}");
}

#[tokio::test]
async fn a_graph_is_a_tool_over_http() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(poet().serve_http(listener));
    let servers = McpServers::new().add("graphs", McpServer::http(url));
    let tools = servers.tools().await.unwrap();
    assert_eq!(names(&tools), ["poet"]);
    let said = answer(tools, "poet", json!({ "message": "a rose" })).await.unwrap();
    assert_eq!(said.text(), "Roses are red.");
    servers.close().await;
    serving.abort();
}

#[tokio::test]
async fn only_the_hosts_that_were_named_are_served_over_http() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(poet().hosts(["graphs.example.org"]).serve_http(listener));
    let as_host = |host: &str| {
        let server = McpServer::http(url.clone()).header("host", host).tries(1, Duration::ZERO);
        McpServers::new().add("graphs", server)
    };
    assert!(as_host("evil.example.org").tools().await.is_err());
    assert_eq!(as_host("graphs.example.org").tools().await.unwrap().len(), 1);
    serving.abort();
}

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Sum {
    numbers: Vec<i64>,
    total: i64,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Numbers {
    numbers: Vec<i64>,
}

#[tokio::test]
async fn arguments_and_results_go_through_functions() {
    let graph = StateGraph::<Sum>::new()
        .add_node("add", |sum: Sum| async move { Sum::update().total(sum.numbers.iter().sum::<i64>()) })
        .add_edge(START, "add")
        .compile()
        .unwrap();
    let input = |args: Numbers| Sum::update().numbers(args.numbers);
    let server = ToolServer::new("sums")
        .graph_with(graph.clone(), "sum", "Adds.", input, |sum: Sum| json!({ "total": sum.total }))
        .graph_with(graph, "words", "Adds.", input, |sum: Sum| format!("it is {}", sum.total));
    let tools = client(server).tools().await.unwrap();
    let sum = answer(tools.clone(), "sum", json!({ "numbers": [20, 22] })).await.unwrap();
    assert_eq!(sum.text(), r#"{"total":42}"#);
    let MessageKind::Rich(rich) = &sum.kind else { panic!("it has an artifact") };
    assert_eq!(rich.answer.as_ref().unwrap().artifact, Some(json!({ "total": 42 })));
    assert_eq!(answer(tools, "words", json!({ "numbers": [20, 22] })).await.unwrap().text(), "it is 42");
}

fn served<M>(node: impl superstep::IntoNode<AgentState, M>) -> ToolServer {
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("node", node).add_edge(START, "node");
    serve_tool(graph.checkpointer(MemorySaver::new()).compile().unwrap(), "graph", "Runs.")
}

#[tokio::test]
async fn a_graph_that_fails_or_asks_is_an_error_for_the_model() {
    let fails = |_: AgentState| async { Err::<Vec<Message>, _>(superstep::BoxError::from("the cable is cut")) };
    let failed =
        answer(client(served(fails)).tools().await.unwrap(), "graph", json!({ "message": "go" })).await.unwrap();
    assert!(failed.is_error() && failed.text().contains("the cable is cut"), "{failed:?}");
    let asks = |_: AgentState, cx: Context| async move { cx.interrupt::<bool>("shall I?").map(drop) };
    let asked = answer(client(served(asks)).tools().await.unwrap(), "graph", json!({ "message": "go" })).await.unwrap();
    assert!(asked.is_error());
    assert_eq!(asked.text(), r#"it asks something that nobody can answer here: "shall I?""#);
}

/// The server would end the run five seconds after the connection, too: it must be faster than that.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_drops_the_run() {
    struct OnDrop(Arc<Notify>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (began, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begin, end) = (began.clone(), dropped.clone());
    let waits = move |_: AgentState| {
        let (begin, end) = (begin.clone(), end.clone());
        async move {
            let _guard = OnDrop(end);
            begin.notify_one();
            std::future::pending::<Vec<Message>>().await
        }
    };
    let app = app(client(served(waits)).tools().await.unwrap());
    let run =
        tokio::spawn(
            async move { app.invoke(asking([("graph", json!({ "message": "go" }))])).thread("t").await.map(drop) },
        );
    began.notified().await;
    run.abort();
    tokio::time::timeout(Duration::from_secs(1), dropped.notified()).await.unwrap();
}
