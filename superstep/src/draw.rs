//! What a graph looks like, and the ways to draw it.
//!
//! A [`Drawing`] is plain data: it borrows nothing from the graph it was taken from, and every renderer is a pure
//! function of it. The same drawing always gives the same text, byte for byte, so drawings can be kept in tests.

mod dot;
mod layout;
mod mermaid;
#[cfg(feature = "png")]
mod png;
#[cfg(feature = "svg")]
mod svg;
mod terminal;

use std::collections::BTreeMap;
use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

#[cfg(feature = "png")]
pub use png::DrawError;

/// The id of the node where every graph begins.
const START: &str = "__start__";
/// The id of the node where every graph ends.
const END: &str = "__end__";

/// The nodes and edges of a graph, ready to be drawn.
///
/// An edge may name a node that is not listed: renderers draw it as if it were listed last.
///
/// ```
/// use superstep::{DrawnEdge, DrawnNode, Drawing};
///
/// let drawing = Drawing::new(
///     [DrawnNode::new("__start__"), DrawnNode::new("agent"), DrawnNode::new("__end__")],
///     [DrawnEdge::new("__start__", "agent"), DrawnEdge::new("agent", "__end__")],
/// );
/// println!("{}", drawing.to_terminal());
/// assert!(drawing.to_mermaid().contains("agent --> __end__;"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Drawing {
    /// The nodes, in the order they were added to the graph.
    pub nodes: Vec<DrawnNode>,
    /// The edges, in the order they were found.
    pub edges: Vec<DrawnEdge>,
}

impl Drawing {
    /// A drawing of these nodes and edges.
    pub fn new(nodes: impl IntoIterator<Item = DrawnNode>, edges: impl IntoIterator<Item = DrawnEdge>) -> Self {
        Self { nodes: nodes.into_iter().collect(), edges: edges.into_iter().collect() }
    }

    /// The listed nodes without repeats, then the nodes only edges name.
    fn all_nodes(&self) -> Vec<DrawnNode> {
        let mut seen = HashSet::new();
        let listed = self.nodes.iter().cloned();
        let implied = self.edges.iter().flat_map(|edge| [&edge.from, &edge.to]).map(DrawnNode::new);
        listed.chain(implied).filter(|node| seen.insert(node.id.clone())).collect()
    }
}

/// One node of a [`Drawing`].
///
/// ```
/// use superstep::DrawnNode;
///
/// let node = DrawnNode::new("research:search").metadata("defer", true);
/// assert_eq!(node.label, "search");
/// assert_eq!(node.group, ["research"]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DrawnNode {
    /// The name edges use: `agent`, or `research:search` for a node of an expanded subgraph.
    pub id: String,
    /// The text to show.
    pub label: String,
    /// The expanded subgraphs around the node, outermost first.
    pub group: Vec<String>,
    /// Facts to show under the label, such as `defer` or `__interrupt`.
    pub metadata: BTreeMap<String, Value>,
}

impl DrawnNode {
    /// A node whose label and group are read from its id: `a:b:c` is the node `c` in the group `b` in the group `a`.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        let mut group: Vec<String> = id.split(':').map(str::to_owned).collect();
        let label = group.pop().expect("splitting gives at least one part");
        Self { id, label, group, metadata: BTreeMap::new() }
    }

    /// Shows this text instead of the last part of the id.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Puts the node inside these groups, outermost first, instead of those its id names.
    pub fn group<G: Into<String>>(mut self, group: impl IntoIterator<Item = G>) -> Self {
        self.group = group.into_iter().map(Into::into).collect();
        self
    }

    /// Adds one fact to show under the label.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// The metadata as `key = value` lines. Values that are neither scalars nor lists of scalars are left out.
    fn metadata_lines(&self) -> impl Iterator<Item = String> {
        self.metadata.iter().filter_map(|(key, value)| Some(format!("{key} = {}", metadata_text(value)?)))
    }
}

/// One edge of a [`Drawing`].
///
/// ```
/// use superstep::DrawnEdge;
///
/// let edge = DrawnEdge::new("agent", "tools").conditional().label("has tool calls");
/// assert!(edge.conditional);
/// assert_eq!(edge.label.as_deref(), Some("has tool calls"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct DrawnEdge {
    /// The id of the node the edge leaves.
    pub from: String,
    /// The id of the node the edge enters.
    pub to: String,
    /// The text to show on the edge.
    pub label: Option<String>,
    /// Whether a run takes this edge only sometimes; such edges are dashed.
    pub conditional: bool,
}

impl DrawnEdge {
    /// An edge that is always taken.
    pub fn new(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self { from: from.into(), to: to.into(), label: None, conditional: false }
    }

    /// Marks the edge as taken only sometimes.
    pub fn conditional(mut self) -> Self {
        self.conditional = true;
        self
    }

    /// Shows this text on the edge.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}

// Booleans are capitalised, which is how drawings of such graphs are written elsewhere; the text can then be compared.
fn metadata_text(value: &Value) -> Option<String> {
    match value {
        Value::Bool(true) => Some("True".to_owned()),
        Value::Bool(false) => Some("False".to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(items) if items.iter().all(is_scalar) => {
            Some(items.iter().filter_map(metadata_text).collect::<Vec<_>>().join(", "))
        }
        _ => None,
    }
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_))
}

/// Writes characters that would move the cursor, reorder text or vanish as escapes, so that what is drawn is what is named.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' | '\r' => shown.extend(c.escape_default()),
            _ if c.is_control() || is_invisible(c) => shown.extend(c.escape_unicode()),
            _ => shown.push(c),
        }
    }
    shown
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}
