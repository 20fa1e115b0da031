//! Decides which arcs share a wire.
//!
//! A star has one source or one target. Arcs through the gate of a group are never bundled, because the other half of
//! their wire, outside the group, may already be.

use std::collections::HashMap;

use super::level::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Star {
    /// One source, many targets.
    Fan,
    /// Many sources, one target.
    Merge,
}

/// One wire: the arcs drawn as one connected line.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) star: Star,
    pub(super) arcs: Vec<usize>,
}

/// Splits the forward arcs into stars: again and again the one that saves most lines.
pub(super) fn bundles(
    arcs: &[Arc],
    forward: &[usize],
    length: &[usize],
    is_gate: impl Fn(usize) -> bool,
) -> Vec<Bundle> {
    let single = |&arc: &usize| is_gate(arcs[arc].from.child) || is_gate(arcs[arc].to.child);
    let (gated, mut free): (Vec<usize>, Vec<usize>) = forward.iter().copied().partition(single);
    let mut bundles = Vec::new();
    while let Some(best) = best_star(arcs, &free, length) {
        free.retain(|arc| !best.arcs.contains(arc));
        bundles.push(best);
    }
    let singles = free.into_iter().chain(gated).map(|arc| Bundle { star: Star::Fan, arcs: vec![arc] });
    bundles.extend(singles);
    bundles
}

fn best_star(arcs: &[Arc], free: &[usize], length: &[usize]) -> Option<Bundle> {
    let mut stars: Vec<Bundle> = Vec::new();
    let mut index_of = HashMap::new();
    for &arc_ix in free {
        let arc = &arcs[arc_ix];
        for (star, end) in [(Star::Fan, arc.from), (Star::Merge, arc.to)] {
            let ix = *index_of.entry((star, end, arc.conditional)).or_insert_with(|| {
                stars.push(Bundle { star, arcs: Vec::new() });
                stars.len() - 1
            });
            stars[ix].arcs.push(arc_ix);
        }
    }
    let saved = |bundle: &Bundle| match bundle.star {
        Star::Fan => 2 * bundle.arcs.len(),
        // Long arcs that merge early save a line in every row they pass.
        Star::Merge => bundle.arcs.iter().map(|&arc| 1 + length[arc]).sum::<usize>(),
    };
    let worthwhile = stars.into_iter().filter(|bundle| bundle.arcs.len() > 1);
    // `max_by_key` keeps the last of equals; the first is wanted, so that the order of the edges decides.
    worthwhile.rev().max_by_key(saved)
}
