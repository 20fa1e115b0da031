//! What can be put into an agent's loop: before and after the model, and around calls of models and tools.

mod approval;
mod fallback;
mod limits;
mod redact;
mod retry_model;
mod speaker;
mod summarize;
mod waiting;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use superstep::{BoxError, Context, Conversation, IntoUpdate, Message, ToolCall, Update};

use crate::model::{ChatModel, ChatRequest, ModelError, ask_beside};
use crate::tool::{Tool, ToolContext, ToolError, ToolOutput};
pub use approval::{
    Action, ActionRequest, Approval, ApprovalAnswer, ApprovalRequest, Decision, DecisionKind, Decisions, ReviewConfig,
};
pub use fallback::Fallback;
pub use limits::{LimitReached, Limits, OnLimit, Per};
pub use redact::{Blocked, Place, Redact, Redaction, Sensitive};
pub use retry_model::RetryModel;
use speaker::Speaker;
pub use summarize::{HistoryLimit, Summarize};
pub(crate) use waiting::{settled_last, why_not_called};

/// A part of an agent's loop.
///
/// Hooks before and after are nodes of the graph: what they did is saved, and they may ask humans. They run only if
/// [`hooks`](Middleware::hooks) names them. What is around a call is inside the node that calls.
///
/// ```
/// use async_trait::async_trait;
/// use superstep::{Conversation, Message};
/// use superstep_agent::middleware::{AskModel, Middleware, ModelAsk};
/// use superstep_agent::ModelError;
///
/// /// Lets the model know what time it is.
/// struct Clock;
///
/// #[async_trait]
/// impl<S: Conversation> Middleware<S> for Clock {
///     fn name(&self) -> &str { "clock" }
///     async fn around_model(&self, mut ask: ModelAsk<S>, next: AskModel<'_, S>) -> Result<Message, ModelError> {
///         ask.request.messages.insert(0, Message::system("It is noon."));
///         next.ask(ask).await
///     }
/// }
/// ```
#[async_trait]
pub trait Middleware<S: Conversation>: Send + Sync + 'static {
    /// Its name; the names of its nodes begin with it.
    fn name(&self) -> &str;

    /// The hooks that it has.
    fn hooks(&self) -> Hooks {
        Hooks::default()
    }

    /// Tools that it brings.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Once, before everything.
    async fn before_agent(&self, state: Arc<S>, cx: Context) -> Result<Turn<S>, BoxError> {
        let _ = (state, cx);
        Ok(Turn::go_on())
    }

    /// Before each call of the model, the last one for a structured response included.
    async fn before_model(&self, state: Arc<S>, cx: Context) -> Result<Turn<S>, BoxError> {
        let _ = (state, cx);
        Ok(Turn::go_on())
    }

    /// After each call of the model.
    async fn after_model(&self, state: Arc<S>, cx: Context) -> Result<Turn<S>, BoxError> {
        let _ = (state, cx);
        Ok(Turn::go_on())
    }

    /// Once, after everything.
    async fn after_agent(&self, state: Arc<S>, cx: Context) -> Result<Turn<S>, BoxError> {
        let _ = (state, cx);
        Ok(Turn::go_on())
    }

    /// Around each call of the model: it may change the question and the answer, ask again, or not ask at all.
    async fn around_model(&self, ask: ModelAsk<S>, next: AskModel<'_, S>) -> Result<Message, ModelError> {
        next.ask(ask).await
    }

    /// Around each call of a tool: it may change the call and the result, call again, or not call at all.
    async fn around_tool(&self, ask: ToolAsk<S>, next: CallTool<'_, S>) -> Result<ToolOutput, ToolError> {
        next.call(ask).await
    }

    /// The words with which the model is told that a tool failed, before anybody hears them.
    fn tell_error(&self, words: String) -> String {
        words
    }
}

