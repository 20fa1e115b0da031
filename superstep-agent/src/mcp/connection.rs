//! The connection to one server: made when it is needed, and again after it broke.

use std::sync::{Arc, PoisonError};

use rmcp::model::ServerCapabilities;
use rmcp::{Peer, RoleClient, ServiceError};
use tokio::sync::{Mutex, watch};

use super::answers::KnownAnswers;
use super::calls::Calls;
use super::error::{Kind, McpError};
use super::listener::Listener;
use super::server::{McpServer, Reach};
use super::transport::{self, Opened, Service};

pub(super) struct Connection {
    pub(super) name: Arc<str>,
    pub(super) server: McpServer,
    pub(super) shared: Arc<Shared>,
    live: Mutex<State>,
}

/// What all connections of an [`McpServers`](super::McpServers) have together.
pub(super) struct Shared {
    /// Grows when the tools of a server have changed.
    pub(super) changes: watch::Sender<u64>,
    pub(super) answers: KnownAnswers,
}

#[derive(Default)]
struct State {
    live: Option<Arc<Live>>,
    was_live: bool,
}

/// A connection that stands, or did when it was last looked at.
pub(super) struct Live {
    peer: Peer<RoleClient>,
    /// Taken when the connection is closed, whoever still uses it.
    service: std::sync::Mutex<Option<Service>>,
    process: Option<u32>,
    pub(super) calls: Arc<Calls>,
}

impl Live {
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    fn take_service(&self) -> Option<Service> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn has(&self, capability: impl Fn(&ServerCapabilities) -> bool) -> bool {
        self.peer().peer_info().is_some_and(|info| capability(&info.capabilities))
    }
}

impl Connection {
    pub(super) fn new(name: &str, server: McpServer, shared: Arc<Shared>) -> Self {
        Self { name: name.into(), server, shared, live: Mutex::default() }
    }

    /// The connection, which is made if there is none; several who want it at once share one.
    pub(super) async fn live(&self) -> Result<Arc<Live>, McpError> {
        let mut state = self.live.lock().await;
        if let Some(live) = state.live.as_ref().filter(|live| !live.peer().is_transport_closed()) {
            return Ok(live.clone());
        }
        state.live = None;
        let live = Arc::new(self.connect().await?);
        if state.was_live {
            tracing::info!(server = &*self.name, "the MCP server is connected again");
            // It may be another server by now.
            self.shared.changes.send_modify(|version| *version += 1);
        }
        *state = State { live: Some(live.clone()), was_live: true };
        Ok(live)
    }

    /// One request, in the time that it has.
    pub(super) async fn ask<T, F>(&self, request: impl FnOnce(Arc<Live>) -> F) -> Result<T, McpError>
    where
        F: Future<Output = Result<T, ServiceError>>,
    {
        let live = self.live().await?;
        match tokio::time::timeout(self.server.timeout, request(live.clone())).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.fault(&live, error).await),
            Err(_) => Err(McpError::new(&self.name, Kind::TimedOut(self.server.timeout))),
        }
    }

    /// What an error means; a broken connection is not used again.
    pub(super) async fn fault(&self, broken: &Arc<Live>, error: ServiceError) -> McpError {
        let error = McpError::of_service(&self.name, error);
        let error = match &self.server.reach {
            Reach::Http(address) => error.without_secrets(address),
            _ => error,
        };
        if error.is_connection() {
            let mut state = self.live.lock().await;
            if state.live.as_ref().is_some_and(|live| Arc::ptr_eq(live, broken)) {
                state.live = None;
            }
        }
        error
    }

    /// Ends the connection, and the program if one was started. Calls that are under way fail.
    pub(super) async fn close(&self) {
        let live = self.live.lock().await.live.take();
        let Some(service) = live.and_then(|live| live.take_service()) else { return };
        if let Err(error) = service.cancel().await {
            tracing::warn!(server = &*self.name, %error, "the MCP server was not closed in order");
        }
    }

    /// The process of a server that was started and still is connected.
    pub(super) async fn process(&self) -> Option<u32> {
        self.live.lock().await.live.as_ref().filter(|live| !live.peer().is_transport_closed())?.process
    }

    async fn connect(&self) -> Result<Live, McpError> {
        if let Some(mistake) = self.server.mistake {
            return Err(McpError::new(&self.name, Kind::Misdescribed(mistake)));
        }
        let mut pause = self.server.pause;
        let mut tries = 1;
        loop {
            let calls = Arc::<Calls>::default();
            let failed = match transport::open(&self.name, &self.server, self.listener(&calls)).await {
                Ok(Opened { service, process }) => {
                    let (peer, service) = (service.peer().clone(), std::sync::Mutex::new(Some(service)));
                    return Ok(Live { peer, service, process, calls });
                }
                Err(failed) => failed,
            };
            if failed.is_hopeless || tries >= self.server.tries {
                return Err(McpError::new(&self.name, Kind::Unreachable { tries, source: failed.error }));
            }
            tracing::info!(server = &*self.name, ?pause, error = %failed.error, "the MCP server is tried again");
            tokio::time::sleep(pause).await;
            (tries, pause) = (tries + 1, pause.saturating_mul(2));
        }
    }

    fn listener(&self, calls: &Arc<Calls>) -> Listener {
        Listener {
            server: self.name.clone(),
            calls: calls.clone(),
            shared: self.shared.clone(),
            sampling: self.server.sampling.clone(),
        }
    }
}
