//! The wires that go back up: arcs that close a cycle.
//!
//! A loop leaves its sources at the side or at the bottom, climbs a lane right of everything in the rows it passes, and
//! enters its target at the side or at the top. It uses a side only where no box stands between the side and the lane.

use super::level::{Arc, Child};
use super::rows::{ItemKind, Rows, Tip, entering, leaving};

#[derive(Debug)]
pub(super) struct Loop {
    pub(super) target: Tip,
    pub(super) sources: Vec<Tip>,
    pub(super) label: Option<String>,
    pub(super) conditional: bool,
    /// Whether the loop enters its target at the side, not at the top.
    pub(super) side_entry: bool,
    /// For each source, whether the loop leaves it at the side, not at the bottom.
    pub(super) side_exits: Vec<bool>,
    /// The column of the lane.
    pub(super) lane: i32,
}

/// The loops made of the backward arcs. Those without labels share a loop if they have the target in common.
pub(super) fn loops(children: &mut [Child], arcs: &[Arc], backward: &[usize], first_bundle: usize) -> Vec<Loop> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &arc_ix in backward {
        let mate = groups.iter_mut().find(|group| share_loop(&arcs[group[0]], &arcs[arc_ix]));
        match mate {
            Some(group) => group.push(arc_ix),
            None => groups.push(vec![arc_ix]),
        }
    }
    let make = |(ix, group): (usize, Vec<usize>)| {
        let bundle = first_bundle + ix;
        let first = &arcs[group[0]];
        let source = |&arc: &usize| leaving(children, arcs[arc].from, bundle, first.conditional);
        let sources: Vec<Tip> = group.iter().map(source).collect();
        Loop {
            target: entering(children, first.to, bundle, first.conditional),
            side_exits: vec![false; sources.len()],
            sources,
            label: first.label.clone(),
            conditional: first.conditional,
            side_entry: false,
            lane: 0,
        }
    };
    groups.into_iter().enumerate().map(make).collect()
}

fn share_loop(a: &Arc, b: &Arc) -> bool {
    let is_own = |arc: &Arc| arc.from == arc.to;
    a.to == b.to && a.conditional == b.conditional && a.label.is_none() && b.label.is_none() && !is_own(a) && !is_own(b)
}

impl Loop {
    pub(super) fn touches(&self, item: usize) -> bool {
        self.target.item == item || self.sources.iter().any(|source| source.item == item)
    }

    /// Whether the loop leads from a node to itself.
    pub(super) fn is_own(&self) -> bool {
        self.sources[0].item == self.target.item
    }

    /// The first and the last row the loop passes.
    pub(super) fn span(&self, rows: &Rows) -> (usize, usize) {
        let last = self.sources.iter().map(|source| rows.items[source.item].row).max();
        (rows.items[self.target.item].row, last.unwrap_or(0))
    }

    pub(super) fn choose_sides(&mut self, rows: &Rows, children: &[Child]) {
        let is_rightmost = |tip: Tip| {
            let row = &rows.order[rows.items[tip.item].row];
            let last_child = row.iter().rfind(|&&item| rows.items[item].kind == ItemKind::Child);
            last_child == Some(&tip.item) && matches!(children[tip.item], Child::Node(_))
        };
        self.side_entry = self.is_own() || is_rightmost(self.target);
        for ix in 0..self.sources.len() {
            let row = rows.items[self.sources[ix].item].row;
            let mates = self.sources.iter().filter(|source| rows.items[source.item].row == row).count();
            self.side_exits[ix] = !self.is_own() && mates == 1 && is_rightmost(self.sources[ix]);
        }
    }
}
