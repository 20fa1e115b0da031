//! The node that carries out what a model wants to call.

mod events;

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use superstep::{
    BoxError, Command, Context, Conversation, END, Interrupted, IntoOutcome, Next, Node, NodeInput, Outcome, START,
    StateGraph, ToolCall,
};
use tokio::sync::Semaphore;

use crate::middleware::{CallTool, Middleware, ToolAsk};
use crate::tool::{
    IntoTools, OnToolError, Tool, ToolError, ToolOutput, Tools, open_calls, or_only_leaving, unknown_tool,
};
use events::CallEvents;

/// Carries out the tool calls of the last message, all at once, and answers each of them.
///
/// Reached by an edge it takes the calls that have no answer yet; reached by a [`Send`](superstep::Send) of a
/// [`ToolCall`] it takes that one.
///
/// # Questions
///
/// If a tool asks a human, the others go on to their ends. Agents that are called as tools may all ask: their questions
/// are open at once, and are answered by their ids. Of tools that ask by themselves in one node that was reached by an
/// edge, one asks after the other; and when the answer comes, all calls of that node are made again. Reached by a
/// [`Send`](superstep::Send) for each call, as in [`create_react_agent`](crate::create_react_agent), each asks for itself
/// and only those that asked are called again.
///
/// ```
/// use superstep::{AgentState, Message, StateGraph, ToolCall, START};
/// use superstep_agent::{tool, ToolNode};
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 { a + b }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("tools", ToolNode::new([add])).add_edge(START, "tools").compile()?;
/// let call = ToolCall::new("c1", "add", serde_json::json!({ "a": 1, "b": 2 }));
/// let out = app.invoke(AgentState { messages: vec![Message::calls("", [call])] }).await?;
/// assert_eq!(out.state.messages[1].text(), "3");
/// # Ok(())
/// # }
/// ```
pub struct ToolNode<S: Conversation> {
    tools: Arc<Tools>,
    settings: CallSettings,
    at_once: Option<Arc<Semaphore>>,
    mistakes: Vec<String>,
    around: Arc<[Arc<dyn Middleware<S>>]>,
}

crate::debug::debug_parts!([S: Conversation] ToolNode<S>, "ToolNode", this => { tools: this.tools.names() });

/// How each call is carried out.
#[derive(Debug, Clone)]
struct CallSettings {
    on_error: OnToolError,
    timeout: Option<Duration>,
    retries: u32,
    pause: Duration,
}

impl<S: Conversation> Clone for ToolNode<S> {
    fn clone(&self) -> Self {
        Self {
            tools: self.tools.clone(),
            settings: self.settings.clone(),
            at_once: self.at_once.clone(),
            mistakes: self.mistakes.clone(),
            around: self.around.clone(),
        }
    }
}

impl<S: Conversation> Default for ToolNode<S> {
    /// A node without tools.
    fn default() -> Self {
        let settings = CallSettings {
            on_error: OnToolError::default(),
            timeout: None,
            retries: 0,
            pause: Duration::from_millis(500),
        };
        Self { tools: Arc::default(), settings, at_once: None, mistakes: Vec::new(), around: Arc::new([]) }
    }
}

impl<S: Conversation> ToolNode<S> {
    /// A node with these tools: see [`IntoTools`]. With `()` it has none.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use superstep::AgentState;
    /// use superstep_agent::{tool, Tool, ToolNode};
    ///
    /// /// Adds two numbers.
    /// #[tool]
    /// fn add(a: i64, b: i64) -> i64 { a + b }
    /// /// Greets somebody.
    /// #[tool]
    /// fn greet(name: String) -> String { format!("hello, {name}") }
    ///
    /// let both = ToolNode::<AgentState>::new((add, greet));
    /// let found_at_run_time: Vec<Arc<dyn Tool>> = vec![Arc::new(add), Arc::new(greet)];
    /// let both = ToolNode::<AgentState>::new(found_at_run_time);
    /// let both = ToolNode::<AgentState>::new([add]).tool(greet);
    /// # let _ = both;
    /// ```
    pub fn new(tools: impl IntoTools) -> Self {
        Self::default().tools(tools.into_tools())
    }

