//! Messages in the forms that others use, and conversations cut to what is needed.

mod filter;
mod langchain;
mod openai;
mod origin;
mod tally;
mod trim;

pub use filter::{MessageFilter, filter_messages};
pub use langchain::{from_langchain, to_langchain};
#[cfg(feature = "openai")]
pub(crate) use openai::{Listener, arguments};
pub use openai::{from_openai, to_openai};
pub(crate) use origin::{answer_instead, refuses, written_by};
pub(crate) use tally::{SUMMARY, Tally, in_place_of, is_summary};
pub use trim::{Trim, approximate_tokens, trim_messages};

/// Why a message cannot be read or written in a form.
///
/// ```
/// let error = superstep_agent::message::from_openai(&[serde_json::json!({"role": "narrator"})]).unwrap_err();
/// assert_eq!(error.to_string(), "message 0: there is no role `narrator`");
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("message {place}: {words}")]
pub struct FormError {
    place: usize,
    words: String,
}

shown_in_words!(FormError);

impl FormError {
    /// The place of the message in the conversation.
    pub fn place(&self) -> usize {
        self.place
    }

    #[cfg(feature = "openai")]
    pub(crate) fn words(&self) -> &str {
        &self.words
    }
}

/// Applies a function to each message; its words become an error that says which one it was.
fn each<T, U>(all: &[T], convert: impl Fn(&T) -> Result<U, String>) -> Result<Vec<U>, FormError> {
    let converted = all.iter().enumerate().map(|(place, one)| convert(one).map_err(|words| FormError { place, words }));
    converted.collect()
}
