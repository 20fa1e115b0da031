//! What can go wrong, by the names that traces use.

use std::fmt;

use serde_json::{Value, json};
use superstep::{BoxError, CompilationError, Error, ErrorKind, StoreError, TaskError};

/// What the statement `fail` raises.
#[derive(Debug)]
pub(crate) struct Fail {
    pub(crate) message: String,
    /// The kind that no retry policy is for.
    pub(crate) other: bool,
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fail {}

/// A value that an expression or statement cannot work with, by the name of the exception that Python raises for it.
#[derive(Debug)]
pub(crate) struct WrongValue {
    exception: &'static str,
    why: String,
}

/// The exceptions that a [`WrongValue`] may stand for.
const EXCEPTIONS: [&str; 6] =
    ["TypeError", "ValueError", "KeyError", "IndexError", "AttributeError", "ZeroDivisionError"];

impl WrongValue {
    pub(crate) fn new(exception: &'static str, why: impl Into<String>) -> Self {
        Self { exception, why: why.into() }
    }

    pub(crate) fn wrong_type(why: impl Into<String>) -> Self {
        Self::new("TypeError", why)
    }
}

impl fmt::Display for WrongValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.exception, self.why)
    }
}

impl std::error::Error for WrongValue {}

/// The name that traces have for a Python exception.
fn exception_kind(exception: &str) -> &str {
    match exception {
        "TypeError" | "ValueError" | "KeyError" => "invalid",
        other => other,
    }
}

/// Why a call of the script has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    Run(Error),
    Compilation,
    Named(&'static str),
}

impl Failure {
    /// A call that makes no sense.
    pub(crate) const INVALID: Failure = Failure::Named("invalid");

    /// As a trace shows it.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Failure::Run(error) => run_error(error),
            Failure::Compilation => json!({ "kind": "invalid" }),
            Failure::Named(kind) => json!({ "kind": kind }),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Run(error)
    }
}

impl From<CompilationError> for Failure {
    fn from(_: CompilationError) -> Self {
        Failure::Compilation
    }
}

impl From<superstep::CheckpointError> for Failure {
    fn from(error: superstep::CheckpointError) -> Self {
        Failure::Run(error.into())
    }
}

impl From<StoreError> for Failure {
    fn from(_: StoreError) -> Self {
        Failure::INVALID
    }
}

impl From<WrongValue> for Failure {
    fn from(wrong: WrongValue) -> Self {
        match exception_kind(wrong.exception) {
            "invalid" => Failure::INVALID,
            _ => Failure::Named(wrong.exception),
        }
    }
}

fn run_error(error: &Error) -> Value {
    if let Some(fail) = error.downcast_ref::<Fail>() {
        return json!({ "kind": "node_error", "message": fail.message });
    }
    if let Some(wrong) = error.downcast_ref::<WrongValue>() {
        return json!({ "kind": exception_kind(wrong.exception) });
    }
    match kind_name(error.kind()) {
        Some(kind) => json!({ "kind": kind }),
        None if error.kind() == ErrorKind::Node => {
            json!({ "kind": "node_error", "message": source_text(error) })
        }
        None => json!({ "kind": format!("{:?}", error.kind()) }),
    }
}

fn source_text(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn kind_name(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::RecursionLimit => "recursion_limit",
        ErrorKind::EmptyInput => "empty_input",
        ErrorKind::InvalidUpdate => "invalid_update",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Invalid => "invalid",
        ErrorKind::AmbiguousResume => "ambiguous_resume",
        ErrorKind::ParentCommand => "parent_command",
        ErrorKind::Cancelled => "cancelled",
        _ => return None,
    })
}

/// A task's error as it was saved, in the words of a trace: the message of a `fail`, else the kind.
pub(crate) fn saved_error(error: &TaskError, raised: bool) -> String {
    if raised {
        return error.message.clone();
    }
    let exception =
        EXCEPTIONS.iter().find(|e| error.message.strip_prefix(**e).is_some_and(|rest| rest.starts_with(": ")));
    let kind = exception.map(|e| exception_kind(e)).or_else(|| kind_name(error.kind));
    kind.unwrap_or(&error.message).to_owned()
}

/// A store's refusal, as the node that asked sees it.
pub(crate) fn refused_by_store(error: &StoreError) -> BoxError {
    Box::new(WrongValue::new("ValueError", error.to_string()))
}
