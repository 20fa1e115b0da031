//! Writes a drawing as a Mermaid flowchart.
//!
//! Every name is made safe: no label can end a statement or open a tag, and different ids stay different.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;

use super::{Drawing, DrawnEdge, DrawnNode, END, START};

/// Long edge labels are broken after this many words.
const WORDS_PER_LINE: usize = 9;

impl Drawing {
    /// The graph as a [Mermaid](https://mermaid.js.org) flowchart, which many Markdown viewers draw.
    ///
    /// Conditional edges are dotted, and expanded subgraphs are Mermaid subgraphs.
    ///
    /// ```
    /// use superstep::{DrawnEdge, DrawnNode, Drawing};
    ///
    /// let edge = DrawnEdge::new("a", "b").label("yes").conditional();
    /// let drawing = Drawing::new([DrawnNode::new("a"), DrawnNode::new("b")], [edge]);
    /// assert!(drawing.to_mermaid().contains("\ta -. &nbsp;yes&nbsp; .-> b;\n"));
    /// ```
    pub fn to_mermaid(&self) -> String {
        let nodes = self.all_nodes();
        Flowchart {
            first: terminus(&nodes, START, self.edges.iter().map(|edge| &*edge.to)),
            last: terminus(&nodes, END, self.edges.iter().map(|edge| &*edge.from)),
            groups: groups(&nodes, &self.edges),
            edges: &self.edges,
            nodes: &nodes,
            titles: nodes.iter().map(|node| node.id.clone()).collect(),
            text: String::new(),
        }
        .write()
    }
}

/// The node of that id or else the only node not among `touched`: where the graph begins, or ends.
fn terminus<'a>(nodes: &'a [DrawnNode], id: &str, touched: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if let Some(node) = nodes.iter().find(|node| node.id == id) {
        return Some(&node.id);
    }
    let touched: HashSet<&str> = touched.collect();
    let mut free = nodes.iter().filter(|node| !touched.contains(&*node.id));
    let only = free.next()?;
    free.next().is_none().then_some(&*only.id)
}

type Path<'a> = &'a [String];

/// The nodes' groups and the groups around those: first in the order of the edges inside them, then of their nodes.
fn groups<'a>(nodes: &'a [DrawnNode], edges: &'a [DrawnEdge]) -> Groups<'a> {
    let path_of: HashMap<&'a str, Path<'a>> = nodes.iter().map(|node| (&*node.id, &*node.group)).collect();
    let home_of: Vec<Path<'a>> = edges.iter().map(|edge| common(path_of[&*edge.from], path_of[&*edge.to])).collect();
    let mut seen = BTreeSet::new();
    let mut order = Vec::new();
    for path in home_of.iter().copied().chain(nodes.iter().map(|node| &*node.group)) {
        for depth in 1..=path.len() {
            if seen.insert(&path[..depth]) {
                order.push(&path[..depth]);
            }
        }
    }
    Groups { order, home_of }
}

struct Groups<'a> {
    order: Vec<Path<'a>>,
    /// For each edge, the innermost group that holds both its ends.
    home_of: Vec<Path<'a>>,
}

fn common<'a>(a: Path<'a>, b: Path<'a>) -> Path<'a> {
    let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    &a[..shared]
}

struct Flowchart<'a> {
    first: Option<&'a str>,
    last: Option<&'a str>,
    nodes: &'a [DrawnNode],
    edges: &'a [DrawnEdge],
    groups: Groups<'a>,
    /// The names already taken.
    titles: HashSet<String>,
    text: String,
}

impl<'a> Flowchart<'a> {
    fn write(mut self) -> String {
        self.text.push_str("---\nconfig:\n  flowchart:\n    curve: linear\n---\ngraph TD;\n");
        self.group_body(&[]);
        self.text.push_str("\tclassDef default fill:#f2f0ff,line-height:1.2\n");
        self.text.push_str("\tclassDef first fill-opacity:0\n");
        self.text.push_str("\tclassDef last fill:#bfb6fc\n");
        self.text
    }

    fn group_body(&mut self, path: Path<'a>) {
        let nodes = self.nodes;
        for node in nodes.iter().filter(|node| node.group == path) {
            self.node(node);
        }
        for (ix, edge) in self.edges.iter().enumerate() {
            if self.groups.home_of[ix] == path {
                let arrow = arrow(edge);
                let _ = writeln!(self.text, "\t{}{arrow}{};", safe_id(&edge.from), safe_id(&edge.to));
            }
        }
        for child in self.groups.order.clone() {
            if child.len() == path.len() + 1 && child.starts_with(path) {
                self.group(child);
            }
        }
    }

