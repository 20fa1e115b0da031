//! Limits on what an agent may use up.
//!
//! What was used is read out of the conversation: nothing is kept beside the thread, and limits hold after a restart.

use std::fmt;
use std::sync::Arc;

use crate::message::{Tally, answer_instead, written_by};
use async_trait::async_trait;
use superstep::{BoxError, Context, Conversation, Message, ToolCall, Usage};

use super::{Hooks, Jump, Middleware, Turn};
use crate::tool::open_calls;

const WRITER: &str = "limits";

/// Stops an agent that has used up what it may: calls of models and tools, tokens, money.
///
/// Calls of a model are its answers. Calls of tools are counted before any is made, so a limit holds for those that are
/// made at once. Calls that were rejected or refused are not counted. What an agent took that was called as a tool counts
/// as if its caller had taken it, once it has answered; so does the call for a structured response, which is not made if
/// a limit is reached before it.
///
/// ```
/// use superstep::{Message, ToolCall};
/// use superstep_agent::middleware::{Limits, Per};
/// use superstep_agent::{create_react_agent, tool, ScriptedModel};
///
/// /// Searches.
/// #[tool]
/// fn search() -> &'static str { "nothing yet" }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::thinking(|_| Message::calls("", [ToolCall::new("c", "search", serde_json::json!({}))]));
/// let limits = Limits::new()
///     .model_calls(Per::Run, 2)
///     .calls_of("search", Per::Thread, 100)
///     .cost(Per::Thread, 2.5, |usage| usage.input as f64 * 3e-6 + usage.output as f64 * 15e-6);
/// let agent = create_react_agent(model, [search]).middleware(limits).compile()?;
/// let out = agent.invoke("Find it!").await?;
/// assert_eq!(out.state.messages.last().unwrap().text(), "I stop here: the limit of 2 model calls per run is reached.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Limits {
    name: String,
    all: Vec<Limit>,
    on_limit: OnLimit,
}

crate::debug::debug_parts!([] Limits, "Limits", this => { name: this.name, on_limit: this.on_limit });

/// Over what a limit counts.
///
/// ```
/// assert_ne!(superstep_agent::middleware::Per::Run, superstep_agent::middleware::Per::Thread);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// Since a human last spoke.
    Run,
    /// Since the conversation began.
    Thread,
}

/// What happens when a limit is reached.
///
/// ```
/// use superstep_agent::middleware::{Limits, OnLimit, Per};
/// let limits = Limits::new().tool_calls(Per::Run, 10).on_limit(OnLimit::Refuse);
/// # let _ = limits;
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLimit {
    /// The agent ends with what there is: open tool calls are answered, and a last message says why.
    #[default]
    Stop,
    /// Calls of tools beyond the limit are answered with an error, and the agent goes on; other limits stop it.
    Refuse,
    /// The run fails with [`LimitReached`].
    Fail,
}

/// The error of a run that reached a limit.
///
/// ```
/// # use superstep_agent::middleware::LimitReached;
/// fn show(error: &superstep::Error) {
///     if let Some(reached) = error.downcast_ref::<LimitReached>() { println!("{}", reached.limit()); }
/// }
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("the limit of {limit} is reached; allow more of it, or begin anew")]
pub struct LimitReached {
    limit: String,
}

shown_in_words!(LimitReached);

impl LimitReached {
    /// The limit in words, like `10 model calls per run`.
    pub fn limit(&self) -> &str {
        &self.limit
    }
}

type Price = Arc<dyn Fn(&Usage) -> f64 + Send + Sync>;

#[derive(Clone)]
struct Limit {
    per: Per,
    most: Most,
}

#[derive(Clone)]
enum Most {
    ModelCalls(u64),
    ToolCalls(Option<String>, u64),
    Tokens(u64),
    Cost(f64, Price),
}

impl Limits {
    /// No limits yet.
    pub fn new() -> Self {
        Self { name: WRITER.to_owned(), all: Vec::new(), on_limit: OnLimit::default() }
    }

    /// At most so many answers of models.
    pub fn model_calls(self, per: Per, most: u64) -> Self {
        self.with(per, Most::ModelCalls(most))
    }

    /// At most so many calls of tools.
    pub fn tool_calls(self, per: Per, most: u64) -> Self {
        self.with(per, Most::ToolCalls(None, most))
    }

    /// At most so many calls of this tool.
    pub fn calls_of(self, tool: impl Into<String>, per: Per, most: u64) -> Self {
        self.with(per, Most::ToolCalls(Some(tool.into()), most))
    }

    /// No further call of a model after so many tokens, read and written.
    pub fn tokens(self, per: Per, most: u64) -> Self {
        self.with(per, Most::Tokens(most))
    }

    /// No further call of a model after so much money, by the price of what each answer took.
    pub fn cost(self, per: Per, most: f64, price: impl Fn(&Usage) -> f64 + Send + Sync + 'static) -> Self {
        self.with(per, Most::Cost(most, Arc::new(price)))
    }

