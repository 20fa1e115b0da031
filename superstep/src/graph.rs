//! Graphs: built by consuming, frozen by `compile`, drawn and run.

mod build;
mod compile;
mod diagnose;
mod discover;
mod path;
mod pregel;
mod subgraph;

pub use build::{JoinSources, StateGraph};
pub use compile::CompiledStateGraph;
pub use diagnose::Diagnostic;
pub use path::{IntoPath, IntoRoutes, Path, RouteMap, Routes};
pub use pregel::{NodeBuilder, Pregel, PregelBuilder};
pub use subgraph::{MappedGraph, Subgraph};
