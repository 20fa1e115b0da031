//! A small MCP server with one tool for each thing that a server can do in a call.
#![expect(deprecated, reason = "servers go on to ask models")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam, ContentBlock,
    CreateMessageRequestParams, ElicitRequestParams, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    ListPromptsResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, Prompt,
    PromptArgument, PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, Role, SamplingMessage, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use superstep::CancellationToken;
use superstep_agent::mcp::{McpServer, McpServers};
use tokio::sync::Notify;

/// The server, and what it has seen.
#[derive(Clone, Default)]
pub(super) struct Desk(Arc<Seen>);

#[derive(Default)]
pub(super) struct Seen {
    pub(super) connections: AtomicUsize,
    pub(super) calls: AtomicUsize,
    /// A call that waits has begun.
    pub(super) waits: Notify,
    /// The client has cancelled a call.
    pub(super) cancelled: Notify,
    has_more: AtomicUsize,
    also: Mutex<Vec<&'static str>>,
    end: Mutex<CancellationToken>,
}

impl std::ops::Deref for Desk {
    type Target = Seen;
    fn deref(&self) -> &Seen {
        &self.0
    }
}

impl Desk {
    pub(super) fn server(&self) -> McpServer {
        let desk = self.clone();
        McpServer::pipe(move || {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            desk.open(theirs);
            async { Ok(ours) }
        })
    }

    pub(super) fn servers(&self) -> McpServers {
        McpServers::new().add("desk", self.server())
    }

    /// Has more tools, which say what they are called.
    pub(super) fn also(self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.also.lock().unwrap().extend(names);
        self
    }

    /// Breaks the connection that was opened last.
    pub(super) fn die(&self) {
        self.end.lock().unwrap().cancel();
    }

    fn open(&self, mut client: tokio::io::DuplexStream) {
        self.connections.fetch_add(1, Ordering::SeqCst);
        let end = CancellationToken::new();
        *self.end.lock().unwrap() = end.clone();
        let (mut cable, plug) = tokio::io::duplex(1 << 16);
        let desk = self.clone();
        tokio::spawn(async move { desk.serve(tokio::io::split(plug)).await.unwrap().waiting().await });
        // What is in the cable when it is cut is lost.
        tokio::spawn(async move {
            end.run_until_cancelled(tokio::io::copy_bidirectional(&mut client, &mut cable)).await.is_some()
        });
    }
}

fn tool(name: &'static str) -> Tool {
    let Value::Object(schema) = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "x-own": 1 })
    else {
        unreachable!()
    };
    Tool::new(name, format!("Does {name}."), schema)
}

fn said(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

fn failed(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

async fn ask(message: &str, cx: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    let schema = json!({ "type": "object", "properties": { "seat": { "type": "string" } }, "required": ["seat"] });
    let params: ElicitRequestParams =
        serde_json::from_value(json!({ "message": message, "requestedSchema": schema })).unwrap();
    let answer = cx.peer.create_elicitation(params).await.map_err(failed)?;
    Ok(format!("{:?} {}", answer.action, answer.content.unwrap_or_default()))
}

async fn sample(cx: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text("Which tea?")], 10);
    let answer = cx.peer.create_message(params).await.map_err(failed)?;
    Ok(serde_json::to_value(answer).unwrap()["content"]["text"].as_str().unwrap().to_owned())
}

async fn steps(pause: Duration, cx: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let token = cx.meta.get_progress_token().expect("every call has one");
    for step in 1..=3 {
        tokio::time::sleep(pause).await;
        let progress = ProgressNotificationParam::new(token.clone(), f64::from(step)).with_total(3.0);
        cx.peer.notify_progress(progress.with_message(format!("step {step}"))).await.map_err(failed)?;
    }
    Ok(())
}

fn everything() -> CallToolResult {
    let mut result = CallToolResult::success(vec![
        ContentBlock::text("see:"),
        ContentBlock::image("aW1n", "image/png"),
        ContentBlock::audio("c25k", "audio/wav"),
        ContentBlock::embedded_text("desk://note", "a note"),
        ContentBlock::resource(ResourceContents::blob("cGRm", "desk://pdf").with_mime_type("application/pdf")),
        ContentBlock::resource_link(Resource::new("desk://more", "more").with_description("There is more.")),
    ]);
    result.structured_content = Some(json!({ "seen": 6 }));
    result
}

impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder();
        ServerConfig::new(can.enable_tools().enable_tool_list_changed().enable_prompts().enable_resources().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut names =
            vec!["echo", "everything", "fail", "wait", "steps", "crawl", "ask", "ask_twice", "sample", "grow", "data"];
        names.extend((self.has_more.load(Ordering::SeqCst) > 0).then_some("grown"));
        names.extend(&*self.also.lock().unwrap());
        Ok(ListToolsResult::with_all_items(names.into_iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let args = request.arguments.unwrap_or_default();
        let text = args.get("text").and_then(Value::as_str).unwrap_or_default();
        match &*request.name {
            "echo" if text.is_empty() => Err(ErrorData::invalid_params("`text` is missing", None)),
            "echo" | "grown" => said(text),
            "everything" => Ok(everything().into()),
            "data" => {
                let mut result = CallToolResult::success(Vec::new());
                result.structured_content = Some(json!({ "n": 1 }));
                Ok(result.into())
            }
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("no such flight")]).into()),
            "wait" => {
                self.waits.notify_one();
                cx.ct.cancelled().await;
                Err(failed("cancelled"))
            }
            "crawl" => steps(Duration::from_secs(3), &cx).await.and_then(|()| said("done")),
            "steps" => steps(Duration::ZERO, &cx).await.and_then(|()| said("done")),
            "ask" => said(ask(if text.is_empty() { "Which seat?" } else { text }, &cx).await?),
            "ask_twice" => said([ask("Which seat?", &cx).await?, ask("And back?", &cx).await?].join(", ")),
            "sample" => said(sample(&cx).await?),
            "grow" => {
                self.has_more.fetch_add(1, Ordering::SeqCst);
                cx.peer.notify_tool_list_changed().await.map_err(failed)?;
                said("grown")
            }
            also if self.also.lock().unwrap().contains(&also) => said(also),
            other => Err(ErrorData::invalid_params(format!("unknown tool {other}"), None)),
        }
    }

    async fn on_cancelled(&self, params: CancelledNotificationParam, _: NotificationContext<RoleServer>) {
        assert_eq!(params.reason.as_deref(), Some("the result is not needed any more"));
        self.cancelled.notify_one();
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new("desk://note", "note").with_mime_type("text/plain")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match &*request.uri {
            "desk://note" => Ok(ReadResourceResult::new(vec![
                ResourceContents::text("a note", "desk://note"),
                ResourceContents::blob("aW1n", "desk://png").with_mime_type("image/png"),
            ])
            .into()),
            other => Err(ErrorData::resource_not_found(format!("no {other}"), None)),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = vec![PromptArgument::new("city").with_required(true), PromptArgument::new("tone")];
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("trip", Some("Plans a trip."), Some(arguments))]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let city = request.arguments.unwrap_or_default()["city"].as_str().unwrap_or_default().to_owned();
        let messages = vec![
            PromptMessage::new_text(Role::User, format!("I want to see {city}.")),
            PromptMessage::new_text(Role::Assistant, "When?"),
        ];
        Ok(GetPromptResult::new(messages).into())
    }
}
