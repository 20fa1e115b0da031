//! Draws the lines of nets and loops.
//!
//! All columns and heights are known by now; nothing is decided here but where the label of a lane goes.

use super::super::channel::Bar;
use super::super::level::{Child, Level};
use super::super::lines::lines;
use super::super::rows::{ItemKind, Rows, Tip};
use super::super::{Arrow, Heading, Metrics, Point, Rect, Scene, Wire};
use super::{Channel, Net, Port, SidePort, Wiring, lane_width};

/// Draws wires once all columns and heights are known.
pub(super) struct Pen<'a> {
    pub(super) wiring: &'a Wiring,
    pub(super) rows: &'a Rows,
    pub(super) level: &'a Level<'a>,
    pub(super) metrics: &'a Metrics,
}

type Stretch = (Point, Point);

impl Pen<'_> {
    fn bar_y(&self, channel: &Channel, bar: &Bar) -> i32 {
        channel.top + self.metrics.stem + bar.track as i32 * self.metrics.track
    }

    /// Where a wire begins that leaves downwards.
    fn below(&self, tip: Tip) -> i32 {
        let item = &self.rows.items[tip.item];
        if matches!(self.level.child(tip.item), Some(Child::Entry)) {
            item.y
        } else {
            item.y + item.h - self.metrics.outline
        }
    }

    /// Where a wire ends that arrives from above.
    fn above(&self, tip: Tip) -> i32 {
        let item = &self.rows.items[tip.item];
        let is_passed = item.kind == ItemKind::Bend || matches!(self.level.child(tip.item), Some(Child::Exit));
        match () {
            () if self.level.is_node(tip.item) => item.y - self.metrics.outline,
            () if is_passed => item.y + item.h - self.metrics.outline,
            () => item.y,
        }
    }

    pub(super) fn arrows_down(&self, net: &Net) -> Vec<Arrow> {
        let entered = net.lower.iter().filter(|port| self.level.is_node(port.tip.item));
        entered
            .map(|port| Arrow { tip: Point { x: port.x, y: self.above(port.tip) }, heading: Heading::Down })
            .collect()
    }

    /// The stretches of a net. If it is part of a loop, its lane reaches up to `lane_top`.
    pub(super) fn net(&self, channel: &Channel, net_ix: usize, lane_top: i32) -> Vec<Stretch> {
        let net = &channel.nets[net_ix];
        let ends = |ports: &[Port], y: &dyn Fn(Tip) -> i32| {
            ports.iter().map(|port| Point { x: port.x, y: y(port.tip) }).collect::<Vec<_>>()
        };
        let mut upper = ends(&net.upper, &|tip| self.below(tip));
        let lower = ends(&net.lower, &|tip| self.above(tip));
        if let Some(loop_ix) = net.part_of.filter(|_| !net.upper.is_empty()) {
            upper.push(Point { x: self.wiring.loops[loop_ix].lane, y: lane_top });
        }
        let bars: Vec<&Bar> = channel.bars.iter().filter(|bar| bar.net == net_ix).collect();
        if bars.is_empty() {
            return vec![(upper[0], lower[0])];
        }
        let mut stretches = Vec::new();
        for bar in &bars {
            let y = self.bar_y(channel, bar);
            let (first, last) = bar.span();
            stretches.push((Point { x: first, y }, Point { x: last, y }));
            let served = |ends: &[Point], columns: &[i32]| {
                let ends = ends.iter().filter(|end| columns.contains(&end.x));
                ends.map(|&end| (end, Point { x: end.x, y })).collect::<Vec<_>>()
            };
            stretches.extend(served(&upper, &bar.columns.top));
            stretches.extend(served(&lower, &bar.columns.bottom));
            if let Some(x) = bar.continues {
                let second = bars.iter().find(|it| it.continued == Some(x)).expect("a split bar has a second half");
                stretches.push((Point { x, y }, Point { x, y: self.bar_y(channel, second) }));
            }
        }
        stretches
    }

    pub(super) fn looped(&self, loop_ix: usize) -> Wire {
        let it = &self.wiring.loops[loop_ix];
        let lane_top = self.lane_top(loop_ix);
        let on_lane = |y| Point { x: it.lane, y };
        let mut stretches = Vec::new();
        let mut arrows = Vec::new();
        for channel in &self.wiring.channels {
            for (ix, net) in channel.nets.iter().enumerate().filter(|(_, net)| net.part_of == Some(loop_ix)) {
                stretches.extend(self.net(channel, ix, lane_top));
                arrows.extend(self.arrows_down(net));
            }
        }
        for (source, _) in it.sources.iter().zip(&it.side_exits).filter(|(_, at_side)| **at_side) {
            let item = &self.rows.items[source.item];
            let y = self.side_port_y(source.item, SidePort { loop_ix, is_entry: false });
            stretches.push((Point { x: item.x + item.w - self.metrics.outline, y }, on_lane(y)));
            stretches.push((on_lane(y), on_lane(lane_top)));
        }
        if it.side_entry {
            let item = &self.rows.items[it.target.item];
            let tip = Point { x: item.x + item.w, y: lane_top };
            stretches.push((tip, on_lane(lane_top)));
            arrows.push(Arrow { tip, heading: Heading::Left });
        }
        Wire { conditional: it.conditional, lines: lines(&stretches), arrows }
    }

    fn lane_top(&self, loop_ix: usize) -> i32 {
        let it = &self.wiring.loops[loop_ix];
        if it.side_entry {
            return self.side_port_y(it.target.item, SidePort { loop_ix, is_entry: true });
        }
        let channel = &self.wiring.channels[self.rows.items[it.target.item].row];
        let is_entry =
            |bar: &&Bar| channel.nets[bar.net].part_of == Some(loop_ix) && channel.nets[bar.net].upper.is_empty();
        let bar = channel.bars.iter().find(is_entry).expect("a lane never stands straight above its target");
        self.bar_y(channel, bar)
    }

    fn lane_bottom(&self, loop_ix: usize) -> i32 {
        let it = &self.wiring.loops[loop_ix];
        let at_side = it.sources.iter().zip(&it.side_exits).filter(|(_, at_side)| **at_side);
        let at_side = at_side.map(|(source, _)| self.side_port_y(source.item, SidePort { loop_ix, is_entry: false }));
        let below = self.wiring.channels.iter().flat_map(|channel| {
            let is_exit =
                |bar: &&Bar| channel.nets[bar.net].part_of == Some(loop_ix) && !channel.nets[bar.net].upper.is_empty();
            channel.bars.iter().filter(is_exit).map(|bar| self.bar_y(channel, bar))
        });
        at_side.chain(below).max().unwrap_or(0)
    }

    fn side_port_y(&self, item: usize, port: SidePort) -> i32 {
        let ports = self.wiring.side_ports(item);
        let place = ports.iter().position(|it| *it == port).expect("the port is one of its item") as i32;
        let item = &self.rows.items[item];
        let outline = self.metrics.outline;
        item.y + outline + (item.h - 2 * outline) * (2 * place + 1) / (2 * ports.len() as i32)
    }

    /// A place for the label on its lane: near the middle, and not where another wire crosses the lane.
    pub(super) fn lane_label(&self, loop_ix: usize, scene: &Scene) -> Rect {
        let (top, bottom) = (self.lane_top(loop_ix), self.lane_bottom(loop_ix));
        let it = &self.wiring.loops[loop_ix];
        let (w, h) = (lane_width(it, self.metrics), self.metrics.line);
        let at = |y: i32| Rect { x: it.lane - w / 2, y, w, h };
        let middle = (top + bottom + 1 - h) / 2;
        let mut places: Vec<i32> = (top + 1..=bottom - h).collect();
        places.sort_by_key(|y| ((y - middle).abs(), *y));
        let is_clear = |y: &i32| !scene.wires.iter().any(|wire| crosses(wire, at(*y)));
        at(places.iter().copied().find(is_clear).unwrap_or(middle))
    }
}

/// Whether a horizontal stretch of the wire lies in the rectangle.
fn crosses(wire: &Wire, rect: Rect) -> bool {
    wire.lines.iter().flat_map(|line| line.windows(2)).any(|stretch| {
        let (a, b) = (stretch[0], stretch[1]);
        a.y == b.y
            && (rect.y..rect.y + rect.h).contains(&a.y)
            && a.x.min(b.x) < rect.x + rect.w
            && rect.x <= a.x.max(b.x)
    })
}