    /// With one more tool. Two of one name are a mistake that [`compile`](superstep::StateGraph::compile) reports, unless
    /// one of them [gives way](Tool::giving_way).
    pub fn tool(mut self, tool: impl Tool) -> Self {
        Arc::make_mut(&mut self.tools).add(Arc::new(tool));
        self
    }

    /// With several more tools, of which only the trait is known.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        tools.into_iter().for_each(|tool| Arc::make_mut(&mut self.tools).add(tool));
        self
    }

    /// What becomes of errors; see [`OnToolError`].
    pub fn on_error(mut self, policy: impl Into<OnToolError>) -> Self {
        self.settings.on_error = policy.into();
        self
    }

    /// How long each call may take.
    pub fn timeout(mut self, limit: Duration) -> Self {
        if limit.is_zero() {
            self.mistakes.push("the timeout of its tools is zero; give them time, or leave it out".to_owned());
        }
        self.settings.timeout = Some(limit);
        self
    }

    /// How often a call that failed is tried again. The pause before doubles each time; calls whose arguments do not
    /// fit are not repeated.
    pub fn retries(mut self, retries: u32, first_pause: Duration) -> Self {
        (self.settings.retries, self.settings.pause) = (retries, first_pause);
        self
    }

    /// How many calls of this node may run at the same time, in all runs together.
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        if calls == 0 {
            self.mistakes.push("`max_concurrency(0)` lets no tool run; allow at least one call".to_owned());
        }
        self.at_once = Some(Arc::new(Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS))));
        self
    }

    /// With middleware around each call; the first is the outermost.
    pub fn around(mut self, middleware: impl IntoIterator<Item = Arc<dyn Middleware<S>>>) -> Self {
        self.around = middleware.into_iter().collect();
        self
    }

    pub(crate) fn all_tools(&self) -> &Arc<Tools> {
        &self.tools
    }

    async fn answer(&self, call: ToolCall, state: Arc<S>, cx: &Context) -> Result<Command<S>, BoxError> {
        let _place = match &self.at_once {
            Some(places) => places.acquire().await.ok(),
            None => None,
        };
        let tool = self.tools.get(&call.name).cloned();
        let ask = ToolAsk::new(call.clone(), tool, state, cx.clone());
        let events = CallEvents::new(cx, &call, &self.around);
        let result = CallTool::new(&self.around, &|ask| Box::pin(self.carry_out(ask, &events))).call(ask).await;
        if let Some(event) = events.end(&result) {
            cx.emit_tool(event).await;
        }
        let output = match result {
            Ok(output) => output,
            Err(error) => {
                let words = self.settings.on_error.answer(error, &call)?;
                ToolOutput::error(self.around.iter().rev().fold(words, |words, layer| layer.tell_error(words)))
            }
        };
        into_command(output, &call).map_err(Into::into)
    }

    /// The call itself, as often and as long as it may.
    async fn carry_out(&self, ask: ToolAsk<S>, events: &CallEvents<'_, S>) -> Result<ToolOutput, ToolError> {
        let Some(tool) = &ask.tool else {
            return Ok(ToolOutput::error(unknown_tool(&ask.call.name, &self.tools.names())));
        };
        let mut pause = self.settings.pause;
        let mut left = self.settings.retries;
        loop {
            events.started(&ask.call.args).await;
            let error = match self.in_time(tool.call(ask.call.args.clone(), ask.tool_context())).await {
                Ok(output) => return Ok(output),
                Err(error) => error,
            };
            events.failed(&error).await;
            if left == 0 || !is_worth_another_try(&error) {
                return Err(error);
            }
            // Its words may hold what a middleware takes out.
            let why = error.kind();
            tracing::info!(tool = ask.call.name, ?pause, why, "the tool failed and is called again");
            tokio::time::sleep(pause).await;
            (left, pause) = (left - 1, pause.saturating_mul(2));
        }
    }

    async fn in_time(
        &self,
        call: impl Future<Output = Result<ToolOutput, ToolError>>,
    ) -> Result<ToolOutput, ToolError> {
        let Some(limit) = self.settings.timeout else { return call.await };
        match tokio::time::timeout(limit, call).await {
            Ok(ended) => ended,
            Err(_) => Err(ToolError::TimedOut(limit)),
        }
    }
}