    fn group(&mut self, path: Path<'a>) {
        let title = &path[path.len() - 1];
        // Groups and nodes share their names in Mermaid; only the first can be named by its title.
        if is_plain_id(title) && self.titles.insert(title.clone()) {
            let _ = writeln!(self.text, "\tsubgraph {title}");
        } else {
            let _ =
                writeln!(self.text, "\tsubgraph {}[\"{}\"]", safe_id(&format!("{}:", path.join(":"))), escaped(title));
        }
        self.group_body(path);
        self.text.push_str("\tend\n");
    }

    fn node(&mut self, node: &DrawnNode) {
        let id = safe_id(&node.id);
        let label = node_label(node);
        let _ = if self.first == Some(&*node.id) {
            writeln!(self.text, "\t{id}([{label}]):::first")
        } else if self.last == Some(&*node.id) {
            writeln!(self.text, "\t{id}([{label}]):::last")
        } else {
            writeln!(self.text, "\t{id}({label})")
        };
    }
}

fn node_label(node: &DrawnNode) -> String {
    let is_plain = node.label.chars().all(|c| c.is_alphanumeric() || "_- .,".contains(c))
        && !node.label.trim().is_empty()
        && !RESERVED.contains(&&*node.label);
    let mut label = if is_plain { node.label.clone() } else { escaped(&node.label) };
    // Underscores and stars at both ends would be read as Markdown emphasis.
    if label.starts_with(['*', '_', '`']) && label.ends_with(['*', '_', '`']) {
        label = format!("<p>{label}</p>");
    }
    let metadata: Vec<String> = node.metadata_lines().map(|line| escaped(&line)).collect();
    if !metadata.is_empty() {
        let _ = write!(label, "<hr/><small><em>{}</em></small>", metadata.join("\n"));
    }
    if is_plain { label } else { format!("\"{label}\"") }
}

fn arrow(edge: &DrawnEdge) -> String {
    let Some(label) = &edge.label else {
        return if edge.conditional { " -.-> " } else { " --> " }.to_owned();
    };
    let words: Vec<&str> = label.split_whitespace().collect();
    let lines: Vec<String> = words.chunks(WORDS_PER_LINE).map(|line| edge_text(&line.join(" "))).collect();
    let label = lines.join("&nbsp<br>&nbsp");
    if edge.conditional { format!(" -. &nbsp;{label}&nbsp; .-> ") } else { format!(" -- &nbsp;{label}&nbsp; --> ") }
}

/// Edge text, with the characters that would end it written as entities.
fn edge_text(label: &str) -> String {
    escaped(label).replace("--", "#45;#45;").replace("==", "#61;#61;").replace(".-", ".#45;").replace("-.", "#45;.")
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => safe.push_str("#quot;"),
            '\n' => safe.push_str("<br/>"),
            '#' | '[' | ']' | '(' | ')' | '{' | '}' | '<' | '>' | '|' | '&' | ';' | '`' | '\\' => {
                let _ = write!(safe, "#{};", u32::from(c));
            }
            _ if c.is_control() => safe.push(' '),
            _ => safe.push(c),
        }
    }
    safe
}

/// Words that mean something else to Mermaid where an id stands.
const RESERVED: [&str; 10] =
    ["call", "class", "classDef", "click", "default", "end", "graph", "linkStyle", "style", "subgraph"];

/// The id with every character Mermaid could trip over written as a backslash and its code in hexadecimal.
///
/// Codes of two digits stand alone and all others are between underscores, so different ids stay different.
fn safe_id(id: &str) -> String {
    let mut safe = String::with_capacity(id.len());
    for (ix, c) in id.chars().enumerate() {
        let code = u32::from(c);
        if is_safe(c) && !(ix == 0 && RESERVED.contains(&id)) {
            safe.push(c);
        } else if (0x10..0x80).contains(&code) {
            let _ = write!(safe, "\\{code:x}");
        } else {
            let _ = write!(safe, "\\_{code:x}_");
        }
    }
    safe
}

fn is_plain_id(id: &str) -> bool {
    safe_id(id) == id && !id.is_empty()
}

fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}
