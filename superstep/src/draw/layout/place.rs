//! Gives every item its column, and every wire its port on the boxes it touches.
//!
//! Items keep their order and their distance. Ports are chosen from top to bottom, so that a port can stand straight
//! below the one it is joined to.

use super::Metrics;
use super::rows::{ItemKind, Rows, Tip};

const SWEEPS: usize = 16;

/// Where a tip is on its item, counted from the left edge of the item.
pub(super) type Offsets<'a> = &'a dyn Fn(&Rows, Tip, bool) -> i32;

/// Places the items of all rows, near to what they are linked with. `offset` is told whether the upper tip is meant.
pub(super) fn place(rows: &mut Rows, metrics: &Metrics, offset: Offsets<'_>) {
    let pulls = Pulls::new(rows, offset);
    for row in 0..rows.order.len() {
        let wanted = vec![(0.0, 1.0); rows.order[row].len()];
        place_row(rows, row, metrics, &wanted);
    }
    for sweep in 0..SWEEPS {
        let sides = match sweep {
            _ if sweep >= SWEEPS / 2 => (true, true),
            _ if sweep % 2 == 0 => (true, false),
            _ => (false, true),
        };
        for step in 0..rows.order.len() {
            let row = if sweep % 2 == 0 { step } else { rows.order.len() - 1 - step };
            let wanted: Vec<(f64, f64)> = rows.order[row].iter().map(|&item| pulls.wish(rows, item, sides)).collect();
            place_row(rows, row, metrics, &wanted);
        }
    }
    straighten(rows, &pulls, metrics);
}

/// A link seen from one of its ends.
struct Pull {
    other: usize,
    /// What to add to the other's left edge to stand straight below or above it.
    shift: i32,
    weight: f64,
}

struct Pulls {
    above: Vec<Vec<Pull>>,
    below: Vec<Vec<Pull>>,
}

impl Pulls {
    fn new(rows: &Rows, offset: Offsets<'_>) -> Self {
        let empty = || rows.items.iter().map(|_| Vec::new()).collect();
        let mut pulls = Self { above: empty(), below: empty() };
        for link in rows.links.iter().flatten() {
            let (upper, lower) = (link.upper, link.lower);
            let shift = offset(rows, upper, true) - offset(rows, lower, false);
            let weight = weight(rows, upper.item) * weight(rows, lower.item);
            pulls.above[lower.item].push(Pull { other: upper.item, shift, weight });
            pulls.below[upper.item].push(Pull { other: lower.item, shift: -shift, weight });
        }
        pulls
    }

    /// Where the item would like its left edge, and how much.
    fn wish(&self, rows: &Rows, item: usize, (above, below): (bool, bool)) -> (f64, f64) {
        let above = self.above[item].iter().filter(|_| above);
        let below = self.below[item].iter().filter(|_| below);
        let (sum, weight) = above.chain(below).fold((0.0, 0.0), |(sum, weight), pull| {
            (sum + pull.weight * f64::from(rows.items[pull.other].x + pull.shift), weight + pull.weight)
        });
        if weight > 0.0 { (sum / weight, weight) } else { (f64::from(rows.items[item].x), 0.1) }
    }

    /// Where the item stands straight below another: a box or label below the only one it follows, a bend below or above
    /// the next part of its wire.
    fn straight(&self, rows: &Rows, item: usize) -> Option<i32> {
        let kind = |item: usize| rows.items[item].kind;
        let follows = match &*self.above[item] {
            [only] if kind(item) != ItemKind::Bend && self.below[only.other].len() == 1 => Some(only),
            _ => None,
        };
        let wire = || self.above[item].iter().chain(&self.below[item]).find(|pull| kind(pull.other) != ItemKind::Child);
        let pull = follows
            .filter(|pull| kind(pull.other) != ItemKind::Bend)
            .or_else(|| wire().filter(|_| kind(item) != ItemKind::Child));
        pull.map(|pull| rows.items[pull.other].x + pull.shift)
    }
}

