//! Anthropic's messages.

mod answer;
mod request;

use answer::Answer;

use super::answer_tool::AnswerTool;
use super::http::{Connection, Fault, Home, Post};
use super::setup::{Asked, Setup, provider_options};

const HOME: Home = Home {
    provider: "anthropic",
    url: "https://api.anthropic.com",
    url_variable: "ANTHROPIC_BASE_URL",
    key_variable: "ANTHROPIC_API_KEY",
    key_header: ("x-api-key", ""),
};

/// A model that is asked through Anthropic's messages.
///
/// Thoughts keep their signatures, redacted ones and what server tools leave are
/// [opaque](superstep::Block::Opaque); all are given back as they came. System texts are sent apart wherever they stand.
/// `extra` fields of texts that a human or the system says are sent too: `cache_control`, for one. A refusal is an
/// error of kind [`Refused`](crate::ModelErrorKind::Refused). The environment variables are `ANTHROPIC_API_KEY` and
/// `ANTHROPIC_BASE_URL`. An answer has 8192 tokens at most, unless
/// [`max_tokens`](Anthropic::max_tokens) says otherwise.
///
/// ```
/// use serde_json::json;
/// use superstep_agent::{Anthropic, ChatModel};
///
/// let model = Anthropic::new("claude-sonnet-4-5")
///     .api_key("sk-ant-…")
///     .max_tokens(20_000)
///     .setting("thinking", json!({"type": "enabled", "budget_tokens": 10_000}));
/// assert_eq!(model.name(), "claude-sonnet-4-5");
/// ```
#[derive(Debug, Clone)]
pub struct Anthropic {
    setup: Setup,
}

provider_options!(Anthropic, "Anthropic::new(\"claude-sonnet-4-5\").setting(\"service_tier\", \"auto\")");

impl Anthropic {
    fn post(&self, asked: &Asked, streaming: bool) -> Result<Post, Fault> {
        let body = request::body(&self.setup.model, asked, streaming)?;
        Ok(Post { path: "/v1/messages".into(), headers: &[("anthropic-version", "2023-06-01")], body })
    }

    fn decoder(asked: &Asked) -> AnswerTool<Answer> {
        AnswerTool::new(Answer::new(&asked.provider), asked.answer_tool.clone())
    }
}
