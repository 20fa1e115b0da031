//! Agents, tools and models through the public API.

#![allow(missing_docs)]

mod by_hand;
mod examples;
#[cfg(feature = "mcp")]
mod mcp;
mod message;
mod middleware;
#[cfg(all(feature = "openai", feature = "anthropic", feature = "gemini"))]
mod provider;
mod react;
mod record;
mod side_by_side;
mod team;
mod tool_events;
mod tool_node;
mod tools;
mod ui;
