//! Google's Gemini.

mod answer;
mod request;

use answer::Answer;

use super::answer_tool::AnswerTool;
use super::http::{Connection, Fault, Home, Post};
use super::setup::{Asked, Setup, provider_options};

const HOME: Home = Home {
    provider: "gemini",
    url: "https://generativelanguage.googleapis.com/v1beta",
    url_variable: "GOOGLE_GEMINI_BASE_URL",
    key_variable: "GEMINI_API_KEY",
    key_header: ("x-goog-api-key", ""),
};

/// A model that is asked through Gemini's `generateContent`.
///
/// Function calls that come without an id get one. Signatures of thoughts stay with the part that they came with, and
/// are given back with it. A blocked prompt or answer is an error of kind
/// [`Refused`](crate::ModelErrorKind::Refused). Gemini cannot be told to call one tool at a time: a request that asks
/// for it is an error. The environment variables are `GEMINI_API_KEY` and `GOOGLE_GEMINI_BASE_URL`.
///
/// ```
/// use serde_json::json;
/// use superstep_agent::{ChatModel, Gemini};
///
/// let model = Gemini::new("gemini-2.5-flash")
///     .api_key("AIza…")
///     .setting("generationConfig", json!({"thinkingConfig": {"includeThoughts": true}}));
/// assert_eq!(model.name(), "gemini-2.5-flash");
/// ```
#[derive(Debug, Clone)]
pub struct Gemini {
    setup: Setup,
}

provider_options!(Gemini, "Gemini::new(\"gemini-2.5-flash\").setting(\"cachedContent\", \"cachedContents/1\")");

impl Gemini {
    fn post(&self, asked: &Asked, streaming: bool) -> Result<Post, Fault> {
        let body = request::body(asked)?;
        let method = if streaming { "streamGenerateContent?alt=sse" } else { "generateContent" };
        let model = &self.setup.model;
        let model = if model.contains('/') { model.clone() } else { format!("models/{model}") };
        Ok(Post { path: format!("/{model}:{method}"), headers: &[], body })
    }

    fn decoder(asked: &Asked) -> AnswerTool<Answer> {
        AnswerTool::new(Answer::new(&asked.provider), asked.answer_tool.clone())
    }
}
