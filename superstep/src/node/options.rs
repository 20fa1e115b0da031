//! Per-node options: retry, timeouts, cache, error handlers.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{AnyNode, FromInput, IntoNode};
use crate::error::{BoxError, Error, ErrorKind, TaskError};
use crate::state::State;
use crate::wall::caught;

/// When and how a failed node is run again.
///
/// ```
/// use std::time::Duration;
/// use superstep::RetryPolicy;
///
/// let policy = RetryPolicy::new().max_attempts(5).initial_interval(Duration::from_millis(100)).jitter(false)
///     .retry_on(|error| error.downcast_ref::<std::io::Error>().is_some());
/// # let _ = policy;
/// ```
#[derive(Clone)]
pub struct RetryPolicy {
    pub(crate) initial_interval: Duration,
    pub(crate) backoff_factor: f64,
    pub(crate) max_interval: Duration,
    pub(crate) max_attempts: u32,
    pub(crate) jitter: bool,
    pub(crate) retry_on: Arc<dyn Fn(&Error) -> bool + Send + Sync>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl RetryPolicy {
    /// Three attempts, half a second apart and then doubling, with jitter, for every retryable error.
    pub fn new() -> Self {
        Self {
            initial_interval: Duration::from_millis(500),
            backoff_factor: 2.0,
            max_interval: Duration::from_secs(128),
            max_attempts: 3,
            jitter: true,
            retry_on: Arc::new(Error::is_retryable),
        }
    }

    /// How many attempts there are in all, the first included.
    pub fn max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts, ..self }
    }

    /// The pause before the second attempt.
    pub fn initial_interval(self, initial_interval: Duration) -> Self {
        Self { initial_interval, ..self }
    }

    /// By how much the pause grows from attempt to attempt.
    pub fn backoff_factor(self, backoff_factor: f64) -> Self {
        Self { backoff_factor, ..self }
    }

    /// The longest pause.
    pub fn max_interval(self, max_interval: Duration) -> Self {
        Self { max_interval, ..self }
    }

    /// Whether up to a second is added to each pause at random.
    pub fn jitter(self, jitter: bool) -> Self {
        Self { jitter, ..self }
    }

    /// Which errors it is for.
    pub fn retry_on(self, retry_on: impl Fn(&Error) -> bool + Send + Sync + 'static) -> Self {
        Self { retry_on: Arc::new(retry_on), ..self }
    }

    /// The policy by which what was called is run again after so many failures, the last of them with this error.
    pub(crate) fn after<'a>(
        policies: &'a [Self],
        failures: u32,
        error: &Error,
        called: &str,
    ) -> Result<Option<&'a Self>, Error> {
        let retries = || policies.iter().find(|policy| !error.is_drained() && (policy.retry_on)(error));
        let policy = caught(retries).map_err(|panicked| {
            let rest = format!(": {panicked}; it was asked about \"{error}\"");
            Error::of_step(ErrorKind::Panic, format!("the `retry_on` of {called} panicked"), &rest)
        })?;
        Ok(policy.filter(|policy| failures < policy.max_attempts))
    }

    /// The pause after `failures` failed attempts.
    pub(crate) fn pause_with_jitter(&self, failures: u32) -> Duration {
        let random =
            if self.jitter { std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0u8) % 1000 } else { 0 };
        self.pause(failures).saturating_add(Duration::from_millis(random))
    }

    fn pause(&self, failures: u32) -> Duration {
        let factor = self.backoff_factor.powi(failures as i32 - 1);
        let seconds = self.initial_interval.as_secs_f64() * factor;
        // No pause stays no pause, however often it is multiplied.
        if self.initial_interval.is_zero() || seconds.is_nan() || seconds < 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(seconds).map_or(self.max_interval, |pause| pause.min(self.max_interval))
    }
}

/// What is wrong with how long results are kept.
pub(crate) fn no_time_to_keep(ttl: Option<Duration>) -> Option<String> {
    let is_none = ttl.is_some_and(|ttl| ttl.is_zero());
    is_none
        .then(|| "results that are kept for no time are never found; give the cache a longer `ttl`, or none".to_owned())
}

