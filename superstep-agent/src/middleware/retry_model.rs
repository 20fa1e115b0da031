//! Models that are asked again.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use superstep::{Conversation, Message};

use super::{AskModel, Middleware, ModelAsk};
use crate::model::ModelError;

/// Asks a model again when it fails with an error that may pass.
///
/// The pause grows from attempt to attempt, and is never shorter than what the provider asks for. A provider that wants
/// to be left alone for longer than the longest pause is not asked again.
///
/// ```
/// use std::time::Duration;
/// use superstep_agent::middleware::RetryModel;
/// use superstep_agent::{create_react_agent, ModelError, ModelErrorKind, Reply, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let busy = ModelError::new(ModelErrorKind::Overloaded, "large", "try later");
/// let model = ScriptedModel::new([Reply::from(busy), Reply::from("Hello.")]);
/// let agent = create_react_agent(model, ())
///     .middleware(RetryModel::new().attempts(3).first_pause(Duration::from_millis(1)).jitter(false))
///     .compile()?;
/// assert_eq!(agent.invoke("hi").await?.state.messages[1].text(), "Hello.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RetryModel {
    attempts: u32,
    first_pause: Duration,
    factor: f64,
    longest_pause: Duration,
    jitter: bool,
    when: Arc<dyn Fn(&ModelError) -> bool + Send + Sync>,
}

crate::debug::debug_parts!([] RetryModel, "RetryModel", this => { attempts: this.attempts, first_pause: this.first_pause, factor: this.factor, longest_pause: this.longest_pause, jitter: this.jitter });

impl RetryModel {
    /// Three attempts, half a second apart and then doubling, a minute at most, with jitter, for errors that
    /// [may pass](ModelError::is_retryable).
    pub fn new() -> Self {
        Self {
            attempts: 3,
            first_pause: Duration::from_millis(500),
            factor: 2.0,
            longest_pause: Duration::from_mins(1),
            jitter: true,
            when: Arc::new(ModelError::is_retryable),
        }
    }

    /// How often the model is asked in all; once at least.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The pause before the second attempt.
    pub fn first_pause(mut self, pause: Duration) -> Self {
        self.first_pause = pause;
        self
    }

    /// By how much the pause grows.
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// The longest pause.
    pub fn longest_pause(mut self, pause: Duration) -> Self {
        self.longest_pause = pause;
        self
    }

    /// Whether up to a quarter is added to each pause at random, so that many agents do not come back at once.
    pub fn jitter(mut self, jitter: bool) -> Self {
        self.jitter = jitter;
        self
    }

    /// For these errors; others end the run.
    pub fn when(mut self, is_for: impl Fn(&ModelError) -> bool + Send + Sync + 'static) -> Self {
        self.when = Arc::new(is_for);
        self
    }

    /// How long to wait before the next attempt; nothing if there is none.
    fn pause_after(&self, attempt: u32, error: &ModelError) -> Option<Duration> {
        if attempt >= self.attempts || !(self.when)(error) {
            return None;
        }
        let asked = error.pause().unwrap_or_default();
        (asked <= self.longest_pause).then(|| self.backoff(attempt).max(asked))
    }

    fn backoff(&self, attempt: u32) -> Duration {
        let growth = self.factor.powi(attempt.saturating_sub(1).cast_signed());
        let seconds = (self.first_pause.as_secs_f64() * growth).max(0.0);
        let pause = Duration::try_from_secs_f64(seconds).unwrap_or(self.longest_pause);
        let random = if self.jitter { RandomState::new().hash_one(attempt) % 256 } else { 0 };
        let jitter = pause.saturating_mul(u32::try_from(random).unwrap_or_default()) / 1024;
        pause.saturating_add(jitter).min(self.longest_pause)
    }
}

impl Default for RetryModel {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl<S: Conversation> Middleware<S> for RetryModel {
    fn name(&self) -> &'static str {
        "retry_model"
    }

    async fn around_model(&self, ask: ModelAsk<S>, next: AskModel<'_, S>) -> Result<Message, ModelError> {
        let mut attempt = 1;
        loop {
            let error = match next.ask(ask.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(pause) = self.pause_after(attempt, &error) else { return Err(error) };
            tracing::info!(%error, ?pause, attempt, "the model failed and is asked again");
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }
}
