//! The state of agents that need none of their own.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use superstep::{IntoUpdate, Message, State, Update};

/// A conversation, and the answer in the form that was asked for.
///
/// A text or a message is an update of it: `agent.invoke("hello")`.
///
/// ```
/// use superstep::Message;
/// use superstep_agent::ReactState;
/// let state = ReactState { messages: vec![Message::user("hi")], ..ReactState::default() };
/// assert!(state.structured_response.is_none());
/// ```
#[derive(State, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReactState {
    /// The conversation.
    #[state(messages)]
    pub messages: Vec<Message>,
    /// The answer in the form that was asked for.
    pub structured_response: Option<Value>,
}

impl ReactState {
    /// The answer in the form that was asked for; nothing if there is none yet.
    ///
    /// # Errors
    /// If it has another form.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        self.structured_response.clone().map(serde_json::from_value).transpose()
    }
}

/// One more message.
impl IntoUpdate<ReactState> for Message {
    fn into_update(self) -> Update<ReactState> {
        Update::new().set(ReactState::MESSAGES, vec![self])
    }
}

/// More messages.
impl IntoUpdate<ReactState> for Vec<Message> {
    fn into_update(self) -> Update<ReactState> {
        Update::new().set(ReactState::MESSAGES, self)
    }
}

/// A human's words.
impl IntoUpdate<ReactState> for String {
    fn into_update(self) -> Update<ReactState> {
        IntoUpdate::<ReactState>::into_update(Message::user(self))
    }
}

/// A human's words.
impl IntoUpdate<ReactState> for &str {
    fn into_update(self) -> Update<ReactState> {
        IntoUpdate::<ReactState>::into_update(Message::user(self))
    }
}
