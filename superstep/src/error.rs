//! The two kinds of error: what is wrong with a graph, and what went wrong in a run.
//!
//! Shape errors are an open enum whose words carry the way out; a run's error is one
//! opaque type that can be asked.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::index::NodeIx;
use crate::names::{DEFAULT_HANDLER, HANDLER_OF, START};
use crate::wall::{Panicked, caught, words_of};

/// Any error a node may return.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// One mistake in a graph, found by [`StateGraph::compile`](crate::StateGraph::compile).
///
/// ```
/// use superstep::{BuildError, JsonState, StateGraph, START};
///
/// let mistakes = StateGraph::dynamic(JsonState::schema())
///     .add_edge(START, "plan")
///     .compile()
///     .unwrap_err();
/// assert!(matches!(&mistakes.errors()[0], BuildError::UnknownTarget { .. }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A node has an empty name, a reserved name or a reserved character in it.
    #[error("node name `{name}` cannot be used: {why}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two nodes have one name.
    #[error("node `{name}` was added twice; give one of them another name")]
    DuplicateNode {
        /// The name.
        name: String,
    },
    /// An edge, branch or destination starts at a node that was never added.
    #[error("edge from unknown node `{name}`; add it with `add_node(\"{name}\", ..)`{hint}")]
    UnknownSource {
        /// The unknown name.
        name: String,
        /// A similar known name, if there is one.
        hint: Hint,
    },
    /// An edge, branch or destination leads to a node that was never added.
    #[error("edge from `{from}` to unknown node `{name}`; add it with `add_node(\"{name}\", ..)`{hint}")]
    UnknownTarget {
        /// Where the edge starts.
        from: String,
        /// The unknown name.
        name: String,
        /// A similar known name, if there is one.
        hint: Hint,
    },
    /// An edge starts at `END`.
    #[error("`END` cannot be the source of an edge (to `{to}`)")]
    EdgeFromEnd {
        /// Where the edge leads.
        to: String,
    },
    /// An edge leads to `START`.
    #[error("`START` cannot be the target of an edge (from `{from}`); to go round again, lead to the first node")]
    EdgeToStart {
        /// Where the edge starts.
        from: String,
    },
    /// No edge leaves `START`.
    #[error("the graph has no entry; add `add_edge(START, \"..\")` or `set_entry_point(\"..\")`")]
    NoEntryPoint,
    /// Two conditional edges of one node have the same name.
    #[error("node `{node}` has two conditional edges named `{name}`; give one another `NamedPath`")]
    DuplicateBranch {
        /// The source of the branches.
        node: String,
        /// Their name.
        name: String,
    },
    /// A list of nodes to stop at names a node that is not there.
    #[error("`{list}` names unknown node `{name}`{hint}")]
    UnknownInterruptNode {
        /// `interrupt_before` or `interrupt_after`.
        list: &'static str,
        /// The unknown name.
        name: String,
        /// A similar known name, if there is one.
        hint: Hint,
    },
    /// A list of fields names a field that the state does not have.
    #[error("{place} names unknown field `{name}`{hint}")]
    UnknownField {
        /// Which list it was, or whose.
        place: String,
        /// The unknown name.
        name: String,
        /// A similar known name, if there is one.
        hint: Hint,
    },
    /// Two fields have one name but different merge rules, or a managed value where none can be.
    #[error("field `{name}`: {why}")]
    BadField {
        /// The field.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A number that must be positive is not.
    #[error("{place}: {why}")]
    BadOption {
        /// Which option, and of which node.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A node holds graphs in graphs that are too many levels deep to run.
    #[error(
        "node `{node}` holds graphs inside graphs {levels} levels deep, with this one {limit} are the limit; \
         call the inner ones one after another, or start them as runs of their own"
    )]
    TooDeep {
        /// The node.
        node: String,
        /// How many levels deep its graphs are.
        levels: usize,
        /// [The most](crate::MAX_LEVELS), the graph itself included.
        limit: usize,
    },
    /// A join has no source.
    #[error("the join into `{to}` waits for nobody; name at least one source")]
    EmptyJoin {
        /// The node that would wait.
        to: String,
    },
}

