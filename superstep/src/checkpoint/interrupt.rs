//! Questions to a human, as they are saved and shown.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question that a node asked and that waits for an answer.
///
/// ```
/// use superstep::Interrupt;
/// let question = Interrupt::new("0123456789abcdef0123456789abcdef", "ok to send?");
/// assert_eq!(question.value, "ok to send?");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interrupt {
    /// Names the question; answers can be given by it.
    pub id: String,
    /// What was asked.
    pub value: Value,
}

impl Interrupt {
    /// A question with an id.
    pub fn new(id: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { id: id.into(), value: value.into() }
    }

    /// What was asked, as a `T`.
    ///
    /// # Errors
    /// If it is something else.
    pub fn value_as<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&self.value)
    }
}
