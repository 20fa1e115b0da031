//! Agents, models and tools, through the public API.

mod message;
#[cfg(all(feature = "openai", feature = "anthropic", feature = "gemini"))]
mod provider;
mod record;
