//! What can go wrong with checkpoints: one error, a kind that callers tell apart, and whether to try again.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use super::Epoch;
use crate::error::{BoxError, Error, ErrorKind, StorageFailure, shown_in_words};
use crate::id::CheckpointId;

/// Something could not be saved or read back.
///
/// ```
/// use superstep::{CheckpointError, CheckpointErrorKind};
/// let error = CheckpointError::backend("the disk is full");
/// assert_eq!(error.to_string(), "the disk is full");
/// assert_eq!(error.kind(), CheckpointErrorKind::Backend);
/// assert!(error.is_retryable());
/// ```
#[derive(Clone)]
pub struct CheckpointError(Arc<Inner>);

/// What callers tell apart about a [`CheckpointError`].
///
/// ```
/// use superstep::{CheckpointError, CheckpointErrorKind};
/// let error = CheckpointError::refused("there is no thread `t` to copy");
/// assert_eq!(error.kind(), CheckpointErrorKind::Refused);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CheckpointErrorKind {
    /// The place where checkpoints are kept failed.
    Backend,
    /// What was asked for cannot be done, now or later: there is no such thread, or there is one already.
    Refused,
    /// A saved value does not decode, or a value cannot be encoded.
    Codec,
    /// Someone else took over the thread, or it was deleted: nothing was written.
    Fenced,
    /// The thread was saved by another graph, which shares nothing with this one that it could resume with.
    OtherGraph,
    /// A newer release, or a program with a newer version of the state, wrote the checkpoint.
    Newer,
    /// No migration leads from the version of the state in the checkpoint to the graph's.
    MissingMigration,
}

#[derive(Clone)]
struct Inner {
    kind: CheckpointErrorKind,
    words: String,
    thread: Option<String>,
    /// Of a value: what it is, and why it cannot be saved or read.
    value: Option<(String, String)>,
    /// Shared, because all whose saves went together get the same one.
    source: Option<Arc<dyn StdError + Send + Sync>>,
    is_retryable: bool,
}

impl CheckpointError {
    fn new(kind: CheckpointErrorKind, words: impl Into<String>) -> Self {
        let words = words.into();
        Self(Arc::new(Inner { kind, words, thread: None, value: None, source: None, is_retryable: false }))
    }

    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    fn of_thread(self, thread: impl Into<String>) -> Self {
        self.change(|inner| inner.thread = Some(thread.into()))
    }

    /// A failure of the place where checkpoints are kept. It may pass, unless [the contrary is
    /// said](CheckpointError::retryable).
    pub fn backend(error: impl Into<BoxError>) -> Self {
        let source: Arc<dyn StdError + Send + Sync> = Arc::from(error.into());
        let failed = Self::new(CheckpointErrorKind::Backend, source.to_string());
        failed.change(|inner| (inner.source, inner.is_retryable) = (Some(source), true))
    }

    /// Something that cannot be done, in words that say what to do instead.
    pub fn refused(why: impl Into<String>) -> Self {
        Self::new(CheckpointErrorKind::Refused, why)
    }

    /// A value of a checkpoint that does not decode, or cannot be encoded; `what` names the field or record.
    ///
    /// ```
    /// use superstep::CheckpointError;
    /// let error = CheckpointError::codec("t", "1f0b", "field `notes`", "it is cut off");
    /// assert_eq!(error.to_string(), "thread `t`, checkpoint 1f0b, field `notes`: it is cut off");
    /// assert_eq!(error.thread(), Some("t"));
    /// ```
    pub fn codec(
        thread: impl Into<String>,
        checkpoint: impl fmt::Display,
        what: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        let (thread, what, why) = (thread.into(), what.into(), why.into());
        let words = format!("thread `{thread}`, checkpoint {checkpoint}, {what}: {why}");
        let error = Self::new(CheckpointErrorKind::Codec, words).of_thread(thread);
        error.change(|inner| inner.value = Some((what, why)))
    }

    /// A write by someone who holds the thread no more.
    pub fn fenced(thread: impl Into<String>, held: Epoch, current: Option<Epoch>) -> Self {
        Self::lost(
            thread.into(),
            &match current {
                Some(current) => {
                    format!("was taken over by another run or update (epoch {current}, this one has {held})")
                }
                None => format!("is not there any more, or was never claimed (this run has epoch {held})"),
            },
        )
    }

    /// A checkpoint that does not follow the latest one.
    pub fn overtaken(
        thread: impl Into<String>,
        namespace: &str,
        expected: Option<CheckpointId>,
        latest: Option<CheckpointId>,
    ) -> Self {
        let shown = |id: Option<CheckpointId>| id.map_or_else(|| "none".to_owned(), |id| id.to_string());
        let (expected, latest) = (shown(expected), shown(latest));
        let why = format!("moved on in namespace `{namespace}`: its latest checkpoint is {latest}, not {expected}");
        Self::lost(thread.into(), &why)
    }

    fn lost(thread: String, why: &str) -> Self {
        let words =
            format!("thread `{thread}` {why}; nothing was written. Load the thread again, or resume it, to go on");
        Self::new(CheckpointErrorKind::Fenced, words).of_thread(thread)
    }

