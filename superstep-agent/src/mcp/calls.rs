//! The calls that a server is carrying out, so that what it sends in between finds its way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CancelledNotification, CancelledNotificationParam, ClientRequest, ProgressNotificationParam,
    ProgressToken, Request, RequestId, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, ServiceError};
use tokio::sync::{RwLock, mpsc, oneshot};

use super::connection::Live;
use super::elicitation::{Asked, ElicitationAnswer};

/// How much of what a server sends may wait for a call that is busy.
const WAITING: usize = 64;

#[derive(Default)]
pub(super) struct Calls {
    list: Mutex<HashMap<RequestId, Entry>>,
    /// Held from before a call is sent until it is in the list: what a server sends at once must find it.
    sending: RwLock<()>,
}

struct Entry {
    token: ProgressToken,
    task: Arc<str>,
    tell: mpsc::Sender<Heard>,
}

/// What a server sends in the middle of a call.
pub(super) enum Heard {
    Progress(ProgressNotificationParam),
    Question(Box<Asked>, Whose, oneshot::Sender<ElicitationAnswer>),
}

/// How surely a question belongs to the call that hears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The question says so.
    Named,
    /// There is no other call.
    Only,
    /// It may belong to another call of the same task.
    OneOfTask,
}

/// What happens next in a call.
pub(super) enum Next {
    Heard(Heard),
    Ended(Result<ServerResult, ServiceError>),
}

impl Calls {
    /// Tells a call of its progress. If it has too much to do already, it need not hear of it.
    pub(super) async fn progress(&self, progress: ProgressNotificationParam) {
        let _nobody_sends = self.sending.write().await;
        let list = self.list();
        if let Some(entry) = list.values().find(|entry| entry.token == progress.progress_token) {
            let _ = entry.tell.try_send(Heard::Progress(progress));
        }
    }

    /// The call that a question belongs to: the one that is named, or else the only one there is. Calls of one task
    /// stand for each other, because the task pauses as a whole.
    ///
    /// # Errors
    /// Why there is none, for the server.
    pub(super) async fn asked(&self, origin: Option<&RequestId>) -> Result<(mpsc::Sender<Heard>, Whose), &'static str> {
        let _nobody_sends = self.sending.write().await;
        let list = self.list();
        if let Some(entry) = origin.and_then(|id| list.get(id)) {
            return Ok((entry.tell.clone(), Whose::Named));
        }
        let mut entries = list.values();
        let first = entries.next().ok_or("questions are only answered while a tool is called")?;
        if entries.any(|entry| entry.task != first.task) {
            return Err("several runs call tools, and the question does not say whom it is for");
        }
        Ok((first.tell.clone(), if list.len() == 1 { Whose::Only } else { Whose::OneOfTask }))
    }

    fn list(&self) -> MutexGuard<'_, HashMap<RequestId, Entry>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call on its way. If it is dropped, the server is told to stop.
pub(super) struct Call {
    live: Arc<Live>,
    handle: RequestHandle<RoleClient>,
    heard: mpsc::Receiver<Heard>,
    is_open: bool,
}

impl Call {
    /// Sends a call of a task.
    pub(super) async fn start(
        live: Arc<Live>,
        params: CallToolRequestParams,
        task: Arc<str>,
    ) -> Result<Self, ServiceError> {
        let request = ClientRequest::CallToolRequest(Request::new(params));
        let (tell, heard) = mpsc::channel(WAITING);
        let handle = {
            let _sending = live.calls.sending.read().await;
            let handle = live.peer().send_request_with_option(request, PeerRequestOptions::no_options()).await?;
            let entry = Entry { token: handle.progress_token.clone(), task, tell };
            live.calls.list().insert(handle.id.clone(), entry);
            handle
        };
        Ok(Self { live, handle, heard, is_open: true })
    }

    /// What happens next. What was sent before the answer comes before it.
    pub(super) async fn next(&mut self) -> Next {
        tokio::select! {
            biased;
            Some(heard) = self.heard.recv() => Next::Heard(heard),
            answer = &mut self.handle.rx => {
                self.is_open = false;
                Next::Ended(answer.unwrap_or(Err(ServiceError::TransportClosed)))
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.live.calls.list().remove(&self.handle.id);
        let runtime = tokio::runtime::Handle::try_current();
        if let (true, Ok(runtime)) = (self.is_open, runtime) {
            let reason = "the result is not needed any more".to_owned();
            let params = CancelledNotificationParam::new(Some(self.handle.id.clone()), Some(reason));
            // The connection may have been used by this call only: it must stand until the server is told.
            let live = self.live.clone();
            runtime.spawn(async move {
                // A server that is gone needs not be told.
                drop(live.peer().send_notification(CancelledNotification::new(params).into()).await);
            });
        }
    }
}