/// Wires should rather be straight than boxes be centred.
fn weight(rows: &Rows, item: usize) -> f64 {
    if rows.items[item].kind == ItemKind::Child { 1.0 } else { 3.0 }
}

/// The least distance between the left edges of two neighbours.
fn distance(rows: &Rows, left: usize, right: usize, metrics: &Metrics) -> i32 {
    let both = [left, right].map(|item| rows.items[item].kind);
    let gap = if both.contains(&ItemKind::Bend) { metrics.wire_gap } else { metrics.box_gap };
    // A wire has no width of its own.
    let width = if both[0] == ItemKind::Bend { 0 } else { rows.items[left].w + rows.items[left].margin };
    let outline = if both[1] == ItemKind::Bend && both[0] != ItemKind::Bend { metrics.outline } else { 0 };
    width + gap - outline
}

/// Places a row so that the weighted squares of the distances from the wishes are least: isotonic regression.
fn place_row(rows: &mut Rows, row: usize, metrics: &Metrics, wanted: &[(f64, f64)]) {
    struct Block {
        sum: f64,
        weight: f64,
        count: usize,
    }
    let items = rows.order[row].clone();
    let mut taken = vec![0; items.len()];
    for ix in 1..items.len() {
        taken[ix] = taken[ix - 1] + distance(rows, items[ix - 1], items[ix], metrics);
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (&(wish, weight), &taken) in wanted.iter().zip(&taken) {
        let mut block = Block { sum: (wish - f64::from(taken)) * weight, weight, count: 1 };
        while let Some(last) = blocks.pop_if(|last| last.sum / last.weight >= block.sum / block.weight) {
            block = Block {
                sum: block.sum + last.sum,
                weight: block.weight + last.weight,
                count: block.count + last.count,
            };
        }
        blocks.push(block);
    }
    let bases =
        blocks.iter().flat_map(|block| std::iter::repeat_n((block.sum / block.weight).round() as i32, block.count));
    for ((&item, taken), base) in items.iter().zip(taken).zip(bases) {
        rows.items[item].x = base + taken;
    }
}

/// Takes small kinks out of wires, where there is room.
fn straighten(rows: &mut Rows, pulls: &Pulls, metrics: &Metrics) {
    for _ in 0..4 {
        for row in 0..rows.order.len() {
            for place in 0..rows.order[row].len() {
                let item = rows.order[row][place];
                if let Some(wish) = pulls.straight(rows, item) {
                    let (least, most) = room(rows, row, place, metrics);
                    rows.items[item].x = wish.clamp(least, most.max(least));
                }
            }
        }
    }
}

/// How far the item may move between its neighbours.
fn room(rows: &Rows, row: usize, place: usize, metrics: &Metrics) -> (i32, i32) {
    let items = &rows.order[row];
    let item = items[place];
    let least = place
        .checked_sub(1)
        .map_or(i32::MIN, |left| rows.items[items[left]].x + distance(rows, items[left], item, metrics));
    let most =
        items.get(place + 1).map_or(i32::MAX, |&right| rows.items[right].x - distance(rows, item, right, metrics));
    (least, most)
}

/// Moves ports apart to `gap` and into `first..=last`, keeping their order.
pub(super) fn spread(ports: &mut [i32], first: i32, last: i32, gap: i32) {
    let count = ports.len() as i32;
    // Where the ports do not fit at their distance, they stand as far apart as they can.
    let gap = if count > 1 { gap.min((last - first) / (count - 1)).max(1) } else { gap };
    let mut free_from = first;
    for port in &mut *ports {
        *port = (*port).max(free_from);
        free_from = *port + gap;
    }
    let mut free_to = last;
    for port in ports.iter_mut().rev() {
        *port = (*port).min(free_to);
        free_to = *port - gap;
    }
}