/// What is wrong with limits and policies.
pub(crate) fn mistakes(timeout: Option<&TimeoutPolicy>, retry: &[RetryPolicy]) -> impl Iterator<Item = String> {
    let none = retry.iter().any(|r| r.max_attempts == 0);
    let none = none.then(|| "a retry policy needs at least one attempt".to_owned());
    timeout.and_then(TimeoutPolicy::mistake).into_iter().chain(none)
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("initial_interval", &self.initial_interval)
            .field("backoff_factor", &self.backoff_factor)
            .field("max_interval", &self.max_interval)
            .field("max_attempts", &self.max_attempts)
            .field("jitter", &self.jitter)
            .finish_non_exhaustive()
    }
}

/// How long one attempt of a node may take.
///
/// ```
/// use std::time::Duration;
/// use superstep::TimeoutPolicy;
///
/// let policy = TimeoutPolicy::run(Duration::from_secs(60)).idle(Duration::from_secs(5)).on_heartbeat_only();
/// # let _ = policy;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeoutPolicy {
    pub(crate) run: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) heartbeat_only: bool,
}

impl TimeoutPolicy {
    /// A limit for a whole attempt.
    pub fn run(limit: Duration) -> Self {
        Self { run: Some(limit), idle: None, heartbeat_only: false }
    }

    /// A limit for the time without a sign of life.
    pub fn idle_only(limit: Duration) -> Self {
        Self { run: None, idle: Some(limit), heartbeat_only: false }
    }

    /// Adds a limit for the time without a sign of life.
    pub fn idle(self, limit: Duration) -> Self {
        Self { idle: Some(limit), ..self }
    }

    /// Counts only [`Context::heartbeat`](crate::Context::heartbeat) as a sign of life, not events and calls.
    pub fn on_heartbeat_only(self) -> Self {
        Self { heartbeat_only: true, ..self }
    }

    pub(crate) fn mistake(&self) -> Option<String> {
        let zero = |d: Option<Duration>| d.is_some_and(|d| d.is_zero());
        if zero(self.run) || zero(self.idle) {
            return Some("a timeout must be greater than zero".to_owned());
        }
        let is_idle_only = self.heartbeat_only && self.idle.is_none();
        is_idle_only.then(|| {
            "`on_heartbeat_only` is about an idle limit, and there is none; add one with `.idle(..)`".to_owned()
        })
    }
}

impl From<Duration> for TimeoutPolicy {
    fn from(limit: Duration) -> Self {
        Self::run(limit)
    }
}

pub(crate) type CacheKeyFn = Arc<dyn Fn(&super::Call<'_>) -> Result<Vec<u8>, BoxError> + Send + Sync>;

/// Which results of a node are kept, and for how long.
///
/// The graph needs a cache: [`StateGraph::cache`](crate::StateGraph::cache).
///
/// ```
/// use std::time::Duration;
/// use superstep::{AgentState, CachePolicy};
///
/// let policy: CachePolicy<AgentState> =
///     CachePolicy::by(|s: &AgentState| s.messages.last().map(|m| m.text().into_owned())).ttl(Duration::from_secs(60));
/// # let _ = policy;
/// ```
pub struct CachePolicy<S: State> {
    pub(crate) rule: CacheRule,
    state: PhantomData<fn(S)>,
}

/// The same without the type of the state.
#[derive(Clone, Default)]
pub(crate) struct CacheRule {
    pub(crate) key: Option<CacheKeyFn>,
    pub(crate) ttl: Option<Duration>,
}

impl<S: State> Clone for CachePolicy<S> {
    fn clone(&self) -> Self {
        Self { rule: self.rule.clone(), state: PhantomData }
    }
}

impl<S: State> CachePolicy<S> {
    /// A result is kept for its whole input.
    pub fn new() -> Self {
        Self { rule: CacheRule::default(), state: PhantomData }
    }

    /// A result is kept for a key made of what the node takes first: the state, or what it was sent.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use superstep::{AgentState, CachePolicy, Sent};
    ///
    /// let of_the_state: CachePolicy<AgentState> = CachePolicy::by(|s: &Arc<AgentState>| s.messages.len());
    /// let of_a_payload: CachePolicy<AgentState> = CachePolicy::by(|Sent(word): &Sent<String>| word.to_lowercase());
    /// # let _ = (of_the_state, of_a_payload);
    /// ```
    pub fn by<I: FromInput<S>, K: serde::Serialize>(key: impl Fn(&I) -> K + Send + Sync + 'static) -> Self {
        let of_call = move |call: &super::Call<'_>| Ok(crate::value::encode(&key(&I::from_input(call)?))?.to_vec());
        Self { rule: CacheRule { key: Some(Arc::new(of_call)), ttl: None }, state: PhantomData }
    }

    /// How long a result is kept; for good if not given.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.rule.ttl = Some(ttl);
        self
    }
}

