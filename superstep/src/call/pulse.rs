//! Signs of life of a node, for its idle timeout.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::lock;

/// When a node last showed that it is alive.
pub(crate) struct Pulse {
    last: Mutex<Instant>,
    heartbeat_only: bool,
}

impl Pulse {
    pub(crate) fn new(heartbeat_only: bool) -> Self {
        Self { last: Mutex::new(Instant::now()), heartbeat_only }
    }

    /// Anything that the node does.
    pub(crate) fn sign_of_life(&self) {
        if !self.heartbeat_only {
            self.heartbeat();
        }
    }

    pub(crate) fn heartbeat(&self) {
        *lock(&self.last) = Instant::now();
    }

    /// Ends when there was no sign of life for `limit`.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            let until = *lock(&self.last) + limit;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}
