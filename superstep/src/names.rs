//! Names that the graphs themselves use.

/// The first node's name and the name of the channel that holds a run's input.
pub const START: &str = "__start__";
/// Where paths end.
pub const END: &str = "__end__";
/// The only field of a state that is shown as the bare value of that field.
pub(crate) const ROOT: &str = "__root__";
/// Before the name of the node that an error handler is for.
pub(crate) const HANDLER_OF: &str = "__error_handler__";
/// The handler of nodes that have none of their own.
pub(crate) const DEFAULT_HANDLER: &str = "__default_error_handler__";
/// The name of graphs that were given none.
pub(crate) const DEFAULT_NAME: &str = "graph";
/// The name of graphs of bare channels.
pub(crate) const PREGEL_NAME: &str = "pregel";
