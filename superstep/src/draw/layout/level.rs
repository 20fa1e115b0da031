//! Lays out one level: the graph itself, or what is inside one group.
//!
//! A group is laid out before the level around it and is then a box there, with gates in its frame where wires pass.

use super::layers::{Role, back_arcs, layers};
use super::loops::loops;
use super::order::{Side, order};
use super::place::place;
use super::rows::{ItemKind, Rows, Tip};
use super::stars::bundles;
use super::wiring::Wiring;
use super::{Frame, Graph, Metrics, NodeBox, Rect, Scene};
use crate::draw::{END, START};

/// An edge between two children of a level.
#[derive(Debug)]
pub(super) struct Arc {
    pub(super) from: End,
    pub(super) to: End,
    pub(super) label: Option<String>,
    pub(super) conditional: bool,
}

/// The child an arc touches, and the node it really means inside that child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct End {
    pub(super) child: usize,
    pub(super) node: usize,
}

/// A place in the frame of a group where a wire from or to this node passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gate {
    pub(super) node: usize,
    pub(super) bundle: usize,
    pub(super) conditional: bool,
}

#[derive(Debug)]
pub(super) enum Child {
    Node(usize),
    Group(Box<Group>),
    /// A gate of the group this level is inside of.
    Entry,
    Exit,
}

#[derive(Debug)]
pub(super) struct Group {
    path: Vec<String>,
    entries: Vec<Gate>,
    exits: Vec<Gate>,
    laid_out: Fragment,
}

/// A level that is laid out, and the columns of its gates.
#[derive(Debug, Default)]
pub(super) struct Fragment {
    pub(super) scene: Scene,
    entries: Vec<i32>,
    exits: Vec<i32>,
}

impl Child {
    pub(super) fn entry(&mut self, gate: Gate) -> Option<usize> {
        if let Self::Group(group) = self { Some(index_or_push(&mut group.entries, gate)) } else { None }
    }

    pub(super) fn exit(&mut self, gate: Gate) -> Option<usize> {
        if let Self::Group(group) = self { Some(index_or_push(&mut group.exits, gate)) } else { None }
    }
}

fn index_or_push(gates: &mut Vec<Gate>, gate: Gate) -> usize {
    gates.iter().position(|it| *it == gate).unwrap_or_else(|| {
        gates.push(gate);
        gates.len() - 1
    })
}

/// Lays out the level inside the groups of `path`, with these gates in its frame.
pub(super) fn lay_out(graph: &Graph, metrics: &Metrics, path: &[String], entries: &[Gate], exits: &[Gate]) -> Fragment {
    let mut level = Level::new(graph, path, entries, exits);
    let roles = level.roles();
    let is_back = back_arcs(&roles, &level.arcs);
    let layer = layers(&roles, &level.arcs, &is_back);
    let (backward, forward): (Vec<usize>, Vec<usize>) = (0..level.arcs.len()).partition(|&arc| is_back[arc]);
    let length: Vec<usize> = level.arcs.iter().map(|arc| layer[arc.to.child].abs_diff(layer[arc.from.child])).collect();
    let is_gate = |child: usize| matches!(level.children[child], Child::Entry | Child::Exit);
    let bundles = bundles(&level.arcs, &forward, &length, is_gate);
    let mut rows = Rows::new(&mut level.children, &level.arcs, &layer, &bundles);
    let mut loops = loops(&mut level.children, &level.arcs, &backward, bundles.len());
    level.lay_out_groups(metrics);

    let has_lane: Vec<bool> = (0..rows.items.len()).map(|item| loops.iter().any(|it| it.touches(item))).collect();
    order(&mut rows, has_lane, |tip, side| level.reach(tip, side));
    for it in &mut loops {
        it.choose_sides(&rows, &level.children);
    }
    let mut wiring = Wiring::new(&rows, loops);
    level.size_items(&mut rows, &wiring, metrics);
    place(&mut rows, metrics, &|rows, tip, is_upper| level.offset(rows, tip, is_upper));
    wiring.choose_columns(&rows, &level, metrics);
    let height = wiring.choose_heights(&mut rows, &level, metrics);
    level.finish(&rows, &wiring, metrics, height)
}

/// The children of a level and the arcs between them.
pub(super) struct Level<'a> {
    graph: &'a Graph,
    path: &'a [String],
    pub(super) children: Vec<Child>,
    pub(super) arcs: Vec<Arc>,
}

