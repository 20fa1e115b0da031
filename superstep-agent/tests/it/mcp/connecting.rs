//! Connections that cannot be made, and what is never shown.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use superstep_agent::mcp::{McpServer, McpServers};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpListener;

use super::log::Log;

async fn refusal(server: McpServer) -> String {
    McpServers::new().add("s", server).tools().await.err().expect("it cannot work").to_string()
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_tried_as_often_as_said_with_growing_pauses() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let server = McpServer::pipe(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Err::<DuplexStream, _>(io::Error::other("nobody home")) }
    });
    let start = tokio::time::Instant::now();
    let error = refusal(server.tries(4, Duration::from_secs(1))).await;
    assert_eq!(error, "MCP server `s` cannot be reached (tried 4 times): nobody home");
    assert_eq!((tries.load(Ordering::SeqCst), start.elapsed().as_secs()), (4, 1 + 2 + 4));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_not_tried_again() {
    let error = refusal(McpServer::stdio("superstep-no-such-program", ["--help"])).await;
    assert!(
        error.starts_with(
            "MCP server `s` cannot be reached (tried 1 times): cannot start `superstep-no-such-program`: "
        ),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_introduce_itself_is_given_up() {
    let server = McpServer::pipe(|| async {
        let (ours, theirs) = tokio::io::duplex(4096);
        // Kept open, and silent.
        std::mem::forget(theirs);
        Ok(ours)
    });
    let error = refusal(server.start_timeout(Duration::from_secs(3)).tries(1, Duration::ZERO)).await;
    assert_eq!(error, "MCP server `s` cannot be reached (tried 1 times): it did not introduce itself in 3s");
}

#[tokio::test]
async fn settings_of_another_kind_of_server_are_refused() {
    let wrong = |what| format!("MCP server `s` is described wrongly: `{what}");
    assert!(
        refusal(McpServer::http("http://127.0.0.1:1").env("A", "1"))
            .await
            .starts_with(&wrong("env` is for servers over stdio"))
    );
    assert!(refusal(McpServer::http("http://127.0.0.1:1").folder("/")).await.starts_with(&wrong("folder`")));
    assert!(refusal(McpServer::stdio("true", [""; 0]).header("a", "b")).await.starts_with(&wrong("header`")));
    assert!(refusal(McpServer::stdio("true", [""; 0]).bearer_token("b")).await.starts_with(&wrong("bearer_token`")));
}

#[tokio::test]
async fn addresses_and_headers_that_cannot_be_are_named_without_their_secrets() {
    let error = refusal(McpServer::http("no address?key=SECRET")).await;
    assert!(error.contains("is no address") && !error.contains("SECRET"), "{error}");
    let error = refusal(McpServer::http("http://127.0.0.1:1").header("bad name", "SECRET")).await;
    assert!(error.contains("header `bad name` cannot be sent") && !error.contains("SECRET"), "{error}");
}

#[test]
fn secrets_are_not_shown() {
    let remote = McpServer::http("https://me:SECRET@example.org/mcp?key=SECRET")
        .bearer_token("SECRET")
        .header("X-Key", "SECRET");
    let local = McpServer::stdio("server", ["--stdio"]).env("KEY", "SECRET");
    let shown = format!("{:?}", McpServers::new().add("remote", remote).add("local", local));
    assert!(!shown.contains("SECRET"), "{shown}");
    assert!(shown.contains("https://example.org/mcp") && shown.contains("X-Key") && shown.contains("KEY"), "{shown}");
}

#[tokio::test]
async fn headers_and_token_are_in_the_request_and_in_no_log() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&request[..length]).to_lowercase()
    });
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let server = McpServer::http(url).bearer_token("s3cret").header("X-Team", "blue").tries(1, Duration::ZERO);
    let error = refusal(server).await;
    let shown = log.text() + &error;
    assert!(!shown.is_empty() && !shown.contains("s3cret") && !shown.contains("blue"), "{shown}");
    let request = heard.await.unwrap();
    assert!(request.contains("authorization: bearer s3cret\r\n") && request.contains("x-team: blue\r\n"), "{request}");
}

/// Some servers take their key in the address, which errors show.
#[tokio::test]
async fn keys_in_addresses_are_not_in_errors_or_logs() {
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let server = McpServer::http("http://ann:hunter2@127.0.0.1:1/mcp?api_key=SECRET").tries(2, Duration::ZERO);
    let error = McpServers::new().add("s", server).tools().await.err().unwrap();
    // The library below logs what it likes.
    let log: String = log.text().lines().filter(|line| line.contains("server=")).collect();
    assert!(log.contains("tried again"), "{log}");
    let seen = format!("{error} {error:?} {log}");
    assert!(!seen.contains("SECRET") && !seen.contains("hunter2"), "{seen}");
    assert!(error.to_string().contains("127.0.0.1:1/mcp"), "{error}");
}

/// A server in a shell: it says who it is and what it has, and never ends a call.
#[cfg(target_os = "linux")]
const SHELL_SERVER: &str = r#"
while read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case "$line" in
        *'"method":"initialize"'*) result='"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}' ;;
        *'"method":"tools/list"'*) result='"tools":[{"name":"slow","inputSchema":{"type":"object"}}]' ;;
        *'"method":"tools/call"'*) echo $$ > "$1"; while :; do sleep 1; done ;;
        *) continue ;;
    esac
    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{$result}}"
done"#;

/// Whether a process does something.
#[cfg(target_os = "linux")]
fn is_alive(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.trim())).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with(['Z', 'X']))
}

/// Servers are often started by another program. That one ended, and the server went on; and while a call ran, nobody
/// waited for either.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_program_has_started_ends_with_it_also_in_the_middle_of_a_call() {
    let file = std::env::temp_dir().join(format!("superstep-shell-server-{}", std::process::id()));
    let path = file.to_str().unwrap();
    let wrapped = ["-c", r#"sh -c "$0" server "$1"; true"#, SHELL_SERVER, path];
    let servers = McpServers::new().add("s", McpServer::stdio("sh", wrapped));
    let tools = servers.tools().await.unwrap();
    let call = tokio::spawn(super::answer(tools, "slow", serde_json::json!({})));
    let process = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            match std::fs::read_to_string(&file) {
                Ok(process) if !process.is_empty() => return process,
                _ => tokio::task::yield_now().await,
            }
        }
    });
    let process = process.await.unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(is_alive(&process));
    servers.close().await;
    let gone = async {
        while is_alive(&process) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(1), gone).await.expect("the server was started by what was closed");
    assert!(call.await.unwrap().unwrap_err().contains("broke the connection"));
}
