//! What clients can ask of a [`ToolServer`].

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use super::{Failed, ToolServer};

#[derive(Clone)]
pub(super) struct Handler(Arc<ToolServer>);

impl Handler {
    pub(super) fn new(server: ToolServer) -> Self {
        Self(Arc::new(server))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new(self.0.name.clone(), env!("CARGO_PKG_VERSION"));
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.tools.iter().map(|served| served.tool.clone()).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.0.tools.iter().find(|served| served.tool.name == name).map(|served| served.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let served = self.0.tools.iter().find(|served| served.tool.name == request.name);
        let unknown = || ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None);
        let run = (served.ok_or_else(unknown)?.run)(Value::Object(request.arguments.unwrap_or_default()));
        tokio::select! {
            ended = run => result(ended).map(Into::into),
            // The run is dropped, and with it all that it does.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
        }
    }
}

fn result(ended: Result<CallToolResult, Failed>) -> Result<CallToolResult, ErrorData> {
    match ended {
        Ok(result) => Ok(result),
        Err(Failed::Arguments(why)) => Err(ErrorData::invalid_params(why, None)),
        Err(Failed::Graph(error)) => {
            tracing::warn!(%error, "a graph that was called as a tool failed");
            Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())]))
        }
    }
}