/// Which hooks a [`Middleware`] has.
///
/// ```
/// use superstep_agent::middleware::Hooks;
/// let hooks = Hooks { before_model: true, ..Hooks::default() };
/// assert!(!hooks.after_model);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hooks {
    /// [`Middleware::before_agent`]
    pub before_agent: bool,
    /// [`Middleware::before_model`]
    pub before_model: bool,
    /// [`Middleware::after_model`]
    pub after_model: bool,
    /// [`Middleware::after_agent`]
    pub after_agent: bool,
}

/// What a hook wants: a change of the state, and where to go on, if not as usual.
///
/// ```
/// use superstep::Message;
/// use superstep_agent::{middleware::{Jump, Turn}, ReactState};
/// let stop = Turn::<ReactState>::say([Message::assistant("That is enough.")]).jump(Jump::End);
/// # let _ = stop;
/// ```
pub struct Turn<S: Conversation> {
    pub(crate) messages: Vec<Message>,
    pub(crate) update: Update<S>,
    pub(crate) jump: Option<Jump>,
}

crate::debug::debug_parts!([S: Conversation] Turn<S>, "Turn", this => { messages: this.messages, writes: this.update.puts().len(), jump: this.jump });

/// Where a hook can go on.
///
/// ```
/// assert_ne!(superstep_agent::middleware::Jump::Model, superstep_agent::middleware::Jump::End);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// At the next call of the model.
    Model,
    /// With the tool calls that have no answer.
    Tools,
    /// At the end.
    End,
}

impl<S: Conversation> Turn<S> {
    /// As usual.
    pub fn go_on() -> Self {
        Self { messages: Vec::new(), update: Update::new(), jump: None }
    }

    /// With a change of the state.
    pub fn update(update: impl IntoUpdate<S>) -> Self {
        Self { update: update.into_update(), ..Self::go_on() }
    }

    /// With more messages, or changed ones. New words of a model carry the agent's name.
    pub fn say(messages: impl IntoIterator<Item = Message>) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::go_on() }
    }

    /// And goes on there.
    pub fn jump(mut self, to: Jump) -> Self {
        self.jump = Some(to);
        self
    }
}

/// A call of a model that is about to be made.
#[non_exhaustive]
pub struct ModelAsk<S: Conversation> {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// What it is asked.
    pub request: ChatRequest,
    /// The state.
    pub state: Arc<S>,
    /// The context of the node.
    pub cx: Context,
    wraps: Vec<WrapModel>,
    own_tools: Arc<[String]>,
}

crate::debug::debug_parts!([S: Conversation] ModelAsk<S>, "ModelAsk", this => { request: this.request });

type WrapModel = Arc<dyn Fn(Arc<dyn ChatModel>) -> Arc<dyn ChatModel> + Send + Sync>;

impl<S: Conversation> Clone for ModelAsk<S> {
    fn clone(&self) -> Self {
        let Self { model, request, state, cx, wraps, own_tools } = self;
        let (model, request, state, cx) = (model.clone(), request.clone(), state.clone(), cx.clone());
        Self { model, request, state, cx, wraps: wraps.clone(), own_tools: own_tools.clone() }
    }
}

impl<S: Conversation> ModelAsk<S> {
    pub(crate) fn new(model: Arc<dyn ChatModel>, request: ChatRequest, state: Arc<S>, cx: Context) -> Self {
        Self { model, request, state, cx, wraps: Vec::new(), own_tools: Arc::new([]) }
    }

    /// For an agent with these tools of its own.
    pub(crate) fn own_tools(mut self, names: Arc<[String]>) -> Self {
        self.own_tools = names;
        self
    }

    /// Whether a name is that of one of the agent's own tools.
    #[cfg(feature = "mcp")]
    pub(crate) fn is_own(&self, tool: &str) -> bool {
        self.own_tools.iter().any(|own| own == tool)
    }

    /// Wraps whatever model is asked in the end, also if somebody further inside asks another one than
    /// [`model`](ModelAsk::model). What was wrapped first is outermost.
    pub fn wrap_model(&mut self, wrap: impl Fn(Arc<dyn ChatModel>) -> Arc<dyn ChatModel> + Send + Sync + 'static) {
        self.wraps.push(Arc::new(wrap));
    }

