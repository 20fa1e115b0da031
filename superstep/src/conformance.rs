//! What every checkpointer, store and cache must do, as suites that whoever writes one can run.
//!
//! A suite has clauses. Each says one thing that must hold, is tried on its own, and passes or says why it does not.

pub mod cache;
pub mod checkpointer;
mod claims;
pub mod store;

use std::fmt;

/// What a suite found: every clause by name, passed or why not.
///
/// ```
/// use superstep::MemorySaver;
/// use superstep::conformance::checkpointer;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let report = checkpointer::expiry(|ttl| async move { MemorySaver::new().ttl(ttl) }).await;
/// assert_eq!(report.failed().count(), 0, "{report}");
/// println!("{report}");
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a report says whether the suite passed; `assert` makes a test of it"]
pub struct Report {
    clauses: Vec<Clause>,
}

/// One thing that must hold, and whether it did.
///
/// ```
/// # fn show(clause: &superstep::conformance::Clause) {
/// match &clause.failure {
///     None => println!("{} holds", clause.name),
///     Some(why) => println!("{} does not hold: {why}", clause.name),
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clause {
    /// What must hold.
    pub name: String,
    /// Why it does not.
    pub failure: Option<String>,
}

impl Report {
    /// All clauses, in the order in which they were tried.
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// The clauses that do not hold.
    pub fn failed(&self) -> impl Iterator<Item = &Clause> {
        self.clauses.iter().filter(|clause| clause.failure.is_some())
    }

    /// Ends a test: nothing if all clauses hold, a panic that names those which do not otherwise.
    ///
    /// # Panics
    /// If a clause does not hold.
    #[track_caller]
    pub fn assert(&self) {
        assert!(self.failed().next().is_none(), "the suite did not pass\n{self}");
    }

    /// Tries a clause; a panic is a failure like any other.
    async fn check(&mut self, name: &str, clause: impl Future<Output = Checked> + Send + 'static) {
        let failure = match tokio::spawn(clause).await {
            Ok(Ok(())) => None,
            Ok(Err(Broken(why))) => Some(why),
            Err(panicked) => Some(panicked.to_string()),
        };
        self.clauses.push(Clause { name: name.replace('_', " "), failure });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for clause in &self.clauses {
            match &clause.failure {
                None => writeln!(f, "ok      {}", clause.name)?,
                Some(why) => writeln!(f, "FAILED  {}: {why}", clause.name)?,
            }
        }
        write!(f, "{} clauses, {} failed", self.clauses.len(), self.failed().count())
    }
}

/// Why a clause does not hold.
#[derive(Debug)]
struct Broken(String);

type Checked<T = ()> = Result<T, Broken>;

impl<E: std::error::Error> From<E> for Broken {
    fn from(error: E) -> Self {
        Self(format!("an error came back: {error}"))
    }
}

/// Fails the clause, unless this holds.
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err($crate::conformance::Broken(format!($($why)+)));
        }
    };
}
use ensure;

fn equal<T: PartialEq + fmt::Debug>(what: impl fmt::Display, found: &T, expected: &T) -> Checked {
    ensure!(found == expected, "{what}: {} instead of {}", short(found), short(expected));
    Ok(())
}

/// A value in words, without the middle of a long one.
fn short(value: &impl fmt::Debug) -> String {
    const HALF: usize = 150;
    let text = format!("{value:?}");
    let chars = text.chars().count();
    if chars <= 2 * HALF {
        return text;
    }
    let (start, end): (String, String) = (text.chars().take(HALF).collect(), text.chars().skip(chars - HALF).collect());
    format!("{start} .. {end} ({chars} characters)")
}