impl<S: State> Default for CachePolicy<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: State> fmt::Debug for CachePolicy<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachePolicy")
            .field("whole_input", &self.rule.key.is_none())
            .field("ttl", &self.rule.ttl)
            .finish()
    }
}

/// The failure that an error handler is given.
///
/// ```
/// use superstep::{AgentState, Command, NodeError};
///
/// async fn handle(_: AgentState, error: NodeError) -> Command<AgentState> {
///     println!("{} failed: {}", error.node(), error.message());
///     Command::new().goto("fallback")
/// }
/// ```
#[derive(Debug, Clone)]
pub struct NodeError {
    pub(crate) node: Arc<str>,
    pub(crate) failure: TaskError,
    pub(crate) error: Option<Arc<Error>>,
}

impl NodeError {
    /// The node that failed.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// What it said.
    pub fn message(&self) -> &str {
        &self.failure.message
    }

    /// Which kind of error it was.
    pub fn kind(&self) -> ErrorKind {
        self.failure.kind
    }

    /// The error itself; when the step is gone on with later, only kind and message are left.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_deref()
    }
}

/// The options of one node.
///
/// ```
/// use std::time::Duration;
/// use superstep::{AgentState, NodeOptions, RetryPolicy, StateGraph, START};
///
/// async fn call_model(_: AgentState) {}
/// async fn collect(_: AgentState) {}
/// let app = StateGraph::<AgentState>::new()
///     .add_node_with("model", call_model, NodeOptions::new().retry(RetryPolicy::new()).timeout(Duration::from_secs(30)))
///     .add_node_with("collect", collect, NodeOptions::new().defer())
///     .add_sequence(["model", "collect"])
///     .compile()?;
/// # Ok::<(), superstep::CompilationError>(())
/// ```
#[derive(Clone)]
pub struct NodeOptions<S: State> {
    pub(crate) rules: NodeRules,
    state: PhantomData<fn(S)>,
}

/// What options say of a node, without the type of its state.
#[derive(Clone, Default)]
pub(crate) struct NodeRules {
    pub(crate) retry: Option<Vec<RetryPolicy>>,
    pub(crate) timeout: Option<TimeoutPolicy>,
    pub(crate) cache: Option<CacheRule>,
    pub(crate) defer: bool,
    pub(crate) handler: Option<AnyNode>,
    pub(crate) metadata: BTreeMap<String, Value>,
    pub(crate) destinations: Option<Vec<(String, Option<String>)>>,
    pub(crate) fields: Option<Vec<String>>,
    pub(crate) blocking: bool,
    pub(crate) writes: Option<Vec<String>>,
}

impl<S: State> Default for NodeOptions<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: State> NodeOptions<S> {
    /// No options.
    pub fn new() -> Self {
        Self { rules: NodeRules::default(), state: PhantomData }
    }