/// A "did you mean" for an unknown name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hint(Option<String>);

impl Hint {
    /// Looks for the known name nearest to `name`.
    pub(crate) fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let best = known.into_iter().map(|k| (distance(name, k), k)).filter(|(d, k)| *d <= 2 && *d < k.len()).min();
        Hint(best.map(|(_, k)| k.to_owned()))
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => write!(f, " (did you mean `{name}`?)"),
            None => Ok(()),
        }
    }
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

/// Everything that is wrong with a graph, reported at once.
///
/// ```
/// use superstep::{JsonState, StateGraph};
///
/// let error = StateGraph::dynamic(JsonState::schema()).compile().unwrap_err();
/// assert!(error.to_string().contains("has no entry"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CompilationError(Vec<BuildError>);

impl CompilationError {
    pub(crate) fn new(errors: Vec<BuildError>) -> Self {
        Self(errors)
    }

    /// The mistakes, in the order in which the graph was built.
    pub fn errors(&self) -> &[BuildError] {
        &self.0
    }
}

impl fmt::Display for CompilationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => write!(f, "{one}"),
            many => {
                write!(f, "the graph has {} mistakes:", many.len())?;
                many.iter().try_for_each(|e| write!(f, "\n  - {e}"))
            }
        }
    }
}

impl std::error::Error for CompilationError {}

/// What `fn main() -> Result<..>`, `unwrap` and `{:?}` show of superstep's errors: their words, and those of their causes
/// that they do not say themselves. Errors of your own can show the same.
///
/// ```
/// use std::fmt;
/// #[derive(thiserror::Error)]
/// #[error("the order was not sent")]
/// struct OrderError(#[source] std::num::ParseIntError);
///
/// impl fmt::Debug for OrderError {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         superstep::explain(self, f)
///     }
/// }
/// let error = OrderError("tea".parse::<i32>().unwrap_err());
/// assert_eq!(format!("{error:?}"), "the order was not sent\n  caused by: invalid digit found in string");
/// ```
pub fn explain(error: &dyn std::error::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut said = words_of(error);
    f.write_str(&said)?;
    for cause in std::iter::successors(cause_of(error), |cause| cause_of(*cause)) {
        let words = words_of(cause);
        if !said.contains(&words) {
            write!(f, "\n  caused by: {words}")?;
            said.push_str(&words);
        }
    }
    Ok(())
}

/// The cause of an error, if it can tell.
fn cause_of<'a>(error: &'a dyn std::error::Error) -> Option<&'a (dyn std::error::Error + 'static)> {
    caught(|| error.source()).ok().flatten()
}

/// Shows errors by [`explain`].
macro_rules! shown_in_words {
    ($($error:ty),+ $(,)?) => {$(
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::explain(self, f)
            }
        }
    )+};
}
pub(crate) use shown_in_words;

shown_in_words!(Error, CompilationError, InvalidUpdate);

/// A write that does not fit the field it is for.
///
/// ```
/// use superstep::InvalidUpdate;
///
/// let error = InvalidUpdate::new("score", "expected a number");
/// assert_eq!(error.to_string(), "field `score`: expected a number");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct InvalidUpdate {
    pub(crate) field: String,
    pub(crate) why: String,
    /// The kind of error that it makes of a run.
    pub(crate) kind: ErrorKind,
    /// The nodes that wrote the field in the step, by number, if that is known.
    pub(crate) writers: Vec<NodeIx>,
}

impl InvalidUpdate {
    /// A write to `field` that breaks the field's rule.
    pub fn new(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self { field: field.into(), why: why.into(), kind: ErrorKind::InvalidUpdate, writers: Vec::new() }
    }

    /// A value that the field's reducer cannot merge.
    pub fn refused(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self { field: field.into(), why: why.into(), kind: ErrorKind::Invalid, writers: Vec::new() }
    }

    /// The field's rule panicked, or one of its values.
    pub(crate) fn panicked(field: &str, what: &str, panic: &Panicked) -> Self {
        let why = format!("{what} panicked: {panic}");
        Self { field: field.to_owned(), why, kind: ErrorKind::Panic, writers: Vec::new() }
    }

