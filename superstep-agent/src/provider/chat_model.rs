//! Models by one name.

use std::sync::Arc;

use crate::model::{ChatModel, ModelError, ModelErrorKind};

/// A model by the name of its provider and its own, like `openai:gpt-5`, with the key of the environment.
///
/// | provider | model | feature | key |
/// |---|---|---|---|
/// | `openai` | `OpenAi` | `openai` | `OPENAI_API_KEY` |
/// | `openai-responses` | `OpenAiResponses` | `openai` | `OPENAI_API_KEY` |
/// | `ollama` | `OpenAi`, at `http://localhost:11434/v1` | `openai` | |
/// | `anthropic` | `Anthropic` | `anthropic` | `ANTHROPIC_API_KEY` |
/// | `gemini` | `Gemini` | `gemini` | `GEMINI_API_KEY` |
///
/// # Errors
/// If there is no such provider, its feature is off, or its key is missing.
///
/// ```
/// use superstep_agent::chat_model;
/// let error = chat_model("oracle:delphi").err().unwrap();
/// assert_eq!(
///     error.to_string(),
///     "model `oracle:delphi`: there is no provider `oracle`: \
///      name one of `openai`, `openai-responses`, `ollama`, `anthropic`, `gemini`",
/// );
/// ```
pub fn chat_model(name: &str) -> Result<Arc<dyn ChatModel>, ModelError> {
    let Some((provider, model)) = name.split_once(':') else {
        let words = format!("say whose model it is, like `openai:{name}`");
        return Err(ModelError::new(ModelErrorKind::NotFound, name, words));
    };
    match provider {
        #[cfg(feature = "openai")]
        "openai" => Ok(Arc::new(super::OpenAi::from_env(model)?)),
        #[cfg(feature = "openai")]
        "openai-responses" => Ok(Arc::new(super::OpenAiResponses::from_env(model)?)),
        #[cfg(feature = "openai")]
        "ollama" => Ok(Arc::new(super::OpenAi::new(model).base_url("http://localhost:11434/v1"))),
        #[cfg(feature = "anthropic")]
        "anthropic" => Ok(Arc::new(super::Anthropic::from_env(model)?)),
        #[cfg(feature = "gemini")]
        "gemini" => Ok(Arc::new(super::Gemini::from_env(model)?)),
        _ => Err(ModelError::new(ModelErrorKind::NotFound, name, why_not(provider, model))),
    }
}

fn why_not(provider: &str, model: &str) -> String {
    let feature = match provider {
        "openai" | "openai-responses" | "ollama" => "openai",
        "anthropic" => "anthropic",
        "gemini" => "gemini",
        _ => {
            let known = "`openai`, `openai-responses`, `ollama`, `anthropic`, `gemini`";
            return format!("there is no provider `{provider}`: name one of {known}");
        }
    };
    format!("turn on the feature `{feature}` of superstep-agent to ask `{model}`")
}
