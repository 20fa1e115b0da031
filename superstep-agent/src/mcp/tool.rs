//! A tool of a server as a tool of an agent.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::CallToolRequestParams;
use serde_json::Value;

use super::connection::Connection;
use super::{call, content, names};
use crate::tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

#[derive(Clone)]
pub(super) struct McpTool {
    connection: Arc<Connection>,
    /// Its name at the server; the agent may know it by another.
    remote: String,
    spec: ToolSpec,
}

impl McpTool {
    pub(super) fn new(connection: Arc<Connection>, tool: rmcp::model::Tool, name: String) -> Self {
        let description = tool.description.map_or_else(|| tool.title.unwrap_or_default(), Into::into);
        let parameters = Value::Object(Arc::unwrap_or_clone(tool.input_schema));
        let spec = ToolSpec::new(name, description).parameters(parameters);
        Self { connection, remote: tool.name.into_owned(), spec }
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn giving_way(&self) -> Option<Arc<dyn Tool>> {
        let mut aside = self.clone();
        aside.spec.name = names::prefixed(&self.connection.name, &self.remote);
        Some(Arc::new(aside))
    }

    async fn call(&self, args: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let params = CallToolRequestParams::new(self.remote.clone());
        let params = match args {
            Value::Object(args) => params.with_arguments(args),
            Value::Null => params,
            other => return Err(ToolError::invalid(format!("the arguments are no JSON object: {other}"))),
        };
        call::run(&self.connection, params, &cx).await.map(content::output)
    }
}
