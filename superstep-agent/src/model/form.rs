//! Answers in a form that was asked for.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use superstep::Message;

use super::{ChatRequest, ModelError, ModelErrorKind, OutputSchema};

const MISTAKES: usize = 2;

/// A question for a value; answers that do not fit are given back with the reason.
pub(crate) struct InForm {
    request: ChatRequest,
    mistakes: usize,
}

impl InForm {
    pub(crate) fn of<T: JsonSchema>(mut request: ChatRequest) -> Self {
        request.output = Some(OutputSchema::of::<T>());
        Self { request, mistakes: 0 }
    }

    /// What to ask next.
    pub(crate) fn request(&self) -> ChatRequest {
        self.request.clone()
    }

    /// The value in an answer; nothing if the model is to be asked again.
    ///
    /// # Errors
    /// If it does not fit, and the model had its chances.
    pub(crate) fn read<T: DeserializeOwned>(&mut self, answer: Message, model: &str) -> Result<Option<T>, ModelError> {
        let why = match parse::<T>(&answer.text()) {
            Ok(value) => return Ok(Some(value)),
            Err(why) => why,
        };
        if self.mistakes == MISTAKES {
            let words = format!("its answer does not fit the asked form: {why}");
            return Err(ModelError::new(ModelErrorKind::InvalidOutput, model, words));
        }
        self.mistakes += 1;
        let correction = format!("That does not fit the asked form: {why}. Answer again with JSON only.");
        self.request.messages.extend([answer, Message::user(correction)]);
        Ok(None)
    }
}

/// The value in an answer; models like to wrap it in a fence.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).and_then(|t| t.strip_suffix("```"));
    serde_json::from_str(inner.unwrap_or(text)).map_err(|e| e.to_string())
}
