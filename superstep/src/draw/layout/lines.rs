//! Joins the straight stretches of a wire into lines that can be drawn without lifting the pen.
//!
//! A line ends only where the wire ends or branches.

use std::collections::{BTreeMap, BTreeSet};

use super::Point;

/// The lines made of these stretches, each of which lies along a row or a column.
pub(super) fn lines(stretches: &[(Point, Point)]) -> Vec<Vec<Point>> {
    let joints = joints(stretches);
    let is_end = |point: &Point| joints[point].len() != 2;
    let mut lines = Vec::new();
    for (&end, arms) in joints.iter().filter(|(point, _)| is_end(point)) {
        for &arm in arms {
            let line = walk(&joints, end, arm);
            // Each line is found from both its ends; the walk that starts at the smaller end counts.
            if line.first() <= line.last() {
                lines.push(line);
            }
        }
    }
    lines
}

/// Every point where stretches begin, end or touch, with the points it is joined to.
fn joints(stretches: &[(Point, Point)]) -> BTreeMap<Point, BTreeSet<Point>> {
    let points: BTreeSet<Point> = stretches.iter().flat_map(|&(a, b)| [a, b]).collect();
    let mut joints: BTreeMap<Point, BTreeSet<Point>> = BTreeMap::new();
    for &(a, b) in stretches {
        let (a, b) = (a.min(b), a.max(b));
        let on_it = |p: &Point| {
            (p.x == a.x && p.x == b.x && a.y <= p.y && p.y <= b.y)
                || (p.y == a.y && p.y == b.y && a.x <= p.x && p.x <= b.x)
        };
        let stops: Vec<Point> = points.iter().copied().filter(on_it).collect();
        for pair in stops.windows(2) {
            joints.entry(pair[0]).or_default().insert(pair[1]);
            joints.entry(pair[1]).or_default().insert(pair[0]);
        }
    }
    joints
}

fn walk(joints: &BTreeMap<Point, BTreeSet<Point>>, start: Point, first: Point) -> Vec<Point> {
    let mut line = vec![start];
    let (mut from, mut at) = (start, first);
    while joints[&at].len() == 2 {
        let to = *joints[&at].iter().find(|&&next| next != from).expect("two joined points differ");
        let is_straight = (from.x == at.x && at.x == to.x) || (from.y == at.y && at.y == to.y);
        if !is_straight {
            line.push(at);
        }
        (from, at) = (at, to);
    }
    line.push(at);
    line
}
