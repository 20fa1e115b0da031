//! Drawings for a terminal of graphs made at random: every edge can be followed.

use std::collections::BTreeSet;

use superstep::{Drawing, DrawnEdge, DrawnNode};

use super::follow;

/// The drawing is read back with no knowledge of the graph but the names of its nodes.
#[test]
fn every_edge_can_be_followed_in_the_drawing() {
    for seed in 0..1000 {
        let drawing = random_drawing(seed);
        let text = drawing.to_terminal();
        let name = |id: &str| id.rsplit(':').next().unwrap_or(id).to_owned();
        let expected: BTreeSet<(String, String)> =
            drawing.edges.iter().map(|edge| (name(&edge.from), name(&edge.to))).collect();
        let names: Vec<String> = drawing.nodes.iter().map(|node| node.label.clone()).collect();
        let followed = follow::edges(&text, &names).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{text}"));
        assert_eq!(followed, expected, "seed {seed}\n{text}");
        for label in drawing.edges.iter().filter_map(|edge| edge.label.as_deref()) {
            assert!(text.contains(label), "seed {seed}: no label {label}\n{text}");
        }
    }
}

fn random_drawing(seed: u64) -> Drawing {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let node_count = 1 + below(if seed.is_multiple_of(10) { 20 } else { 10 });
    let id = |ix: usize, group: usize| match group {
        0 | 1 if seed.is_multiple_of(3) => format!("g:n{ix:02}"),
        2 if seed.is_multiple_of(3) => format!("g:h:n{ix:02}"),
        3 if seed.is_multiple_of(3) => format!("k:n{ix:02}"),
        _ => format!("n{ix:02}"),
    };
    let ids: Vec<String> = (0..node_count).map(|ix| id(ix, below(6))).collect();
    let mut edges = Vec::new();
    for ix in 0..below(2 * node_count + 1) {
        let mut edge = DrawnEdge::new(&ids[below(node_count)], &ids[below(node_count)]);
        edge.conditional = below(3) == 0;
        edge.label = (below(4) == 0).then(|| format!("L{}{ix}", "x".repeat(below(6))));
        edges.push(edge);
    }
    Drawing::new(ids.iter().map(DrawnNode::new), edges)
}