    /// Runs the node again when it fails. Given several times, the first policy that is for an error is used.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.rules.retry.get_or_insert_default().push(policy);
        self
    }

    /// Limits how long an attempt may take; a bare duration limits the whole attempt.
    pub fn timeout(mut self, policy: impl Into<TimeoutPolicy>) -> Self {
        self.rules.timeout = Some(policy.into());
        self
    }

    /// Keeps results.
    pub fn cache(mut self, policy: CachePolicy<S>) -> Self {
        self.rules.cache = Some(policy.rule);
        self
    }

    /// Runs the node only when nothing else is left to run.
    pub fn defer(mut self) -> Self {
        self.rules.defer = true;
        self
    }

    /// Runs this instead, in the same step, when the node failed for good. It may ask for [`NodeError`].
    ///
    /// If the step does not end (a sibling asks or fails, the process dies), the handler runs again when it is gone on
    /// with, even if it had finished. Put its effects into a [`Task`](crate::Task), whose result is kept, or use
    /// [`Context::idempotency_key`](crate::Context::idempotency_key), which is the same in both runs.
    pub fn error_handler<M>(mut self, handler: impl IntoNode<S, M>) -> Self {
        self.rules.handler = Some(handler.into_node().node);
        self
    }

    /// Says something about the node; drawn, shown in the `tasks` and `messages` streams, and read by the node with
    /// [`Context::metadata`](crate::Context::metadata).
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.rules.metadata.insert(key.into(), value.into());
        self
    }

    /// Where the node's commands may lead: for drawing and checking, not enforced.
    pub fn destinations<N: Into<String>>(mut self, nodes: impl IntoIterator<Item = N>) -> Self {
        self.rules.destinations.get_or_insert_default().extend(nodes.into_iter().map(|n| (n.into(), None)));
        self
    }

    /// A destination with a label to draw.
    pub fn destination(mut self, node: impl Into<String>, label: impl Into<String>) -> Self {
        self.rules.destinations.get_or_insert_default().push((node.into(), Some(label.into())));
        self
    }

    /// The fields that the node reads. The others are hidden from it: they are empty in the state that it is given, and
    /// left out of the object that a dynamic node takes. What it does not see it may write all the same.
    ///
    /// A whole state that the node gives back counts for what it changed in what it was given, so fields that were hidden
    /// keep their values. The node is given a copy of the state; its conditional edges see all of it.
    ///
    /// ```
    /// use superstep::{NodeOptions, State, StateGraph, START};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(State, Clone, Default, Serialize, Deserialize)]
    /// struct Letter { text: String, salary: u32 }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = StateGraph::<Letter>::new()
    ///     .add_node_with("write", async |letter: Letter| {
    ///         Letter { text: format!("{} earns {}", letter.text, letter.salary), ..letter }
    ///     }, NodeOptions::new().fields(["text"]))
    ///     .add_edge(START, "write")
    ///     .compile()?;
    /// let out = app.invoke(Letter { text: "Ada".into(), salary: 9000 }).await?.state;
    /// assert_eq!((out.text.as_str(), out.salary), ("Ada earns 0", 9000));
    /// # Ok(())
    /// # }
    /// ```
    pub fn fields<N: Into<String>>(mut self, fields: impl IntoIterator<Item = N>) -> Self {
        self.rules.fields = Some(fields.into_iter().map(Into::into).collect());
        self
    }

    /// The fields that the node writes: for checking that no two nodes of a step write one last-value field.
    pub fn writes<N: Into<String>>(mut self, fields: impl IntoIterator<Item = N>) -> Self {
        self.rules.writes = Some(fields.into_iter().map(Into::into).collect());
        self
    }

    /// Runs the node's future on the blocking pool: for heavy computing and for calls that block.
    ///
    /// The nodes of a step share one thread until they wait, so one that never waits holds the others up.
    pub fn blocking(mut self) -> Self {
        self.rules.blocking = true;
        self
    }
}

/// Options for every node that has none of its own.
///
/// ```
/// use std::time::Duration;
/// use superstep::{AgentState, NodeDefaults, RetryPolicy, StateGraph};
///
/// let mut graph = StateGraph::<AgentState>::new();
/// graph.set_node_defaults(NodeDefaults::new().retry(RetryPolicy::new()).timeout(Duration::from_secs(30)));
/// ```
#[derive(Clone)]
pub struct NodeDefaults<S: State> {
    pub(crate) rules: NodeRules,
    state: PhantomData<fn(S)>,
}

impl<S: State> Default for NodeDefaults<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: State> NodeDefaults<S> {
    /// No defaults.
    pub fn new() -> Self {
        Self { rules: NodeRules::default(), state: PhantomData }
    }

    /// The retry policies of nodes and handlers without their own.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.rules.retry.get_or_insert_default().push(policy);
        self
    }

    /// The timeout of nodes and handlers without their own.
    pub fn timeout(mut self, policy: impl Into<TimeoutPolicy>) -> Self {
        self.rules.timeout = Some(policy.into());
        self
    }

    /// The cache policy of nodes without their own.
    pub fn cache(mut self, policy: CachePolicy<S>) -> Self {
        self.rules.cache = Some(policy.rule);
        self
    }

    /// The error handler of nodes without their own.
    pub fn error_handler<M>(mut self, handler: impl IntoNode<S, M>) -> Self {
        self.rules.handler = Some(handler.into_node().node);
        self
    }
}
