//! Finds tracks for the horizontal stretches of wire between two rows.
//!
//! No two nets share a stretch: not on a track, and not in a column, where a net from above must turn before one that
//! goes on below. Two nets that want each other's columns are untangled by splitting one of them.

/// The columns a wire reaches at the top and at the bottom of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) top: Vec<i32>,
    pub(super) bottom: Vec<i32>,
}

/// A horizontal stretch on a track, with the columns it serves.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bar {
    /// Which of the nets this belongs to.
    pub(super) net: usize,
    pub(super) track: usize,
    pub(super) columns: Columns,
    /// The column where this bar goes on to the next bar of a split net.
    pub(super) continues: Option<i32>,
    /// The column where a split net comes from its first bar.
    pub(super) continued: Option<i32>,
}

impl Columns {
    fn is_straight(&self) -> bool {
        self.top.len() == 1 && self.top == self.bottom
    }
}

impl Bar {
    fn new(net: usize, columns: Columns) -> Self {
        Self { net, track: 0, columns, continues: None, continued: None }
    }

    fn tops(&self) -> impl Iterator<Item = i32> {
        self.columns.top.iter().copied().chain(self.continued)
    }

    fn bottoms(&self) -> impl Iterator<Item = i32> {
        self.columns.bottom.iter().copied().chain(self.continues)
    }

    /// The first and the last column of the bar.
    pub(super) fn span(&self) -> (i32, i32) {
        let columns = || self.tops().chain(self.bottoms());
        (columns().min().unwrap_or(0), columns().max().unwrap_or(0))
    }

    fn must_be_above(&self, other: &Bar) -> bool {
        if self.net == other.net {
            return self.continues.is_some() && self.continues == other.continued;
        }
        self.tops().any(|column| other.bottoms().any(|it| it == column))
    }

    /// How many crossings there are if this bar is above the other.
    fn crossings_above(&self, other: &Bar) -> usize {
        let within = |(first, last): (i32, i32), column: i32| first < column && column < last;
        other.tops().filter(|&column| within(self.span(), column)).count()
            + self.bottoms().filter(|&column| within(other.span(), column)).count()
    }

    fn is_near(&self, other: &Bar, gap: i32) -> bool {
        let (a, b) = (self.span(), other.span());
        a.0 < b.1 + gap && b.0 < a.1 + gap
    }
}

/// Bars for all nets but the straight ones, on as few tracks as the greedy choice gives. Columns in `taken` stay clear.
pub(super) fn bars(nets: &[Columns], taken: &[i32], gap: i32) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for (net, columns) in nets.iter().enumerate().filter(|(_, columns)| !columns.is_straight()) {
        bars.push(Bar::new(net, columns.clone()));
    }
    let mut taken: Vec<i32> = taken.to_vec();
    taken.extend(nets.iter().flat_map(|net| net.top.iter().chain(&net.bottom)));
    let mut above = Above::of(&bars);
    while let Some(knot) = above.cycle() {
        split(&mut bars, knot, &mut taken, gap);
        above = Above::of(&bars);
    }
    above.prefer_fewer_crossings(&bars);
    assign_tracks(&mut bars, &above, gap);
    bars
}

/// Splits a bar in two, joined in a free column.
fn split(bars: &mut Vec<Bar>, ix: usize, taken: &mut Vec<i32>, gap: i32) {
    let (first, last) = bars[ix].span();
    let clear = |column: &i32| taken.iter().all(|it| (it - column).abs() >= gap);
    let inside = (first..=last).find(clear);
    let column = inside.unwrap_or_else(|| taken.iter().max().map_or(0, |rightmost| rightmost + gap));
    taken.push(column);
    let bottom = std::mem::take(&mut bars[ix].columns.bottom);
    bars[ix].continues = Some(column);
    let mut rest = Bar::new(bars[ix].net, Columns { top: Vec::new(), bottom });
    rest.continued = Some(column);
    bars.push(rest);
}

/// Which bars must be above which.
struct Above {
    below: Vec<Vec<usize>>,
}

impl Above {
    fn of(bars: &[Bar]) -> Self {
        let below_of = |a: usize| (0..bars.len()).filter(move |&b| a != b && bars[a].must_be_above(&bars[b])).collect();
        Self { below: (0..bars.len()).map(below_of).collect() }
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.below.len()];
        let mut open = vec![from];
        while let Some(bar) = open.pop() {
            for &next in &self.below[bar] {
                if next == to {
                    return true;
                }
                if !std::mem::replace(&mut seen[next], true) {
                    open.push(next);
                }
            }
        }
        false
    }

    /// A bar that must be above itself.
    fn cycle(&self) -> Option<usize> {
        (0..self.below.len()).find(|&bar| self.reaches(bar, bar))
    }

    fn prefer_fewer_crossings(&mut self, bars: &[Bar]) {
        let mut wishes = Vec::new();
        for a in 0..bars.len() {
            for b in a + 1..bars.len() {
                let (ab, ba) = (bars[a].crossings_above(&bars[b]), bars[b].crossings_above(&bars[a]));
                let (upper, lower) = if ab <= ba { (a, b) } else { (b, a) };
                if ab != ba {
                    wishes.push((ab.abs_diff(ba), upper, lower));
                }
            }
        }
        wishes.sort_by_key(|&(saved, ..)| std::cmp::Reverse(saved));
        for (_, upper, lower) in wishes {
            if !self.reaches(lower, upper) {
                self.below[upper].push(lower);
            }
        }
    }

    /// The bars, each after all that must be above it.
    fn sorted(&self) -> Vec<usize> {
        let mut waiting = vec![0; self.below.len()];
        self.below.iter().flatten().for_each(|&bar| waiting[bar] += 1);
        let mut sorted: Vec<usize> = (0..waiting.len()).filter(|&bar| waiting[bar] == 0).collect();
        let mut done = 0;
        while done < sorted.len() {
            for &next in &self.below[sorted[done]] {
                waiting[next] -= 1;
                if waiting[next] == 0 {
                    sorted.push(next);
                }
            }
            done += 1;
        }
        sorted
    }
}

fn assign_tracks(bars: &mut [Bar], above: &Above, gap: i32) {
    let mut least = vec![0; bars.len()];
    let mut placed: Vec<usize> = Vec::new();
    for bar in above.sorted() {
        let is_free =
            |track: &usize| placed.iter().all(|&it| bars[it].track != *track || !bars[it].is_near(&bars[bar], gap));
        let track = (least[bar]..=least[bar] + bars.len()).find(is_free).expect("there are more tracks than bars");
        bars[bar].track = track;
        placed.push(bar);
        for &lower in &above.below[bar] {
            least[lower] = least[lower].max(track + 1);
        }
    }
}
