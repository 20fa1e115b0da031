//! What is legal but probably not meant, as data.

use std::fmt;

/// Something in a graph that is legal but probably not meant; see [`CompiledStateGraph::diagnostics`](crate::CompiledStateGraph::diagnostics).
///
/// ```
/// use superstep::{AgentState, Diagnostic, StateGraph, START};
/// async fn n(_: AgentState) {}
/// # fn main() -> Result<(), superstep::CompilationError> {
/// let app = StateGraph::<AgentState>::new().add_node("a", n).add_node("lost", n).add_edge(START, "a").compile()?;
/// assert_eq!(app.diagnostics(), [Diagnostic::Unreachable { node: "lost".into() }]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Diagnostic {
    /// No edge leads to a node, and every place that a path or node may lead to is known: paths have maps, and nodes
    /// that return commands or sends have [`destinations`](crate::NodeOptions::destinations).
    Unreachable {
        /// The node.
        node: String,
    },
    /// A node may run more than once because the paths that lead to it differ in length.
    MayRunTwice {
        /// The node.
        node: String,
        /// The steps, counted from the start, in which it may run.
        steps: Vec<usize>,
    },
    /// Nodes that may run in one step and may write the same last-value field.
    SameField {
        /// The nodes.
        nodes: Vec<String>,
        /// The field.
        field: String,
    },
    /// A node has destinations for its commands and static edges: both run.
    GotoBesideEdges {
        /// The node.
        node: String,
        /// Where its static edges lead.
        edges: Vec<String>,
    },
    /// A node may lead anywhere, and there are nodes that no known edge leads to: `compile` cannot check where it leads,
    /// and a drawing cannot show it.
    UnknownTargets {
        /// The node.
        node: String,
    },
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Diagnostic::Unreachable { node } => write!(f, "no edge leads to node `{node}`"),
            Diagnostic::MayRunTwice { node, steps } => write!(
                f,
                "node `{node}` may run in each of the steps {steps:?}, because the paths to it differ in length; join them with `add_edge([..], \"{node}\")`, or defer it"
            ),
            Diagnostic::SameField { nodes, field } => write!(
                f,
                "nodes {nodes:?} may run in one step and declare that they write `{field}`, which takes one write per step; give it a reducer"
            ),
            Diagnostic::GotoBesideEdges { node, edges } => {
                write!(
                    f,
                    "node `{node}` has destinations for `goto` and static edges to {edges:?}: goto adds to them, both run"
                )
            }
            Diagnostic::UnknownTargets { node } => write!(
                f,
                "it is not known where the conditional edges or commands of `{node}` lead, so a drawing cannot show it; name the targets with `#[derive(Routes)]`, `add_conditional_edges_with_map` or `NodeOptions::destinations`"
            ),
        }
    }
}
