//! OpenAI's responses.

mod answer;
mod request;

use answer::Answer;

use super::answer_tool::AnswerTool;
use super::http::{Connection, Fault, Home, Post};
use super::setup::{Asked, Setup, provider_options};

const HOME: Home = Home {
    provider: "openai-responses",
    url: "https://api.openai.com/v1",
    url_variable: "OPENAI_BASE_URL",
    key_variable: "OPENAI_API_KEY",
    key_header: ("authorization", "Bearer "),
};

/// A model that is asked through OpenAI's responses.
///
/// Nothing is kept at OpenAI: the whole conversation is sent each time, with the model's encrypted thoughts, which are
/// kept in [`Block::Reasoning`](superstep::Block::Reasoning). What built-in tools leave is
/// [opaque](superstep::Block::Opaque). A refusal is an error of kind [`Refused`](crate::ModelErrorKind::Refused). The
/// environment variables are `OPENAI_API_KEY` and `OPENAI_BASE_URL`. The API has no stop words: a request with some is
/// an error. Models that do not think refuse to be asked for encrypted thoughts: give them an empty list as
/// [`setting`](OpenAiResponses::setting) `include`.
///
/// ```
/// use serde_json::json;
/// use superstep_agent::{ChatModel, OpenAiResponses};
///
/// let model = OpenAiResponses::new("gpt-5").api_key("sk-…").setting("reasoning", json!({"effort": "low", "summary": "auto"}));
/// assert_eq!(model.name(), "gpt-5");
/// ```
#[derive(Debug, Clone)]
pub struct OpenAiResponses {
    setup: Setup,
}

provider_options!(OpenAiResponses, "OpenAiResponses::new(\"gpt-5\").setting(\"truncation\", \"auto\")");

impl OpenAiResponses {
    fn post(&self, asked: &Asked, streaming: bool) -> Result<Post, Fault> {
        let body = request::body(&self.setup.model, asked, streaming)?;
        Ok(Post { path: "/responses".into(), headers: &[], body })
    }

    fn decoder(asked: &Asked) -> AnswerTool<Answer> {
        AnswerTool::new(Answer::new(&asked.provider), asked.answer_tool.clone())
    }
}
