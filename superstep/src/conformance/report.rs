//! What a suite has found.

use std::fmt;

use crate::{CacheError, StoreError};

/// Which clauses of a suite hold.
///
/// ```
/// use superstep::conformance::Report;
///
/// let report = Report::default();
/// assert!(report.is_ok());
/// report.expect_ok();
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "a report says what is wrong, and nobody has read it"]
#[non_exhaustive]
pub struct Report {
    /// The clauses that hold.
    pub passed: Vec<&'static str>,
    /// The clauses that do not.
    pub failed: Vec<Failure>,
}

impl Report {
    /// Whether all clauses hold.
    pub fn is_ok(&self) -> bool {
        self.failed.is_empty()
    }

    /// Panics with the clauses that do not hold, for tests.
    #[track_caller]
    pub fn expect_ok(&self) {
        assert!(self.is_ok(), "{self}");
    }

    pub(super) fn note(&mut self, clause: &'static str, result: Result<(), Fault>) {
        match result {
            Ok(()) => self.passed.push(clause),
            Err(Fault(how)) => self.failed.push(Failure { clause, how }),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} clauses hold, {} do not", self.passed.len(), self.failed.len())?;
        self.failed.iter().try_for_each(|Failure { clause, how }| write!(f, "\n`{clause}`: {how}"))
    }
}

/// A clause that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The clause, as a sentence with underscores.
    pub clause: &'static str,
    /// How it does not hold.
    pub how: String,
}

/// How a clause does not hold.
#[derive(Debug)]
pub(super) struct Fault(pub(super) String);

/// What a clause comes to.
pub(super) type Held = Result<(), Fault>;

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self(format!("unexpected error: {}", with_sources(&error)))
    }
}

impl From<CacheError> for Fault {
    fn from(error: CacheError) -> Self {
        Self(format!("unexpected error: {}", with_sources(&error)))
    }
}

/// An error with all that caused it.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}

/// Fails the clause unless both are equal.
pub(super) fn same<T: PartialEq + fmt::Debug>(what: &str, found: T, wanted: T) -> Held {
    if found == wanted {
        return Ok(());
    }
    Err(Fault(format!("{what}: found {found:?}, wanted {wanted:?}")))
}

/// Fails the clause unless it is so.
pub(super) fn ensure(what: &str, holds: bool) -> Held {
    if holds {
        return Ok(());
    }
    Err(Fault(what.to_owned()))
}

/// Runs each named function as a clause.
macro_rules! clauses {
    ($report:ident, $maker:ident: $($clause:path),* $(,)?) => {
        $($report.note(super::report::last_name(stringify!($clause)), $clause($maker).await);)*
    };
}
pub(super) use clauses;

/// The name of a function without its module.
pub(super) fn last_name(path: &'static str) -> &'static str {
    path.rsplit(':').next().unwrap_or(path).trim()
}