    /// The state panicked when it was copied.
    pub(crate) fn state_panicked(panic: &Panicked) -> Self {
        Self::panicked("", "`Clone` of the state", panic)
    }

    /// Notes the nodes that wrote the field.
    pub(crate) fn written_by(self, writers: impl Iterator<Item = NodeIx>) -> Self {
        Self { writers: writers.collect(), ..self }
    }

    /// The same as a run's error, which says whose writes were merged.
    pub(crate) fn in_writes_of(self, nodes: &[&str]) -> Error {
        let listed = nodes.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let error = match nodes {
            [START] => Error::new(self.kind, format!("{self} (in the input)")),
            _ => Error::of_step(self.kind, format!("{self} (in what {listed} wrote"), ")"),
        };
        match nodes {
            [only] => error.at(only),
            _ => error,
        }
    }

    /// The field that was written.
    pub fn field(&self) -> &str {
        &self.field
    }
}

impl fmt::Display for InvalidUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "field `{}`: ", self.field)?;
        }
        f.write_str(&self.why)
    }
}

impl std::error::Error for InvalidUpdate {}

/// Why a run ended without a result.
///
/// It is one type that can be asked; match on [`Error::kind`] where several answers differ. Its words hold those of its
/// cause; returned from `main` it prints them with all further causes.
///
/// ```
/// use superstep::{ErrorKind, JsonState, StateGraph, END, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::dynamic(JsonState::schema())
///     .add_node("fail", async |_: superstep::JsonInput| Err::<(), _>("no luck"))
///     .add_edge(START, "fail")
///     .compile()?;
/// let error = app.invoke(serde_json::json!({})).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Node);
/// assert_eq!(error.node(), Some("fail"));
/// assert_eq!(error.step(), Some(1));
/// assert_eq!(error.to_string(), "node `fail` failed in step 1: no luck");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Error(Box<Failure>);

#[derive(Clone)]
struct Failure {
    kind: ErrorKind,
    node: Option<String>,
    step: Option<i64>,
    message: String,
    /// Where in the message the step is to be said, as long as it is not known.
    gap: Option<usize>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    /// Of what could not be saved or read.
    storage: Option<StorageFailure>,
}

/// What is known of a checkpoint that could not be saved or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StorageFailure {
    /// It may work the next time.
    MayPass,
    /// It will not.
    Lasts,
    /// A value cannot be encoded or decoded.
    OfValue,
}

