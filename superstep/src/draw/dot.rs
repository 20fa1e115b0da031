//! Writes a drawing in the DOT language of Graphviz.
//!
//! Ids and labels are always quoted, so no name can leave its string.

use std::fmt::Write as _;

use super::{Drawing, DrawnNode, END, START, printable};

impl Drawing {
    /// The graph in the DOT language, for [Graphviz](https://graphviz.org).
    ///
    /// Conditional edges are dashed, and expanded subgraphs are clusters.
    ///
    /// ```
    /// use superstep::{DrawnEdge, DrawnNode, Drawing};
    ///
    /// let drawing = Drawing::new([DrawnNode::new("a"), DrawnNode::new("b")], [DrawnEdge::new("a", "b").conditional()]);
    /// assert!(drawing.to_dot().contains(r#""a" -> "b" [style=dashed];"#));
    /// ```
    pub fn to_dot(&self) -> String {
        let nodes = self.all_nodes();
        let mut dot = Dot { nodes: &nodes, text: String::new() };
        dot.text.push_str("digraph {\n");
        dot.text
            .push_str("  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f2f0ff\", fontname=\"Helvetica\"];\n");
        dot.text.push_str("  edge [fontname=\"Helvetica\", fontsize=11];\n");
        dot.group(&[], 1);
        for edge in &self.edges {
            let attributes = attributes(edge.conditional, edge.label.as_deref());
            let _ = writeln!(dot.text, "  {} -> {}{attributes};", quoted_id(&edge.from), quoted_id(&edge.to));
        }
        dot.text.push_str("}\n");
        dot.text
    }
}

struct Dot<'a> {
    nodes: &'a [DrawnNode],
    text: String,
}

impl Dot<'_> {
    fn group(&mut self, path: &[String], depth: usize) {
        let indent = "  ".repeat(depth);
        let mut clusters: Vec<&[String]> = Vec::new();
        for node in self.nodes.iter().filter(|node| node.group.starts_with(path)) {
            if node.group.len() == path.len() {
                let _ = writeln!(self.text, "{indent}{};", declaration(node));
            } else if !clusters.contains(&&node.group[..=path.len()]) {
                clusters.push(&node.group[..=path.len()]);
            }
        }
        for cluster in clusters {
            let id = quoted_id(&format!("cluster_{}", cluster.join(":")));
            let _ = writeln!(self.text, "{indent}subgraph {id} {{");
            let _ = writeln!(self.text, "{indent}  label={}; style=rounded;", quoted_label(&cluster[path.len()]));
            self.group(cluster, depth + 1);
            let _ = writeln!(self.text, "{indent}}}");
        }
    }
}

fn declaration(node: &DrawnNode) -> String {
    let lines: Vec<String> =
        std::iter::once(node.label.clone()).chain(node.metadata_lines()).map(|line| label_text(&line)).collect();
    let shape = match &*node.id {
        START => ", shape=oval, fillcolor=\"#ffffff\"",
        END => ", shape=oval, fillcolor=\"#bfb6fc\"",
        _ => "",
    };
    format!("{} [label={}{shape}]", quoted_id(&node.id), format_args!("\"{}\"", lines.join("\\n")))
}

fn attributes(conditional: bool, label: Option<&str>) -> String {
    match (conditional, label.map(quoted_label)) {
        (false, None) => String::new(),
        (true, None) => " [style=dashed]".to_owned(),
        (false, Some(label)) => format!(" [label={label}]"),
        (true, Some(label)) => format!(" [style=dashed, label={label}]"),
    }
}

/// A quoted id. Only the quote is an escape in an id, but doubling backslashes keeps one from eating the closing quote,
/// and ids different from each other.
fn quoted_id(id: &str) -> String {
    let mut quoted = String::from("\"");
    for c in id.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            _ if c.is_control() => quoted.extend(c.escape_default()),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn quoted_label(label: &str) -> String {
    format!("\"{}\"", label_text(label))
}

/// The text of a label, in which Graphviz reads escapes and HTML entities.
fn label_text(label: &str) -> String {
    printable(label).replace('&', "&amp;").replace('\\', "\\\\").replace('"', "\\\"")
}
