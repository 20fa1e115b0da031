//! Agents, tools and models through the public API.

#![allow(missing_docs)]

mod examples;
#[cfg(feature = "mcp")]
mod mcp;
mod react;
mod side_by_side;
mod tool_node;
mod tools;