/// The kinds of [`Error`].
///
/// ```
/// assert_ne!(superstep::ErrorKind::Timeout, superstep::ErrorKind::Node);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The run used up its steps before it came to an end.
    RecursionLimit,
    /// There was nothing to start with: no input, and no saved work to resume.
    EmptyInput,
    /// A node returned something that its graph cannot take.
    InvalidUpdate,
    /// A node took too long.
    Timeout,
    /// A node returned an error.
    Node,
    /// A node panicked, or the reducer of a field, or other code that the run was given.
    Panic,
    /// Graphs ran inside graphs [too deep](crate::MAX_LEVELS).
    Nesting,
    /// A call that cannot be served: unknown names, missing thread, a limit of zero.
    Invalid,
    /// One answer was given while several questions are open.
    AmbiguousResume,
    /// An answer was given to a question that nobody asked.
    UnknownInterrupt,
    /// A command for a parent graph reached the root.
    ParentCommand,
    /// The work was cancelled.
    Cancelled,
    /// The run was asked to stop at the next checkpoint and did.
    Drained,
    /// Something could not be saved or read back.
    Checkpoint,
    /// Another run or update took over the thread: this one may write no more.
    Fenced,
    /// A store or cache failed.
    Store,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Failure {
            kind,
            node: None,
            step: None,
            message: message.into(),
            gap: None,
            source: None,
            storage: None,
        }))
    }

    /// An error that says between its two parts in which step it came to be, once that is known.
    pub(crate) fn of_step(kind: ErrorKind, did: String, rest: &str) -> Self {
        let gap = did.len();
        let mut error = Self::new(kind, did + rest);
        error.0.gap = Some(gap);
        error
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn node_failed(node: &str, source: BoxError) -> Self {
        Self::failed(node, &called(node), source)
    }

    /// What was called for a node failed by itself.
    pub(crate) fn failed(node: &str, called: &str, source: BoxError) -> Self {
        let mut error = Self::of_step(ErrorKind::Node, format!("{called} failed"), "").at(node);
        error.0.source = Some(source.into());
        error
    }

    pub(crate) fn panicked(node: &str, called: &str, text: &str) -> Self {
        Self::of_step(ErrorKind::Panic, format!("{called} panicked"), &format!(": {text}")).at(node)
    }

    /// A value that a node was given or gave back panicked, outside of the node: when it was copied, read or dropped.
    pub(crate) fn value_panicked(node: &str, panicked: &Panicked) -> Self {
        let did = format!("a value of {} panicked", called(node));
        Self::of_step(ErrorKind::Panic, did, &format!(", outside of the node's own code: {panicked}")).at(node)
    }

    /// A task was dropped by its runtime.
    pub(crate) fn dropped(node: &str) -> Self {
        let did = format!("{} was dropped by its runtime", called(node));
        Self::of_step(ErrorKind::Cancelled, did, " before it came to its end").at(node)
    }

    /// Code that a run was given panicked, and it was no node's.
    pub(crate) fn run_panicked(graph: &str, doing: &str, panicked: &Panicked) -> Self {
        Self::new(ErrorKind::Panic, format!("{doing} of graph `{graph}` panicked: {panicked}"))
    }

    /// A graph would run too deep inside others.
    pub(crate) fn too_deep(graph: &str, place: &str, limit: usize) -> Self {
        let words = format!(
            "graph `{graph}`{place} would run inside {limit} others, which is the limit; end the recursion earlier, \
             make it a loop of one graph, or start it as a run of its own with `tokio::spawn`"
        );
        Self::new(ErrorKind::Nesting, words)
    }

    pub(crate) fn timed_out(node: &str, called: &str, what: &str, limit: Duration) -> Self {
        let did = format!("{called} exceeded its {what} timeout of {limit:?}");
        Self::of_step(ErrorKind::Timeout, did, "").at(node)
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the run was cancelled")
    }

    pub(crate) fn at(mut self, node: &str) -> Self {
        if self.0.node.is_none() {
            // What came out of a graph inside and was no node's is this node's: so is the step.
            (self.0.node, self.0.step) = (Some(node.to_owned()), None);
        }
        self
    }

    /// Says in which step it came to be. What came out of a graph inside knows it already.
    pub(crate) fn in_step(mut self, step: i64) -> Self {
        if self.0.step.is_none() {
            self.0.step = Some(step);
            if let Some(gap) = self.0.gap.take() {
                self.0.message.insert_str(gap, &format!(" in step {step}"));
            }
        }
        self
    }

    /// Says whose value could not be saved, if that is what is wrong.
    pub(crate) fn written_by(mut self, name: &str, called: &str) -> Self {
        if self.0.node.is_none() && self.0.storage == Some(StorageFailure::OfValue) {
            self.0.message = format!("what {called} gave cannot be saved");
            self.0.gap = Some(self.0.message.len());
            self.0.node = Some(name.to_owned());
        }
        self
    }

    /// Something that could not be saved or read, and whether it may be the next time.
    pub(crate) fn of_storage(kind: ErrorKind, words: &str, failure: StorageFailure) -> Self {
        let mut error = Self::new(kind, words);
        error.0.storage = Some(failure);
        error
    }

    /// Says which error a handler was called for.
    pub(crate) fn while_handling(mut self, first: &TaskError) -> Self {
        self.0.message = format!("{} (called for \"{}\")", self.0.message, first.message);
        self
    }

    pub(crate) fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into().into());
        self
    }

    /// Which kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The node that failed, if a node did.
    pub fn node(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// The step in which it failed, as its graph counts them, if a node did; of a node inside a subgraph, the subgraph's.
    pub fn step(&self) -> Option<i64> {
        self.0.step
    }

    /// Whether the run used up its recursion limit.
    pub fn is_recursion_limit(&self) -> bool {
        self.kind() == ErrorKind::RecursionLimit
    }

    /// Whether a node took too long.
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// Whether the run was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.kind() == ErrorKind::Cancelled
    }

    /// Whether another run or update took over the thread.
    pub fn is_fenced(&self) -> bool {
        self.kind() == ErrorKind::Fenced
    }

    /// Whether the run stopped because it was asked to, at a checkpoint it can go on from.
    pub fn is_drained(&self) -> bool {
        self.kind() == ErrorKind::Drained
    }

    /// Whether the same call may succeed if it is made again: the failure lay in a node's
    /// work, in time or in storage, not in the call or the graph.
    ///
    /// Not retryable are a node's error marked [`Terminal`], and what [storage cannot do better the next
    /// time](crate::CheckpointError::is_retryable).
    pub fn is_retryable(&self) -> bool {
        let source = self.0.source.as_ref();
        match self.kind() {
            ErrorKind::Node => !source.is_some_and(|s| s.is::<Terminal>()),
            ErrorKind::Checkpoint => self.0.storage == Some(StorageFailure::MayPass),
            kind => {
                matches!(kind, ErrorKind::Timeout | ErrorKind::Store | ErrorKind::Drained | ErrorKind::Cancelled)
            }
        }
    }

    /// The error that a node returned, if it is a `T`.
    ///
    /// An error of a node inside a subgraph is found too.
    pub fn downcast_ref<T: std::error::Error + 'static>(&self) -> Option<&T> {
        let source = self.0.source.as_deref()?;
        source.downcast_ref::<T>().or_else(|| source.downcast_ref::<Error>()?.downcast_ref::<T>())
    }
}

