//! Decides where every box, frame, wire and label of a drawing goes.
//!
//! The layout is layered, top to bottom: edges that close a cycle are set aside, the rest point downwards from row to
//! row, and those set aside return along lanes at the right. Wires only run along rows and columns.
//!
//! Two invariants make a drawing readable. A wire is a star: it joins one source to many targets or many sources to one
//! target, never many to many, so whoever follows a line ends at a true target. And two wires meet only where one
//! crosses the other at a right angle; no wire runs over a box it does not touch.

mod channel;
mod layers;
mod level;
mod lines;
mod loops;
mod order;
mod place;
mod rows;
mod stars;
mod wiring;

use std::collections::{HashMap, HashSet};

use super::{Drawing, DrawnNode, printable};

/// Lays the drawing out in the units of `metrics`.
pub(super) fn lay_out(drawing: &Drawing, metrics: &Metrics) -> Scene {
    let graph = Graph::new(drawing);
    level::lay_out(&graph, metrics, &[], &[], &[]).scene
}

/// The sizes of things: cells for the terminal, pixels for a picture.
pub(super) struct Metrics {
    /// The width of a text.
    pub(super) text_width: fn(&str) -> i32,
    /// The height of one line of text.
    pub(super) line: i32,
    /// The space between the side of a box and its text.
    pub(super) pad_x: i32,
    /// The space between the top of a box and its text.
    pub(super) pad_y: i32,
    /// How thick the outline of a box is: 1 where an outline takes a cell, 0 where it takes no space.
    pub(super) outline: i32,
    /// The space between two boxes of a row.
    pub(super) box_gap: i32,
    /// The least distance of two parallel wires, and of a wire from a box.
    pub(super) wire_gap: i32,
    /// The height of a horizontal stretch of wire between two rows.
    pub(super) track: i32,
    /// The space above the first such stretch.
    pub(super) stem: i32,
    /// The space an arrow head needs.
    pub(super) arrow: i32,
    /// The height a port needs on the side of a box.
    pub(super) side_port: i32,
    /// The least distance of a port from the corner of its box.
    pub(super) inset: i32,
    /// The space between the frame of a group and what it holds.
    pub(super) frame_pad: i32,
    /// The height of the upper part of a frame, which bears the title.
    pub(super) frame_head: i32,
    /// The height of the lower part of a frame.
    pub(super) frame_foot: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) x: i32,
    pub(super) y: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) w: i32,
    pub(super) h: i32,
}

/// A finished layout. Everything in it lies between the origin and (`width`, `height`).
#[derive(Debug, Default)]
pub(super) struct Scene {
    pub(super) width: i32,
    pub(super) height: i32,
    pub(super) frames: Vec<Frame>,
    pub(super) boxes: Vec<NodeBox>,
    pub(super) wires: Vec<Wire>,
    pub(super) labels: Vec<Label>,
}

/// The frame around a group.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) rect: Rect,
    pub(super) title: String,
    /// Where the title begins, clear of the wires through the frame.
    pub(super) title_x: i32,
}

#[derive(Debug)]
pub(super) struct NodeBox {
    pub(super) rect: Rect,
    /// The id of the node.
    pub(super) id: String,
    /// The label, then a line for each fact.
    pub(super) lines: Vec<String>,
}

/// A connected piece of line. Pieces of one edge meet at their ends.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) conditional: bool,
    pub(super) lines: Vec<Vec<Point>>,
    pub(super) arrows: Vec<Arrow>,
}

/// An arrow head whose tip is here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    pub(super) tip: Point,
    pub(super) heading: Heading,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    Down,
    Left,
}

/// Text that sits on a wire and interrupts it.
#[derive(Debug)]
pub(super) struct Label {
    pub(super) rect: Rect,
    pub(super) text: String,
}

impl Scene {
    /// Moves everything by (`dx`, `dy`).
    fn shift(&mut self, dx: i32, dy: i32) {
        let rects = self.frames.iter_mut().map(|frame| &mut frame.rect);
        let rects = rects.chain(self.boxes.iter_mut().map(|it| &mut it.rect));
        for rect in rects.chain(self.labels.iter_mut().map(|label| &mut label.rect)) {
            rect.x += dx;
            rect.y += dy;
        }
        for frame in &mut self.frames {
            frame.title_x += dx;
        }
        for wire in &mut self.wires {
            let ends = wire.arrows.iter_mut().map(|arrow| &mut arrow.tip);
            for point in wire.lines.iter_mut().flatten().chain(ends) {
                point.x += dx;
                point.y += dy;
            }
        }
    }

    fn absorb(&mut self, inner: Scene) {
        self.frames.extend(inner.frames);
        self.boxes.extend(inner.boxes);
        self.wires.extend(inner.wires);
        self.labels.extend(inner.labels);
    }

    /// The leftmost column in use, and the first free one at the right.
    fn span_x(&self) -> (i32, i32) {
        let rects = self.frames.iter().map(|frame| frame.rect);
        let rects = rects.chain(self.boxes.iter().map(|it| it.rect)).chain(self.labels.iter().map(|it| it.rect));
        let spans = rects.map(|rect| (rect.x, rect.x + rect.w));
        let spans = spans.chain(self.wires.iter().flat_map(|wire| wire.lines.iter().flatten()).map(|p| (p.x, p.x + 1)));
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 0))
    }
}

/// The drawing with names replaced by dense indices and every text made printable.
struct Graph {
    nodes: Vec<DrawnNode>,
    edges: Vec<GraphEdge>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct GraphEdge {
    from: usize,
    to: usize,
    label: Option<String>,
    conditional: bool,
}

impl Graph {
    fn new(drawing: &Drawing) -> Self {
        let nodes = drawing.all_nodes();
        let index_of: HashMap<&str, usize> = nodes.iter().enumerate().map(|(ix, node)| (&*node.id, ix)).collect();
        let mut seen = HashSet::new();
        let mut edges = Vec::new();
        for edge in &drawing.edges {
            let label = edge.label.as_deref().map(printable).filter(|label| !label.trim().is_empty());
            let (from, to) = (index_of[&*edge.from], index_of[&*edge.to]);
            let edge = GraphEdge { from, to, label, conditional: edge.conditional };
            if seen.insert(edge.clone()) {
                edges.push(edge);
            }
        }
        Self { nodes, edges }
    }

    fn lines(&self, node_ix: usize) -> Vec<String> {
        let node = &self.nodes[node_ix];
        std::iter::once(printable(&node.label)).chain(node.metadata_lines().map(|line| printable(&line))).collect()
    }
}
