//! What bounds the calls of a node: retries, timeouts, kept results; and the failure that its error handler is given.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Call;
use crate::error::{BoxError, Error, ErrorKind, TaskError};
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

pub(crate) type CacheKeyFn = Arc<dyn Fn(&Call<'_>) -> Result<Vec<u8>, BoxError> + Send + Sync>;

/// Which results of a node are kept, and for how long, without the type of its state.
#[derive(Clone, Default)]
pub(crate) struct CacheRule {
    pub(crate) key: Option<CacheKeyFn>,
    pub(crate) ttl: Option<Duration>,
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

    /// The error itself; when the step is resumed later, only kind and message are left.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_deref()
    }
}
