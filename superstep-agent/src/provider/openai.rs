//! OpenAI's chat completions, and the many servers that speak the same language.

mod answer;
mod request;

use answer::Completion;

use super::answer_tool::AnswerTool;
use super::http::{Connection, Fault, Home, Post};
use super::setup::{Asked, Setup, provider_options};

const HOME: Home = Home {
    provider: "openai",
    url: "https://api.openai.com/v1",
    url_variable: "OPENAI_BASE_URL",
    key_variable: "OPENAI_API_KEY",
    key_header: ("authorization", "Bearer "),
};

/// A model that is asked through OpenAI's chat completions: OpenAI's own, or one of any server that speaks the same
/// language, like Ollama, vLLM or DeepSeek, by its [`base_url`](OpenAi::base_url).
///
/// Thoughts in `reasoning_content` or `reasoning` are [`Block::Reasoning`](superstep::Block::Reasoning), and given back
/// while the question that they are about is being answered. A refusal is an error of kind
/// [`Refused`](crate::ModelErrorKind::Refused). The environment variables are `OPENAI_API_KEY` and `OPENAI_BASE_URL`.
///
/// ```
/// use superstep_agent::{ChatModel, OpenAi};
///
/// let model = OpenAi::new("gpt-5").api_key("sk-…").temperature(0.0);
/// let local = OpenAi::new("qwen3").base_url("http://localhost:11434/v1");
/// assert_eq!((model.name(), local.name()), ("gpt-5", "qwen3"));
/// ```
#[derive(Debug, Clone)]
pub struct OpenAi {
    setup: Setup,
}

provider_options!(OpenAi, "OpenAi::new(\"gpt-5\").setting(\"reasoning_effort\", \"low\")");

impl OpenAi {
    fn post(&self, asked: &Asked, streaming: bool) -> Result<Post, Fault> {
        let body = request::body(&self.setup, asked, streaming)?;
        Ok(Post { path: "/chat/completions".into(), headers: &[], body })
    }

    fn decoder(asked: &Asked) -> AnswerTool<Completion> {
        AnswerTool::new(Completion::new(&asked.provider), asked.answer_tool.clone())
    }
}
