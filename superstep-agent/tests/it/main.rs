//! Agents, tools and models through the public API.

#![allow(missing_docs)]

mod middleware;
mod team;
mod tool_node;
mod tools;
