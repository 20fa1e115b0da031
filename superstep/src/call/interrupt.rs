//! Questions to a human, and their answers.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::wall::caught;

/// The error with which a node's future ends while its question is open: pass it on with `?`.
///
/// ```
/// use superstep::{AgentState, Context, Interrupted};
///
/// async fn approve(_: AgentState, cx: Context) -> Result<(), Interrupted> {
///     let answer: String = cx.interrupt("send it?")?;
///     println!("a human said {answer}");
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Interrupted {
    pub(crate) why: Why,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Why {
    /// The question is open.
    Asked,
    /// There is an answer, but not of the type that was asked for.
    BadAnswer(String),
    /// The question cannot be encoded.
    BadQuestion(String),
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Asked => f.write_str("the node asked a question and waits for the answer"),
            Why::BadAnswer(why) => write!(f, "the answer does not fit the question: {why}"),
            Why::BadQuestion(why) => write!(f, "the question cannot be encoded: {why}"),
        }
    }
}

impl std::error::Error for Interrupted {}

/// The answer with which a paused run goes on.
///
/// ```
/// use superstep::Resume;
/// let one = Resume::value("yes");
/// let two = Resume::by_id([("0123456789abcdef0123456789abcdef", "yes"), ("fedcba9876543210fedcba9876543210", "no")]);
/// # let _ = (one, two);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Resume(pub(crate) GivenAnswers);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GivenAnswers {
    One(Value),
    ById(BTreeMap<String, Value>),
    Unencodable(String),
}

impl Resume {
    /// Answers the one open question.
    pub fn value(answer: impl Serialize) -> Self {
        Self(json_of(answer).map_or_else(GivenAnswers::Unencodable, GivenAnswers::One))
    }

    /// Answers questions by their ids; those not named stay open.
    pub fn by_id<I: Into<String>, A: Serialize>(answers: impl IntoIterator<Item = (I, A)>) -> Self {
        let encoded = answers.into_iter().map(|(id, answer)| Ok((id.into(), json_of(answer)?)));
        Self(encoded.collect::<Result<_, _>>().map_or_else(GivenAnswers::Unencodable, GivenAnswers::ById))
    }
}

/// What a caller gave, as JSON, or why it is none.
pub(crate) fn json_of(value: impl Serialize) -> Result<Value, String> {
    match caught(|| serde_json::to_value(value)) {
        Ok(encoded) => encoded.map_err(|error| error.to_string()),
        Err(panicked) => Err(format!("its `Serialize` panicked: {panicked}")),
    }
}

impl<T: Serialize> From<T> for Resume {
    fn from(answer: T) -> Self {
        Self::value(answer)
    }
}
