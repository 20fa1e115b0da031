//! Orders the items of each row so that few wires cross.
//!
//! Sweeps of the barycenter heuristic, each followed by swaps of neighbours; the best order seen wins. Among equals,
//! items with a lane at their right side are moved to the right, where the lane can reach them.

use super::rows::{ItemKind, Rows, Tip};

const SWEEPS: usize = 8;

/// Orders all rows. `has_lane` tells which items a wire from below returns to or leaves from; `reach` is where along
/// its item a tip lies, in thousandths.
pub(super) fn order(rows: &mut Rows, mut has_lane: Vec<bool>, reach: impl Fn(Tip, Side) -> i64) {
    lead_to_lanes(rows, &mut has_lane);
    for row in &mut rows.order {
        row.sort_by_key(|&item| has_lane[item]);
    }
    let mut sorter = Sorter::new(rows, has_lane, reach);
    sorter.transpose(&mut rows.order);
    let mut best = (sorter.badness(&rows.order), rows.order.clone());
    for sweep in 0..SWEEPS {
        let row_count = rows.order.len();
        if sweep % 2 == 0 {
            (1..row_count).for_each(|row| sorter.sort(&mut rows.order[row], Side::Above));
        } else {
            (0..row_count.saturating_sub(1)).rev().for_each(|row| sorter.sort(&mut rows.order[row], Side::Below));
        }
        sorter.transpose(&mut rows.order);
        let badness = sorter.badness(&rows.order);
        if badness < best.0 {
            best = (badness, rows.order.clone());
        }
    }
    rows.order = best.1;
}

/// Bends and labels count as having a lane if what they lead to has one, so that whole wires move right.
fn lead_to_lanes(rows: &Rows, has_lane: &mut [bool]) {
    for link in rows.links.iter().rev().flatten() {
        has_lane[link.upper.item] |= has_lane[link.lower.item] && rows.items[link.upper.item].kind != ItemKind::Child;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Above,
    Below,
}

/// The other end of a link, as an item and thousandths along it.
type Neighbour = (usize, i64);

struct Sorter {
    above: Vec<Vec<Neighbour>>,
    below: Vec<Vec<Neighbour>>,
    has_lane: Vec<bool>,
    position: Vec<i64>,
}

impl Sorter {
    fn new(rows: &Rows, has_lane: Vec<bool>, reach: impl Fn(Tip, Side) -> i64) -> Self {
        let count = rows.items.len();
        let mut sorter =
            Self { above: vec![Vec::new(); count], below: vec![Vec::new(); count], has_lane, position: vec![0; count] };
        for link in rows.links.iter().flatten() {
            sorter.above[link.lower.item].push((link.upper.item, reach(link.upper, Side::Below)));
            sorter.below[link.upper.item].push((link.lower.item, reach(link.lower, Side::Above)));
        }
        rows.order.iter().for_each(|row| sorter.note(row));
        sorter
    }

    fn note(&mut self, row: &[usize]) {
        for (ix, &item) in row.iter().enumerate() {
            self.position[item] = ix as i64 * 1000;
        }
    }

    fn at(&self, (item, reach): Neighbour) -> i64 {
        self.position[item] + reach
    }

    fn sort(&mut self, row: &mut [usize], side: Side) {
        let key = |&item: &usize| {
            let neighbours = if side == Side::Above { &self.above[item] } else { &self.below[item] };
            let total: i64 = neighbours.iter().map(|&it| self.at(it)).sum();
            // An item without neighbours keeps its place.
            if neighbours.is_empty() { self.position[item] } else { total / neighbours.len() as i64 }
        };
        row.sort_by_cached_key(key);
        self.note(row);
    }

    fn transpose(&mut self, rows: &mut [Vec<usize>]) {
        let mut improved = true;
        while improved {
            improved = false;
            for row in &mut *rows {
                for left in 0..row.len().saturating_sub(1) {
                    let (a, b) = (row[left], row[left + 1]);
                    if self.pair_badness(b, a) < self.pair_badness(a, b) {
                        row.swap(left, left + 1);
                        self.note(row);
                        improved = true;
                    }
                }
            }
        }
    }

    /// How bad it is that `left` stands left of `right`.
    fn pair_badness(&self, left: usize, right: usize) -> usize {
        let crossings = self.crossings(&self.above[left], &self.above[right])
            + self.crossings(&self.below[left], &self.below[right]);
        2 * crossings + usize::from(self.has_lane[left] && !self.has_lane[right])
    }

    fn crossings(&self, left: &[Neighbour], right: &[Neighbour]) -> usize {
        let crosses = |a: Neighbour| right.iter().filter(|&&b| self.at(a) > self.at(b)).count();
        left.iter().map(|&a| crosses(a)).sum()
    }

    fn badness(&self, rows: &[Vec<usize>]) -> usize {
        let mut total = 0;
        for row in rows {
            for (ix, &left) in row.iter().enumerate() {
                for &right in &row[ix + 1..] {
                    total += 2 * self.crossings(&self.below[left], &self.below[right]);
                    total += usize::from(self.has_lane[left] && !self.has_lane[right]);
                }
            }
        }
        total
    }
}