    /// What happens when one of the limits is reached.
    pub fn on_limit(mut self, on_limit: OnLimit) -> Self {
        self.on_limit = on_limit;
        self
    }

    /// With another name, for agents with several of them.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    fn with(mut self, per: Per, most: Most) -> Self {
        self.all.push(Limit { per, most });
        self
    }

    fn counts_tools(&self) -> bool {
        self.all.iter().any(|limit| matches!(limit.most, Most::ToolCalls(..)))
    }

    /// The first limit that keeps the model from being asked.
    fn before_asking(&self, used: &Used) -> Option<&Limit> {
        self.all.iter().find(|limit| limit.most.is_used_up(used.per(limit.per)))
    }

    /// The calls beyond a limit, each with the first limit that it is beyond.
    fn beyond<'a>(&'a self, calls: &[ToolCall], used: &mut Used) -> Vec<(ToolCall, &'a Limit)> {
        let mut refused = Vec::new();
        for call in calls {
            match self.all.iter().find(|limit| limit.most.forbids(call, used.per(limit.per))) {
                Some(limit) => refused.push((call.clone(), limit)),
                None => used.note(call),
            }
        }
        refused
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl<S: Conversation> Middleware<S> for Limits {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        let counts_others = self.all.iter().any(|limit| !matches!(limit.most, Most::ToolCalls(..)));
        Hooks { before_model: counts_others, after_model: self.counts_tools(), ..Hooks::default() }
    }

    async fn before_model(&self, state: Arc<S>, _: Context) -> Result<Turn<S>, BoxError> {
        let used = Used::of(state.conversation());
        match (self.before_asking(&used), self.on_limit) {
            (None, _) => Ok(Turn::go_on()),
            (Some(limit), OnLimit::Fail) => Err(limit.reached().into()),
            (Some(limit), OnLimit::Stop | OnLimit::Refuse) => Ok(Turn::say([last_words(limit)]).jump(Jump::End)),
        }
    }

    async fn after_model(&self, state: Arc<S>, _: Context) -> Result<Turn<S>, BoxError> {
        let messages = state.conversation();
        let calls = open_calls(messages).unwrap_or_default();
        let refused = self.beyond(&calls, &mut Used::of(messages));
        match (refused.first(), self.on_limit) {
            (None, _) => Ok(Turn::go_on()),
            (Some((_, limit)), OnLimit::Fail) => Err(limit.reached().into()),
            (Some(_), OnLimit::Refuse) => Ok(Turn::say(refused.iter().map(|(call, limit)| refusal(call, limit)))),
            (Some((_, limit)), OnLimit::Stop) => {
                let answers = calls.iter().map(|call| refusal(call, limit));
                Ok(Turn::say(answers.chain([last_words(limit)])).jump(Jump::End))
            }
        }
    }
}

/// What was used, in the run and in the thread.
struct Used {
    run: Tally,
    thread: Tally,
}

impl Used {
    fn of(messages: &[Message]) -> Self {
        Self { run: Tally::of_run(messages), thread: Tally::of_thread(messages) }
    }

    fn per(&self, per: Per) -> &Tally {
        match per {
            Per::Run => &self.run,
            Per::Thread => &self.thread,
        }
    }

    fn note(&mut self, call: &ToolCall) {
        for tally in [&mut self.run, &mut self.thread] {
            *tally.tool_calls.entry(call.name.clone()).or_default() += 1;
        }
    }
}

impl Limit {
    fn reached(&self) -> LimitReached {
        LimitReached { limit: self.to_string() }
    }
}

impl Most {
    fn is_used_up(&self, used: &Tally) -> bool {
        match self {
            Most::ModelCalls(most) => used.model_calls >= *most,
            Most::Tokens(most) => used.tokens() >= *most,
            Most::Cost(most, price) => used.usages.iter().map(|usage| price(usage)).sum::<f64>() >= *most,
            Most::ToolCalls(..) => false,
        }
    }

    fn forbids(&self, call: &ToolCall, used: &Tally) -> bool {
        match self {
            Most::ToolCalls(tool, most) => {
                tool.as_ref().is_none_or(|tool| *tool == call.name) && used.calls_of(tool.as_deref()) >= *most
            }
            _ => false,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.most {
            Most::ModelCalls(most) => write!(f, "{most} model calls")?,
            Most::ToolCalls(None, most) => write!(f, "{most} tool calls")?,
            Most::ToolCalls(Some(tool), most) => write!(f, "{most} calls of `{tool}`")?,
            Most::Tokens(most) => write!(f, "{most} tokens")?,
            Most::Cost(most, _) => write!(f, "a cost of {most}")?,
        }
        f.write_str(match self.per {
            Per::Run => " per run",
            Per::Thread => " per thread",
        })
    }
}

fn last_words(limit: &Limit) -> Message {
    written_by(Message::assistant(format!("I stop here: the limit of {limit} is reached.")), WRITER)
}

fn refusal(call: &ToolCall, limit: &Limit) -> Message {
    answer_instead(call, format!("Not called: the limit of {limit} is reached."), true, WRITER)
}
