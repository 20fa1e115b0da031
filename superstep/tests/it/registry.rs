//! A program of at most 60 lines that serves graphs whose types it does not know.

mod program;

use axum::Router;
use serde_json::{Value, json};
use superstep::{AgentState, AnyGraph, EchoAgent, Entrypoint, JsonInput, JsonState, MemorySaver, START, StateGraph};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::a_b_c;

#[test]
fn the_program_has_at_most_60_lines() {
    assert!(include_str!("registry/program.rs").lines().count() <= 60);
}

/// Graphs over a conversation, over a state of its own, and over fields that are named at run time.
fn graphs() -> [AnyGraph; 4] {
    let echo =
        StateGraph::<AgentState>::new().name("echo").add_node("echo", EchoAgent).add_edge(START, "echo").compile();
    let mut dynamic = StateGraph::dynamic(JsonState::schema().last_value("n").append("log"));
    let count = async |state: JsonInput| json!({ "log": [state["n"]] });
    let dynamic = dynamic.name("dynamic").add_node("count", count).add_edge(START, "count").compile();
    let double = Entrypoint::new("double", async |n: i64| n * 2).compile();
    let saver = MemorySaver::new();
    let all =
        [echo.unwrap().into(), a_b_c().name("notes").compile().unwrap().into(), dynamic.unwrap().into(), double.into()];
    all.map(|graph: AnyGraph| graph.with_checkpointer(saver.clone()))
}

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// The status of an answer, and its lines.
async fn ask(address: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, Vec<String>) {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}");
    let whole = format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    connection.write_all(whole.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, body.lines().map(str::to_owned).collect())
}

/// The events that a watch of a run gives, by their numbers.
async fn events(address: &str, run: &str, after: u64) -> Vec<(u64, Value)> {
    let headers = format!("last-event-id: {after}\r\n");
    let (status, lines) = ask(address, "GET", &format!("/runs/{run}/events"), &headers, "").await;
    assert_eq!(status, 200);
    let data = lines.iter().filter_map(|line| line.strip_prefix("data: "));
    let data = data.map(|line| serde_json::from_str::<Value>(line).unwrap());
    data.map(|event| (event["sequence"].as_u64().unwrap(), event)).collect()
}

#[tokio::test]
async fn graphs_of_different_states_are_served_from_one_map_and_left_and_joined_again() {
    let address = serve(program::router(graphs())).await;
    let inputs = [
        ("echo", json!({ "messages": [{ "role": "user", "content": "hi" }] })),
        ("notes", json!({ "topic": "tea" })),
        ("dynamic", json!({ "n": 7 })),
        ("double", json!(21)),
    ];
    for (graph, input) in inputs {
        let body = json!({ "input": input, "options": { "thread": graph, "modes": ["values", "updates"] } });
        let (status, run) = ask(&address, "POST", &format!("/graphs/{graph}/runs"), "", &body.to_string()).await;
        assert_eq!(status, 200, "{graph}: {run:?}");
        let all = events(&address, &run[0], 0).await;
        assert!(all.len() >= 2, "{graph}: {all:?}");
        assert!(all.iter().enumerate().all(|(place, (number, _))| *number == place as u64 + 1), "{all:?}");
        assert!(all.iter().all(|(_, event)| event["run"] == run[0].as_str()));
        let joined = events(&address, &run[0], 1).await;
        assert_eq!(joined, all[1..], "who comes back goes on where they were");

        let (status, state) = ask(&address, "GET", &format!("/graphs/{graph}/threads/{graph}"), "", "").await;
        let state: Value = serde_json::from_str(&state[0]).unwrap();
        assert_eq!((status, &state["next"]), (200, &json!([])), "{graph}: {state}");
        let last = &all.iter().rfind(|(_, event)| event["mode"] == "values").unwrap().1;
        assert_eq!(last["data"], state["values"], "{graph}");
    }
    let unknown = ask(&address, "POST", "/graphs/none/runs", "", r#"{ "input": {} }"#).await;
    assert_eq!(unknown.0, 404);
}