    /// A copy of a thread that is not there.
    ///
    /// ```
    /// use superstep::CheckpointError;
    /// assert_eq!(CheckpointError::nothing_to_copy("t").to_string(), "there is no thread `t` to copy");
    /// ```
    pub fn nothing_to_copy(from: &str) -> Self {
        Self::refused(format!("there is no thread `{from}` to copy"))
    }

    /// A copy to the name of another thread.
    ///
    /// ```
    /// use superstep::CheckpointError;
    /// assert_eq!(CheckpointError::name_taken("t").to_string(), "there is a thread `t` already; delete it first");
    /// ```
    pub fn name_taken(to: &str) -> Self {
        Self::refused(format!("there is a thread `{to}` already; delete it first"))
    }

    /// A thread of another graph; both graphs come in words.
    pub(crate) fn other_graph(thread: &str, namespace: &str, saved: &str, graph: &str) -> Self {
        let place = if namespace.is_empty() { String::new() } else { format!(" in `{namespace}`") };
        let words = format!(
            "thread `{thread}`{place} was saved by {saved}, of which {graph} has no node; run it on a thread of another \
             name or give each graph a checkpointer of its own. If it is an earlier form of this graph, say what became of \
             one of its nodes with `renamed_node(..)` or `removed_node(..)` (of an entrypoint, with `renamed_from(..)`)"
        );
        Self::new(CheckpointErrorKind::OtherGraph, words).of_thread(thread)
    }

    pub(crate) fn newer_format(thread: &str, checkpoint: CheckpointId, found: u8, known: u8) -> Self {
        let words = format!(
            "thread `{thread}`, checkpoint {checkpoint} has format {found}, this release reads up to {known}; update \
             superstep"
        );
        Self::new(CheckpointErrorKind::Newer, words).of_thread(thread)
    }

    pub(crate) fn newer_state(thread: &str, checkpoint: CheckpointId, found: u32, known: u32) -> Self {
        let words = format!(
            "thread `{thread}`, checkpoint {checkpoint} holds version {found} of the state, this graph has version {known}; \
             update the program"
        );
        Self::new(CheckpointErrorKind::Newer, words).of_thread(thread)
    }

    /// A checkpoint of version `found` with these fields, for a graph of version `known`: nothing leads on from `missing`.
    pub(crate) fn missing_migration(
        thread: &str,
        checkpoint: CheckpointId,
        [found, known, missing]: [u32; 3],
        fields: &[&str],
    ) -> Self {
        let fields = fields.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let words = format!(
            "thread `{thread}`, checkpoint {checkpoint} holds version {found} of the state (fields {fields}), this graph has \
             version {known}; add the migration that is missing: `.migrate({missing}, ..)`"
        );
        Self::new(CheckpointErrorKind::MissingMigration, words).of_thread(thread)
    }

    /// What callers tell apart.
    pub fn kind(&self) -> CheckpointErrorKind {
        self.0.kind
    }

    /// The thread that it is about, if it is about one.
    pub fn thread(&self) -> Option<&str> {
        self.0.thread.as_deref()
    }

    /// Whether someone else took over the thread, or it was deleted: nothing was written.
    ///
    /// ```
    /// use superstep::{CheckpointError, Epoch};
    /// assert!(CheckpointError::fenced("t", Epoch::from_u64(1), Some(Epoch::from_u64(2))).is_fenced());
    /// ```
    pub fn is_fenced(&self) -> bool {
        self.kind() == CheckpointErrorKind::Fenced
    }

    /// Whether the same call may succeed if it is made again: whoever made the error has said so. Not if it was refused, if
    /// a checkpoint cannot be read or a value not be written, or if the thread has to be loaded again.
    ///
    /// ```
    /// use superstep::CheckpointError;
    /// assert!(CheckpointError::backend("the disk is full").is_retryable());
    /// assert!(!CheckpointError::refused("there is no thread `t` to copy").is_retryable());
    /// ```
    pub fn is_retryable(&self) -> bool {
        self.0.is_retryable
    }

    /// Says whether the same call may succeed if it is made again.
    ///
    /// ```
    /// use superstep::CheckpointError;
    /// assert!(!CheckpointError::backend("the file is damaged").retryable(false).is_retryable());
    /// ```
    #[must_use]
    pub fn retryable(self, is_retryable: bool) -> Self {
        self.change(|inner| inner.is_retryable = is_retryable)
    }

    /// Of a value that cannot be saved or read: what it is, and why.
    pub(crate) fn of_value(&self) -> Option<(&str, &str)> {
        self.0.value.as_ref().map(|(what, why)| (&**what, &**why))
    }
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.words)
    }
}

impl StdError for CheckpointError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

shown_in_words!(CheckpointError);

impl From<CheckpointError> for Error {
    fn from(error: CheckpointError) -> Self {
        let kind = if error.is_fenced() { ErrorKind::Fenced } else { ErrorKind::Checkpoint };
        let words = match error.kind() {
            CheckpointErrorKind::Refused => "the checkpointer refuses it",
            _ => "a checkpoint could not be saved or read",
        };
        let failure = match error.kind() {
            CheckpointErrorKind::Codec => StorageFailure::OfValue,
            _ if error.is_retryable() => StorageFailure::MayPass,
            _ => StorageFailure::Lasts,
        };
        Error::of_storage(kind, words, failure).caused_by(error)
    }
}