impl<'a> Level<'a> {
    fn new(graph: &'a Graph, path: &'a [String], entries: &[Gate], exits: &[Gate]) -> Self {
        let mut level = Self { graph, path, children: Vec::new(), arcs: Vec::new() };
        let child_of = level.add_children();
        for edge in &graph.edges {
            let (Some(from), Some(to)) = (child_of[edge.from], child_of[edge.to]) else { continue };
            // Edges between two nodes of one group belong to the level of that group.
            if from != to || edge.from == edge.to && matches!(level.children[from], Child::Node(_)) {
                let (from, to) = (End { child: from, node: edge.from }, End { child: to, node: edge.to });
                level.arcs.push(Arc { from, to, label: edge.label.clone(), conditional: edge.conditional });
            }
        }
        for (gates, is_entry) in [(entries, true), (exits, false)] {
            for gate in gates {
                let inner =
                    End { child: child_of[gate.node].expect("a gate leads to a node of its group"), node: gate.node };
                let outer = End { child: level.children.len(), node: gate.node };
                level.children.push(if is_entry { Child::Entry } else { Child::Exit });
                let (from, to) = if is_entry { (outer, inner) } else { (inner, outer) };
                level.arcs.push(Arc { from, to, label: None, conditional: gate.conditional });
            }
        }
        level
    }

    /// Adds the nodes and groups directly in this level; returns the child each node of the graph is in.
    fn add_children(&mut self) -> Vec<Option<usize>> {
        let mut child_of = vec![None; self.graph.nodes.len()];
        let depth = self.path.len();
        for (ix, node) in self.graph.nodes.iter().enumerate() {
            if !node.group.starts_with(self.path) {
                continue;
            }
            let known = (node.group.len() > depth).then(|| self.group_child(&node.group[..=depth])).flatten();
            child_of[ix] = Some(known.unwrap_or(self.children.len()));
            if known.is_none() {
                self.children.push(match node.group.get(..=depth) {
                    None => Child::Node(ix),
                    Some(path) => Child::Group(Box::new(Group {
                        path: path.to_vec(),
                        entries: Vec::new(),
                        exits: Vec::new(),
                        laid_out: Fragment::default(),
                    })),
                });
            }
        }
        child_of
    }

    fn group_child(&self, path: &[String]) -> Option<usize> {
        self.children.iter().position(|child| matches!(child, Child::Group(group) if group.path == path))
    }

    fn roles(&self) -> Vec<Role> {
        let role = |(ix, child): (usize, &Child)| match child {
            Child::Entry => Role::Entry,
            Child::Exit => Role::Exit,
            Child::Node(node) if self.graph.nodes[*node].id == START => Role::Start,
            Child::Node(node)
                if self.graph.nodes[*node].id == END && !self.arcs.iter().any(|arc| arc.from.child == ix) =>
            {
                Role::End
            }
            _ => Role::Plain,
        };
        self.children.iter().enumerate().map(role).collect()
    }

    fn lay_out_groups(&mut self, metrics: &Metrics) {
        for child in &mut self.children {
            if let Child::Group(group) = child {
                group.laid_out = lay_out(self.graph, metrics, &group.path, &group.entries, &group.exits);
            }
        }
    }

    /// Where the tip is along its item, in thousandths.
    fn reach(&self, tip: Tip, side: Side) -> i64 {
        match (self.children.get(tip.item), tip.gate) {
            (Some(Child::Group(group)), Some(gate)) => {
                let columns = if side == Side::Below { &group.laid_out.exits } else { &group.laid_out.entries };
                i64::from(columns[gate]) * 1000 / i64::from(group.laid_out.scene.width)
            }
            _ => 500,
        }
    }

    /// Where the tip is on its item, counted from the left; `is_upper` if the wire leaves the item downwards.
    pub(super) fn offset(&self, rows: &Rows, tip: Tip, is_upper: bool) -> i32 {
        match (self.children.get(tip.item), tip.gate) {
            (Some(Child::Group(group)), Some(gate)) if is_upper => group.laid_out.exits[gate],
            (Some(Child::Group(group)), Some(gate)) => group.laid_out.entries[gate],
            _ => rows.items[tip.item].w / 2,
        }
    }

    pub(super) fn is_node(&self, item: usize) -> bool {
        matches!(self.children.get(item), Some(Child::Node(_)))
    }

    pub(super) fn child(&self, item: usize) -> Option<&Child> {
        self.children.get(item)
    }

