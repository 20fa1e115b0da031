//! Models of providers, over HTTP.

#[cfg(feature = "__http")]
mod answer_tool;
#[cfg(feature = "anthropic")]
mod anthropic;
mod chat_model;
#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "__http")]
mod http;
#[cfg(feature = "openai")]
mod openai;
#[cfg(feature = "openai")]
mod responses;
#[cfg(feature = "__http")]
mod schema;
#[cfg(feature = "__http")]
mod secret;
#[cfg(feature = "__http")]
mod setup;
#[cfg(feature = "__http")]
mod sse;

#[cfg(feature = "anthropic")]
pub use anthropic::Anthropic;
pub use chat_model::chat_model;
#[cfg(feature = "gemini")]
pub use gemini::Gemini;
#[cfg(feature = "openai")]
pub use openai::OpenAi;
#[cfg(feature = "openai")]
pub use responses::OpenAiResponses;
#[cfg(feature = "__http")]
pub use secret::Secret;
