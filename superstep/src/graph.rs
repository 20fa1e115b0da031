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
pub(crate) use build::{Persistence, Settings};
pub(crate) use compile::{finish as finish_plan, node_plan};
pub(crate) use path::PathFn;
pub use diagnose::Diagnostic;
pub(crate) use path::Path;
pub use path::{IntoPath, IntoRoutes, RouteMap, Routes};
pub use pregel::{NodeBuilder, Pregel, PregelBuilder};
pub use subgraph::{MappedGraph, Subgraph};
