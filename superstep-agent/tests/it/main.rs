//! Agents, tools and models through the public API.

#![allow(missing_docs)]

mod react;
mod tool_node;
mod tools;
