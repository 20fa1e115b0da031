//! Streamable HTTP for a [`ToolServer`].

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use superstep::CancellationToken;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::ToolServer;
use super::handler::Handler;

/// How long nobody is accepted after an error.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn serve(server: ToolServer, listener: TcpListener) -> io::Result<()> {
    let end = CancellationToken::new();
    let _ends_sessions = end.clone().drop_guard();
    let mut config = StreamableHttpServerConfig::default();
    config.cancellation_token = end;
    config.allowed_hosts.extend(server.hosts.iter().cloned());
    let handler = Handler::new(server);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let stream = match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // A client that is gone, or too many open files: the others are served on.
                        tracing::warn!(%error, ?PAUSE, "a connection of an MCP client was not accepted");
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                };
                let service = TowerToHyperService::new(service.clone());
                clients.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
            Some(ended) = clients.join_next() => {
                if let Ok(Err(error)) = ended {
                    tracing::debug!(%error, "the connection to an MCP client broke");
                }
            }
        }
    }
}
