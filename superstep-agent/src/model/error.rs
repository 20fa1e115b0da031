//! What can go wrong between a program and a model.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use superstep::BoxError;

/// Why a model did not answer.
///
/// ```
/// use superstep_agent::{ModelError, ModelErrorKind};
/// let error = ModelError::new(ModelErrorKind::RateLimited, "gpt-5", "too many requests").retry_after(std::time::Duration::from_secs(2));
/// assert!(error.is_retryable());
/// assert_eq!(error.to_string(), "model `gpt-5`: too many requests");
/// assert_eq!(format!("{error:?}"), error.to_string());
/// assert!(format!("{error:#?}").ends_with("RateLimited, status None, retry after Some(2s), for good: false"));
/// ```
#[derive(Clone, thiserror::Error)]
#[error("model `{model}`: {words}")]
pub struct ModelError {
    kind: ModelErrorKind,
    model: String,
    words: String,
    status: Option<u16>,
    retry_after: Option<Duration>,
    for_good: bool,
    #[source]
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// What kind of trouble a [`ModelError`] is.
///
/// ```
/// assert_ne!(superstep_agent::ModelErrorKind::Auth, superstep_agent::ModelErrorKind::Timeout);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing, wrong, or may not do this.
    Auth,
    /// Too many requests, or the credit is used up.
    RateLimited,
    /// The provider has too much to do, or fails.
    Overloaded,
    /// There is no such model.
    NotFound,
    /// The provider does not understand the request.
    InvalidRequest,
    /// The conversation is too long for the model.
    ContextTooLong,
    /// The provider or the model refuses to answer.
    Refused,
    /// The answer took too long.
    Timeout,
    /// The provider cannot be reached.
    Connection,
    /// The answer broke off.
    BrokenStream,
    /// The provider's answer cannot be understood.
    Unexpected,
    /// The model's answer does not have the form that was asked for.
    InvalidOutput,
}

/// Its words and causes; `{:#?}` tells its kind too.
impl fmt::Debug for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        superstep::explain(self, f)?;
        if f.alternate() {
            let Self { kind, status, retry_after, for_good, .. } = self;
            write!(f, "\n  {kind:?}, status {status:?}, retry after {retry_after:?}, for good: {for_good}")?;
        }
        Ok(())
    }
}

impl ModelError {
    /// An error of a model, in words.
    pub fn new(kind: ModelErrorKind, model: impl Into<String>, words: impl Into<String>) -> Self {
        let (model, words) = (model.into(), words.into());
        Self { kind, model, words, status: None, retry_after: None, for_good: false, source: None }
    }

    /// The same error with the HTTP status that it came with.
    pub fn status_code(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// The same error with how long the provider wants to be left alone.
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    /// The same error, which asking again does not mend: missing credit, for one.
    ///
    /// ```
    /// use superstep_agent::{ModelError, ModelErrorKind};
    /// let error = ModelError::new(ModelErrorKind::RateLimited, "gpt-5", "there is no credit left").for_good();
    /// assert!(!error.is_retryable());
    /// ```
    pub fn for_good(mut self) -> Self {
        self.for_good = true;
        self
    }

    /// The same error with what caused it.
    pub fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// What happened, without the name of the model.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> ModelErrorKind {
        self.kind
    }

    /// The model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The HTTP status, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// How long the provider wants to be left alone.
    pub fn pause(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether the same request may well succeed later.
    pub fn is_retryable(&self) -> bool {
        use ModelErrorKind::{BrokenStream, Connection, Overloaded, RateLimited, Timeout};
        !self.for_good && matches!(self.kind, RateLimited | Overloaded | Timeout | Connection | BrokenStream)
    }
}