fn is_worth_another_try(error: &ToolError) -> bool {
    match error {
        ToolError::Failed(error) => !error.is::<Interrupted>(),
        ToolError::TimedOut(_) => true,
        ToolError::InvalidArguments(_) => false,
    }
}

#[async_trait]
impl<S: Conversation> Node<S> for ToolNode<S> {
    fn id(&self) -> &'static str {
        "tools"
    }

    /// Answers the calls of the last message outside of any graph: in one of its own, that ends with it.
    async fn run(&self, state: S) -> Result<(S, Next), BoxError> {
        let app = StateGraph::<S>::new().add(self.clone()).add_edge(START, "tools").compile()?;
        let out = app.invoke(state).await?;
        if !out.interrupts.is_empty() {
            return Err(
                "a tool asks a question; run the node in a graph with a checkpointer, where it can be answered".into(),
            );
        }
        Ok((out.state, Next::Continue))
    }

    async fn call(&self, input: NodeInput<S>, cx: Context) -> Result<Outcome<S>, BoxError> {
        let calls = match &input.sent {
            Some(call) => vec![
                call.get()
                    .map_err(|why| format!("a tool node takes a `ToolCall`, but was sent something else: {why}"))?,
            ],
            None => or_only_leaving(open_calls(input.state.conversation())?, &self.tools.leaving()),
        };
        let answers = calls.into_iter().map(|call| self.answer(call, input.state.clone(), &cx));
        all(answers.collect()).await?.into_outcome()
    }

    fn mistakes(&self) -> Vec<String> {
        let twice = |name: &String| format!("two tools are named `{name}`; give one of them another name");
        self.tools.clashes().iter().map(twice).chain(self.mistakes.iter().cloned()).collect()
    }
}

/// What a tool gave back, as a change of the graph. The call is answered in any case.
fn into_command<S: Conversation>(output: ToolOutput, call: &ToolCall) -> Result<Command<S>, ToolError> {
    let says_something = !output.is_silent();
    let (answer, command) = output.into_answer(call);
    let Some(command) = command else { return Ok(Command::new().update(S::say(vec![answer]))) };
    let command = command.of::<S>(&call.name)?;
    let answers = |write| S::messages(write).iter().any(|m| m.answers() == Some(&*call.id));
    let is_answered = command.writes().puts().iter().any(|put| answers(&put.write));
    if command.is_for_parent() || (is_answered && !says_something) {
        return Ok(command);
    }
    Ok(Command::new().update(S::say(vec![answer])).and(command))
}

/// Waits for all of them, and gives their results in their order; the first error ends all. A question does not: others
/// may ask as well, and all questions are shown at once.
async fn all<T>(futures: Vec<impl Future<Output = Result<T, BoxError>>>) -> Result<Vec<T>, BoxError> {
    let mut running: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut done: Vec<Option<Result<T, BoxError>>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, done) in running.iter_mut().zip(&mut done) {
            let Some(polled) = future.as_mut().map(|future| future.as_mut().poll(cx)) else { continue };
            if let Poll::Ready(result) = polled {
                *future = None;
                match result {
                    Err(error) if !error.is::<Interrupted>() => return Poll::Ready(Err(error)),
                    result => *done = Some(result),
                }
            }
        }
        if running.iter().all(Option::is_none) { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    done.into_iter().flatten().collect()
}

/// Where to go after a model: to `tools` if its last message calls some, to the end otherwise.
///
/// ```
/// use superstep::{AgentState, Message, StateGraph, START};
/// use superstep_agent::{tools_condition, ToolNode};
/// let app = StateGraph::<AgentState>::new()
///     .add_node("model", |_: AgentState| async { vec![Message::assistant("no tools needed")] })
///     .add_node("tools", ToolNode::new(()))
///     .add_edge(START, "model")
///     .add_conditional_edges("model", tools_condition)
///     .add_edge("tools", "model")
///     .compile()?;
/// # Ok::<(), superstep::CompilationError>(())
/// ```
pub fn tools_condition<S: Conversation>(state: &S) -> &'static str {
    let calls = state.conversation().last().is_some_and(|message| message.tool_calls().next().is_some());
    if calls { "tools" } else { END }
}