    /// Asks the model, with all that is around it.
    async fn send(self, speaker: Option<&str>) -> Result<Message, ModelError> {
        let model = self.wraps.iter().rev().fold(self.model, |model, wrap| wrap(model));
        // The request may hold less than the conversation.
        let is_taken = |id: &str| self.state.conversation().iter().any(|message| message.id.as_deref() == Some(id));
        match speaker {
            Some(name) => ask_beside(&Speaker::new(model, name), self.request, &is_taken).await,
            None => ask_beside(&*model, self.request, &is_taken).await,
        }
    }
}

/// A call of a tool that is about to be made.
#[non_exhaustive]
pub struct ToolAsk<S: Conversation> {
    /// The call.
    pub call: ToolCall,
    /// The tool; nothing if there is none of that name.
    pub tool: Option<Arc<dyn Tool>>,
    /// The state.
    pub state: Arc<S>,
    /// The context of the node, in which questions around this call are apart from those of others.
    pub cx: Context,
    node: Context,
}

crate::debug::debug_parts!([S: Conversation] ToolAsk<S>, "ToolAsk", this => { call: this.call, is_known: this.tool.is_some() });

impl<S: Conversation> Clone for ToolAsk<S> {
    fn clone(&self) -> Self {
        let Self { call, tool, state, cx, node } = self;
        Self { call: call.clone(), tool: tool.clone(), state: state.clone(), cx: cx.clone(), node: node.clone() }
    }
}

impl<S: Conversation> ToolAsk<S> {
    pub(crate) fn new(call: ToolCall, tool: Option<Arc<dyn Tool>>, state: Arc<S>, node: Context) -> Self {
        let cx = node.scoped("around").scoped(&call.id);
        Self { call, tool, state, cx, node }
    }

    /// What the tool knows of the run, for one try.
    pub(crate) fn tool_context(&self) -> ToolContext {
        ToolContext::new(self.node.clone(), self.call.clone(), self.state.clone())
    }
}

type Layers<'a, S> = &'a [Arc<dyn Middleware<S>>];
pub(crate) type ToolEnd<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// The rest of the way to a model; it may be gone several times.
pub struct AskModel<'a, S: Conversation> {
    rest: Layers<'a, S>,
    /// The name that the words of the model carry.
    speaker: Option<&'a str>,
}

crate::debug::debug_parts!([S: Conversation] AskModel<'_, S>, "AskModel", this => { layers: this.rest.len(), speaker: this.speaker });

impl<'a, S: Conversation> AskModel<'a, S> {
    pub(crate) fn new(rest: Layers<'a, S>, speaker: Option<&'a str>) -> Self {
        Self { rest, speaker }
    }

    /// Asks the model.
    pub async fn ask(&self, ask: ModelAsk<S>) -> Result<Message, ModelError> {
        let speaker = self.speaker;
        match self.rest.split_first() {
            Some((first, rest)) => first.around_model(ask, AskModel { rest, speaker }).await,
            None => ask.send(speaker).await,
        }
    }
}

/// The rest of the way to a tool; it may be gone several times.
pub struct CallTool<'a, S: Conversation> {
    rest: Layers<'a, S>,
    last: &'a (dyn Fn(ToolAsk<S>) -> ToolEnd<'a> + Send + Sync),
}

crate::debug::debug_parts!([S: Conversation] CallTool<'_, S>, "CallTool", this => { layers: this.rest.len() });

impl<'a, S: Conversation> CallTool<'a, S> {
    pub(crate) fn new(rest: Layers<'a, S>, last: &'a (dyn Fn(ToolAsk<S>) -> ToolEnd<'a> + Send + Sync)) -> Self {
        Self { rest, last }
    }

    /// Calls the tool.
    pub async fn call(&self, ask: ToolAsk<S>) -> Result<ToolOutput, ToolError> {
        match self.rest.split_first() {
            Some((first, rest)) => first.around_tool(ask, CallTool { rest, last: self.last }).await,
            None => (self.last)(ask).await,
        }
    }
}
