//! Graphs: built by consuming, frozen by `compile`, drawn and run.

mod any;
mod build;
mod compile;
mod diagnose;
mod discover;
mod evolution;
mod hiding;
mod parallel;
mod path;
mod pregel;
mod subgraph;

pub use any::{AnyGraph, GraphSchema};
pub(crate) use build::Settings;
pub use build::{JoinSources, MessageGraph, StateGraph};
pub use compile::CompiledStateGraph;
pub(crate) use compile::{finish as finish_plan, node_plan};
pub use parallel::{ParallelNode, ParallelNodeBuilder};
pub use path::{IntoPath, IntoRoutes, NamedPath, PathTarget, RouteMap};
pub use pregel::{NodeBuilder, Pregel, PregelBuilder, StepFn};
pub(crate) use subgraph::{Inside, level_below};
pub use subgraph::{MAX_LEVELS, MappedGraph};
