//! What a model reads before the conversation.

use std::sync::Arc;

use superstep::{Conversation, Message};

use super::history::with_all_answers;

/// Instructions of an agent.
///
/// ```
/// use superstep::Message;
/// use superstep_agent::{Prompt, ReactState};
/// let text: Prompt<ReactState> = "Be brief.".into();
/// let message: Prompt<ReactState> = Message::system("Be brief.").into();
/// # let _ = (text, message);
/// ```
pub struct Prompt<S>(Kind<S>);

enum Kind<S> {
    None,
    First(Message),
    FromState(Arc<dyn Fn(&S) -> String + Send + Sync>),
    Whole(Arc<dyn Fn(&S) -> Vec<Message> + Send + Sync>),
}

impl<S> std::fmt::Debug for Prompt<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::None => f.write_str("None"),
            Kind::First(message) => f.debug_tuple("First").field(message).finish(),
            Kind::FromState(_) => f.write_str("FromState(..)"),
            Kind::Whole(_) => f.write_str("Whole(..)"),
        }
    }
}

impl<S: Conversation> Prompt<S> {
    /// None.
    pub fn none() -> Self {
        Self(Kind::None)
    }

    /// Instructions that depend on the state.
    pub fn from_state(prompt: impl Fn(&S) -> String + Send + Sync + 'static) -> Self {
        Self(Kind::FromState(Arc::new(prompt)))
    }

    /// A function that makes everything that the model reads.
    pub fn whole(messages: impl Fn(&S) -> Vec<Message> + Send + Sync + 'static) -> Self {
        Self(Kind::Whole(Arc::new(messages)))
    }

    /// All that the model reads.
    pub(super) fn messages(&self, state: &S) -> Vec<Message> {
        let first = match &self.0 {
            Kind::None => None,
            Kind::First(message) => Some(message.clone()),
            Kind::FromState(prompt) => Some(Message::system(prompt(state))),
            Kind::Whole(messages) => return with_all_answers(&messages(state)),
        };
        let mut messages = with_all_answers(state.conversation());
        if let Some(first) = first {
            messages.insert(0, first);
        }
        messages
    }
}

impl<S> From<&str> for Prompt<S> {
    fn from(text: &str) -> Self {
        Message::system(text).into()
    }
}

impl<S> From<String> for Prompt<S> {
    fn from(text: String) -> Self {
        Message::system(text).into()
    }
}

impl<S> From<Message> for Prompt<S> {
    fn from(message: Message) -> Self {
        Self(Kind::First(message))
    }
}