    fn size_items(&self, rows: &mut Rows, wiring: &Wiring, metrics: &Metrics) {
        for ix in 0..rows.items.len() {
            let (w, h) = match (rows.items[ix].kind, self.child(ix)) {
                (ItemKind::Label(arc), _) => (self.label_width(arc, metrics), metrics.line),
                (_, Some(Child::Node(node))) => {
                    self.node_size(*node, wiring.ports(ix), wiring.side_ports(ix).len(), metrics)
                }
                (_, Some(Child::Group(group))) => (group.laid_out.scene.width, group.laid_out.scene.height),
                (_, Some(Child::Entry)) => (1, metrics.frame_head),
                (_, Some(Child::Exit)) => (1, metrics.frame_foot),
                _ => (1, 1),
            };
            let margin = wiring.margin(ix, metrics);
            let item = &mut rows.items[ix];
            (item.w, item.h, item.margin) = (w, h, margin);
        }
    }

    fn label_width(&self, arc: usize, metrics: &Metrics) -> i32 {
        self.arcs[arc].label.as_deref().map_or(1, metrics.text_width)
    }

    fn node_size(&self, node: usize, ports: usize, side_ports: usize, metrics: &Metrics) -> (i32, i32) {
        let lines = self.graph.lines(node);
        let text = lines.iter().map(|line| (metrics.text_width)(line)).max().unwrap_or(0);
        let width = (text + 2 * metrics.pad_x).max((ports as i32 - 1) * metrics.wire_gap + 1 + 2 * metrics.inset);
        let height = (lines.len() as i32 * metrics.line + 2 * metrics.pad_y)
            .max(side_ports as i32 * metrics.side_port + 2 * metrics.outline);
        (width, height)
    }

    /// Puts everything together, inside a frame unless this is the outermost level.
    fn finish(&mut self, rows: &Rows, wiring: &Wiring, metrics: &Metrics, height: i32) -> Fragment {
        let mut scene = wiring.scene(rows, self, metrics);
        for (ix, child) in self.children.iter_mut().enumerate() {
            let item = &rows.items[ix];
            match child {
                Child::Node(node) => scene.boxes.push(NodeBox {
                    rect: Rect { x: item.x, y: item.y, w: item.w, h: item.h },
                    id: self.graph.nodes[*node].id.clone(),
                    lines: self.graph.lines(*node),
                }),
                Child::Group(group) => {
                    let mut inner = std::mem::take(&mut group.laid_out.scene);
                    inner.shift(item.x, item.y);
                    scene.absorb(inner);
                }
                Child::Entry | Child::Exit => {}
            }
        }
        let (left, right) = scene.span_x();
        (scene.width, scene.height) = (right - left, height);
        let columns = |wanted: fn(&Child) -> bool| {
            let gates = (0..self.children.len()).filter(|&ix| wanted(&self.children[ix]));
            gates.map(|ix| rows.items[ix].x).collect::<Vec<i32>>()
        };
        let entries = columns(|child| matches!(child, Child::Entry));
        let exits = columns(|child| matches!(child, Child::Exit));
        let mut fragment = Fragment { scene, entries, exits };
        fragment.shift(-left, 0);
        if let Some(title) = self.path.last() {
            fragment.add_frame(title, metrics);
        }
        fragment
    }
}

impl Fragment {
    fn shift(&mut self, dx: i32, dy: i32) {
        self.scene.shift(dx, dy);
        self.entries.iter_mut().chain(&mut self.exits).for_each(|column| *column += dx);
    }

    fn add_frame(&mut self, title: &str, metrics: &Metrics) {
        let head = if self.entries.is_empty() { metrics.frame_head } else { 0 };
        let foot = if self.exits.is_empty() { metrics.frame_foot } else { 0 };
        let title = crate::draw::printable(title);
        let title_x = metrics.inset + 2 * metrics.outline;
        let title_end = title_x + (metrics.text_width)(&title) + metrics.wire_gap;
        // The title stands left of all gates; what the frame holds makes room for it.
        let first_gate = self.entries.iter().min().map_or(title_end, |gate| gate + metrics.frame_pad);
        let room = (title_end - first_gate).max(0);
        self.shift(metrics.frame_pad + room, head);
        let w = (self.scene.width + room + 2 * metrics.frame_pad).max(title_end + metrics.inset);
        let h = self.scene.height + head + foot;
        self.scene.frames.insert(0, Frame { rect: Rect { x: 0, y: 0, w, h }, title, title_x });
        (self.scene.width, self.scene.height) = (w, h);
    }
}
