//! What a server may ask of us, and tell us unasked.
#![expect(deprecated, reason = "servers go on to ask models and to log, whatever the protocol wants to become")]

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomRequest, CustomResult,
    ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode, FormElicitationCapability, Implementation,
    LoggingMessageNotificationParam, ProgressNotificationParam, SamplingCapability, UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use tokio::sync::oneshot;

use super::calls::{Calls, Heard};
use super::connection::Shared;
use super::elicitation::Asked;
use super::sampling;
use crate::model::ChatModel;

/// Our side of a connection.
pub(super) struct Listener {
    pub(super) server: Arc<str>,
    pub(super) calls: Arc<Calls>,
    pub(super) shared: Arc<Shared>,
    pub(super) sampling: Option<Arc<dyn ChatModel>>,
}

impl Listener {
    /// Lets the call that a question belongs to find the answer.
    async fn pass_on(&self, asked: Asked, context: &RequestContext<RoleClient>) -> Result<ElicitResult, ErrorData> {
        let origin = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            _ => None,
        };
        let (call, whose) = self.calls.asked(origin).await.map_err(|why| ErrorData::invalid_request(why, None))?;
        let (reply, answer) = oneshot::channel();
        let is_over = |()| ErrorData::internal_error("the call pauses until the user has answered", None);
        call.send(Heard::Question(Box::new(asked), whose, reply)).await.map_err(|_| is_over(()))?;
        answer.await.map(Into::into).map_err(|_| is_over(()))
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        let elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::new());
        can.elicitation = Some(elicitation.with_url(UrlElicitationCapability::new()));
        can.sampling = self.sampling.as_ref().map(|_| SamplingCapability::default());
        ClientConfig::new(can, Implementation::new("superstep", env!("CARGO_PKG_VERSION")))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let unknown = || ErrorData::invalid_params("this kind of question is not known", None);
        self.pass_on(Asked::new(request).ok_or_else(unknown)?, &context).await
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        match &self.sampling {
            Some(model) => sampling::ask(&**model, params).await,
            None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "there is no model for servers to ask", None)),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let unknown = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method.clone(), None);
        if request.method != "elicitation/create" {
            return Err(unknown());
        }
        let asked = Asked::from_json(request.params.clone()).ok_or_else(unknown)?;
        let answer = self.pass_on(asked, &context).await?;
        serde_json::to_value(answer).map(CustomResult::new).map_err(|e| ErrorData::internal_error(e.to_string(), None))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.calls.progress(params).await;
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.shared.changes.send_modify(|version| *version += 1);
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        tracing::info!(server = &*self.server, level = ?params.level, logger = params.logger, "{}", params.data);
    }
}