/// How errors speak of a node: an error handler has no name of its own.
pub(crate) fn called(node: &str) -> String {
    match node.strip_prefix(HANDLER_OF) {
        Some(handled) => format!("the error handler of `{handled}`"),
        None if node == DEFAULT_HANDLER => "the default error handler".to_owned(),
        None => format!("node `{node}`"),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match &self.0.source {
            Some(source) => write!(f, ": {}", words_of(&**source)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}

impl From<InvalidUpdate> for Error {
    fn from(error: InvalidUpdate) -> Self {
        Error::new(error.kind, error.to_string())
    }
}

/// A value that cannot be encoded, or bytes that do not decode.
///
/// ```
/// let error = superstep::CodecError::new("not a map");
/// assert_eq!(error.to_string(), "not a map");
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct CodecError {
    why: String,
    /// The value, not its type, is in the way.
    is_too_deep: bool,
}

shown_in_words!(CodecError);

impl CodecError {
    /// An error with these words.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_too_deep: false }
    }

    pub(crate) fn too_deep(why: String) -> Self {
        Self { why, is_too_deep: true }
    }

    /// The same, said of a part of something larger.
    pub(crate) fn of(self, what: &str) -> Self {
        Self { why: format!("{what}: {}", self.why), ..self }
    }

    pub(crate) fn is_too_deep(&self) -> bool {
        self.is_too_deep
    }
}

/// A task's failure as it is kept in checkpoints and shown: the words, and which kind of error it was.
///
/// ```
/// use superstep::{ErrorKind, TaskError};
/// let error = TaskError::new(ErrorKind::Timeout, "node `ask` exceeded its run timeout of 1s");
/// assert!(error.to_string().contains("timeout"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskError {
    /// The kind.
    pub kind: ErrorKind,
    /// What went wrong; of a node's own error, what the node said.
    pub message: String,
}

impl TaskError {
    /// A failure with these words.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl From<&Error> for TaskError {
    fn from(error: &Error) -> Self {
        let message = match (error.kind(), &error.0.source) {
            (ErrorKind::Node, Some(source)) => words_of(&**source),
            _ => error.to_string(),
        };
        Self { kind: error.kind(), message }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Marks a node's error as one that no retry can mend.
///
/// ```
/// use superstep::Terminal;
///
/// fn charge(card: &str) -> Result<(), Terminal> {
///     if card.is_empty() { return Err(Terminal::new("there is no card")); }
///     Ok(())
/// }
/// assert_eq!(charge("").unwrap_err().to_string(), "there is no card");
/// ```
#[derive(Debug)]
pub struct Terminal(BoxError);

impl Terminal {
    /// Wraps an error.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Terminal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}
