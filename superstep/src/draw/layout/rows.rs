//! Turns layers into rows of items joined by links from each row to the next.
//!
//! A link never skips a row: a longer arc passes through bends, and a labelled one through its label.

use std::collections::HashMap;

use super::level::{Arc, Child, End, Gate};
use super::stars::{Bundle, Star};

/// Something with a place in a row.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: ItemKind,
    pub(super) row: usize,
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) w: i32,
    pub(super) h: i32,
    /// Space kept free at the right, for a wire from the item to itself.
    pub(super) margin: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Child,
    /// A point a long wire passes.
    Bend,
    /// The label of this arc.
    Label(usize),
}

/// The end of a link: an item, and the gate if the item is a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tip {
    pub(super) item: usize,
    pub(super) gate: Option<usize>,
}

/// A piece of a bundle from one row to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) upper: Tip,
    pub(super) lower: Tip,
    pub(super) bundle: usize,
    pub(super) star: Star,
    pub(super) conditional: bool,
}

/// Rows of items. The items with the smallest indices are the children of the level, in their order.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) items: Vec<Item>,
    /// The items of each row, from left to right.
    pub(super) order: Vec<Vec<usize>>,
    /// `links[r]` leave row `r`.
    pub(super) links: Vec<Vec<Link>>,
}

impl Rows {
    pub(super) fn new(children: &mut [Child], arcs: &[Arc], layer: &[usize], bundles: &[Bundle]) -> Self {
        let row_of_layer = row_of_layer(arcs, layer, bundles);
        let row_count = row_of_layer.last().map_or(0, |row| row + 1);
        let rows = Rows { items: Vec::new(), order: vec![Vec::new(); row_count], links: vec![Vec::new(); row_count] };
        let mut builder = Builder { rows, children, bends: HashMap::new() };
        for &layer in layer {
            builder.rows.add(ItemKind::Child, row_of_layer[layer]);
        }
        for (bundle_ix, bundle) in bundles.iter().enumerate() {
            for &arc_ix in &bundle.arcs {
                builder.arc(arc_ix, &arcs[arc_ix], bundle_ix, bundle.star);
            }
        }
        builder.rows
    }

    fn add(&mut self, kind: ItemKind, row: usize) -> usize {
        self.items.push(Item { kind, row, x: 0, y: 0, w: 0, h: 0, margin: 0 });
        self.order[row].push(self.items.len() - 1);
        self.items.len() - 1
    }
}

/// The row of each layer, leaving one for labels below each layer where a labelled arc begins.
fn row_of_layer(arcs: &[Arc], layer: &[usize], bundles: &[Bundle]) -> Vec<usize> {
    let layer_count = layer.iter().max().map_or(0, |last| last + 1);
    let mut has_labels = vec![false; layer_count];
    for arc in bundles.iter().flat_map(|bundle| &bundle.arcs).map(|&arc| &arcs[arc]) {
        has_labels[layer[arc.from.child]] |= arc.label.is_some();
    }
    let mut next = 0;
    let rows = has_labels.iter().map(|&has_labels| {
        let row = next;
        next += 1 + usize::from(has_labels);
        row
    });
    rows.collect()
}

struct Builder<'a> {
    rows: Rows,
    children: &'a mut [Child],
    /// The bend of a merging bundle in each row, which its arcs share.
    bends: HashMap<(usize, usize), usize>,
}

impl Builder<'_> {
    fn arc(&mut self, arc_ix: usize, arc: &Arc, bundle: usize, star: Star) {
        let last_row = self.rows.items[arc.to.child].row;
        let mut upper = leaving(self.children, arc.from, bundle, arc.conditional);
        loop {
            let row = self.rows.items[upper.item].row;
            if row + 1 == last_row {
                let lower = entering(self.children, arc.to, bundle, arc.conditional);
                self.rows.links[row].push(Link { upper, lower, bundle, star, conditional: arc.conditional });
                return;
            }
            let (item, is_shared) = match star {
                _ if upper.item == arc.from.child && arc.label.is_some() => {
                    (self.rows.add(ItemKind::Label(arc_ix), row + 1), false)
                }
                Star::Fan => (self.rows.add(ItemKind::Bend, row + 1), false),
                Star::Merge => self.shared_bend(bundle, row + 1),
            };
            let lower = Tip { item, gate: None };
            self.rows.links[row].push(Link { upper, lower, bundle, star, conditional: arc.conditional });
            if is_shared {
                // The rest of the way is already there.
                return;
            }
            upper = lower;
        }
    }

    /// The bend of this bundle in this row, and whether another arc made it.
    fn shared_bend(&mut self, bundle: usize, row: usize) -> (usize, bool) {
        if let Some(&bend) = self.bends.get(&(bundle, row)) {
            return (bend, true);
        }
        let bend = self.rows.add(ItemKind::Bend, row);
        self.bends.insert((bundle, row), bend);
        (bend, false)
    }
}

/// Where a bundle leaves this end: by a gate of its own if it is in a group.
pub(super) fn leaving(children: &mut [Child], end: End, bundle: usize, conditional: bool) -> Tip {
    let gate = children[end.child].exit(Gate { node: end.node, bundle, conditional });
    Tip { item: end.child, gate }
}

/// Where a bundle enters this end: by a gate of its own if it is in a group.
pub(super) fn entering(children: &mut [Child], end: End, bundle: usize, conditional: bool) -> Tip {
    let gate = children[end.child].entry(Gate { node: end.node, bundle, conditional });
    Tip { item: end.child, gate }
}
