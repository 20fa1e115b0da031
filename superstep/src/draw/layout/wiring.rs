//! Turns links and loops into wires: ports, lanes, tracks, and at last lines.
//!
//! Columns come first, because tracks depend on them; heights come second, because they depend on the tracks.

mod pen;

use pen::Pen;

use super::channel::{Bar, Columns, bars};
use super::level::{Child, Level};
use super::lines::lines;
use super::loops::Loop;
use super::place::spread;
use super::rows::{ItemKind, Rows, Tip};
use super::stars::Star;
use super::{Label, Metrics, Rect, Scene, Wire};

/// A wire where it passes the channel between two rows.
#[derive(Debug)]
struct Net {
    conditional: bool,
    upper: Vec<Port>,
    lower: Vec<Port>,
    /// The loop this is a part of. It reaches its lane at the top of the channel if it leaves here, else at the bottom.
    part_of: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Port {
    tip: Tip,
    x: i32,
}

/// A channel: the space above a row, or below the last.
#[derive(Debug, Default)]
struct Channel {
    nets: Vec<Net>,
    bars: Vec<Bar>,
    top: i32,
}

pub(super) struct Wiring {
    /// `channels[r]` is above row `r`.
    channels: Vec<Channel>,
    loops: Vec<Loop>,
}

/// A port on the side of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SidePort {
    loop_ix: usize,
    is_entry: bool,
}

impl Wiring {
    pub(super) fn new(rows: &Rows, loops: Vec<Loop>) -> Self {
        let mut wiring = Self { channels: (0..=rows.order.len()).map(|_| Channel::default()).collect(), loops };
        for (row, links) in rows.links.iter().enumerate() {
            wiring.channels[row + 1].nets = nets(links);
        }
        for loop_ix in 0..wiring.loops.len() {
            wiring.add_loop(rows, loop_ix);
        }
        wiring
    }

    fn add_loop(&mut self, rows: &Rows, loop_ix: usize) {
        let it = &self.loops[loop_ix];
        let net = |upper, lower| Net { conditional: it.conditional, upper, lower, part_of: Some(loop_ix) };
        let port = |tip| Port { tip, x: 0 };
        if !it.side_entry {
            let row = rows.items[it.target.item].row;
            self.channels[row].nets.push(net(vec![], vec![port(it.target)]));
        }
        for row in 0..rows.order.len() {
            let sources = it.sources.iter().zip(&it.side_exits);
            let below = sources.filter(|(tip, at_side)| !**at_side && rows.items[tip.item].row == row);
            let upper: Vec<Port> = below.map(|(&tip, _)| port(tip)).collect();
            if !upper.is_empty() {
                self.channels[row + 1].nets.push(net(upper, vec![]));
            }
        }
    }

    /// How many ports the item has at its top or its bottom, whichever has more.
    pub(super) fn ports(&self, item: usize) -> usize {
        let count = |ports: fn(&Net) -> &Vec<Port>| {
            let nets = self.channels.iter().flat_map(|channel| &channel.nets);
            nets.flat_map(ports).filter(|port| port.tip.item == item).count()
        };
        count(|net| &net.upper).max(count(|net| &net.lower))
    }

    /// The ports on the right side of the item, from top to bottom, in the one order in which their wires do not cross.
    pub(super) fn side_ports(&self, item: usize) -> Vec<SidePort> {
        let mut ports = Vec::new();
        for (loop_ix, it) in self.loops.iter().enumerate() {
            let leaves = it.sources.iter().zip(&it.side_exits).any(|(source, at_side)| *at_side && source.item == item);
            if leaves {
                ports.push(SidePort { loop_ix, is_entry: false });
            }
            if it.side_entry && it.target.item == item {
                ports.push(SidePort { loop_ix, is_entry: true });
            }
        }
        let lane = |port: &SidePort| self.loops[port.loop_ix].lane;
        ports.sort_by_key(|port| (port.is_entry, if port.is_entry { -lane(port) } else { lane(port) }));
        ports
    }

    /// The space the item needs at its right for loops to itself.
    pub(super) fn margin(&self, item: usize, metrics: &Metrics) -> i32 {
        let own = self.loops.iter().filter(|it| it.is_own() && it.target.item == item);
        own.map(|it| metrics.wire_gap + 1 + lane_width(it, metrics)).sum()
    }

    /// Gives every port and every lane its column, and every bar its track.
    pub(super) fn choose_columns(&mut self, rows: &Rows, level: &Level<'_>, metrics: &Metrics) {
        self.center_ports(rows, level);
        for channel in 0..self.channels.len() {
            self.choose_ports(channel, true, rows, level, metrics);
            self.choose_ports(channel, false, rows, level, metrics);
        }
        self.choose_lanes(rows, metrics);
        let lanes: Vec<i32> = self.loops.iter().map(|it| it.lane).collect();
        for channel in &mut self.channels {
            let columns: Vec<Columns> = channel.nets.iter().map(|net| net.columns(&lanes)).collect();
            channel.bars = bars(&columns, &lanes, metrics.wire_gap);
        }
    }

    /// Puts every port where its item has it by nature: at a gate, on a bend, or in the middle.
    fn center_ports(&mut self, rows: &Rows, level: &Level<'_>) {
        for net in self.channels.iter_mut().flat_map(|channel| &mut channel.nets) {
            for (ports, is_upper) in [(&mut net.upper, true), (&mut net.lower, false)] {
                for port in ports {
                    port.x = rows.items[port.tip.item].x + level.offset(rows, port.tip, is_upper);
                }
            }
        }
    }

    /// Moves the ports on the nodes of one side of a channel.
    fn choose_ports(&mut self, channel: usize, is_upper: bool, rows: &Rows, level: &Level<'_>, metrics: &Metrics) {
        let row = if is_upper { channel.checked_sub(1) } else { Some(channel) };
        for &item in row.and_then(|row| rows.order.get(row)).into_iter().flatten() {
            if level.is_node(item) {
                self.choose_node_ports(channel, is_upper, item, rows, metrics);
            }
        }
    }

    fn choose_node_ports(&mut self, channel: usize, is_upper: bool, item: usize, rows: &Rows, metrics: &Metrics) {
        let nets = &mut self.channels[channel].nets;
        let mut ports: Vec<(i64, usize)> = Vec::new();
        for (ix, net) in nets.iter().enumerate() {
            let (near, far) = net.sides(is_upper);
            if near.iter().any(|port| port.tip.item == item) {
                let sum: i64 = far.iter().map(|port| i64::from(port.x)).sum();
                // Loops turn right, so they come last.
                ports.push((if far.is_empty() { i64::MAX } else { sum * 16 / far.len() as i64 }, ix));
            }
        }
        ports.sort_unstable();
        let item_box = &rows.items[item];
        let (first, last) = (item_box.x + metrics.inset, item_box.x + item_box.w - 1 - metrics.inset);
        let mut columns: Vec<i32> = Vec::new();
        for (place, &(_, net)) in ports.iter().enumerate() {
            let even = item_box.x + item_box.w * (place as i32 + 1) / (ports.len() as i32 + 1);
            let straight = nets[net].straight_column(is_upper, rows).filter(|column| (first..=last).contains(column));
            columns.push(straight.unwrap_or(even));
        }
        spread(&mut columns, first, last, metrics.wire_gap);
        for (&(_, net), column) in ports.iter().zip(columns) {
            let near = if is_upper { &mut nets[net].upper } else { &mut nets[net].lower };
            near.iter_mut().filter(|port| port.tip.item == item).for_each(|port| port.x = column);
        }
    }

    /// Short loops get the inner lanes.
    fn choose_lanes(&mut self, rows: &Rows, metrics: &Metrics) {
        self.choose_own_lanes(rows, metrics);
        let spans: Vec<(usize, usize)> = self.loops.iter().map(|it| it.span(rows)).collect();
        let mut waiting: Vec<usize> = (0..self.loops.len()).filter(|&ix| !self.loops[ix].is_own()).collect();
        waiting.sort_by_key(|&ix| (spans[ix].1 - spans[ix].0, spans[ix].0, ix));
        for (place, &ix) in waiting.iter().enumerate() {
            let (first, last) = spans[ix];
            let boxes = rows.order[first..=last]
                .iter()
                .flatten()
                .map(|&item| &rows.items[item])
                .map(|item| item.x + item.w + item.margin);
            let inner = waiting[..place].iter().filter(|&&it| spans[it].0 <= last && first <= spans[it].1);
            let inner = inner.map(|&it| self.loops[it].lane + lane_width(&self.loops[it], metrics) / 2 + 1);
            let free = boxes.chain(inner).max().unwrap_or(0);
            self.loops[ix].lane = free + metrics.wire_gap + lane_width(&self.loops[ix], metrics) / 2;
        }
    }

    fn choose_own_lanes(&mut self, rows: &Rows, metrics: &Metrics) {
        let mut used = vec![0; rows.items.len()];
        for it in self.loops.iter_mut().filter(|it| it.is_own()) {
            let item = &rows.items[it.target.item];
            let width = lane_width(it, metrics);
            it.lane = item.x + item.w + used[it.target.item] + metrics.wire_gap + width / 2;
            used[it.target.item] += metrics.wire_gap + 1 + width;
        }
    }

    /// Gives every row, channel and item its height; returns the height of all.
    pub(super) fn choose_heights(&mut self, rows: &mut Rows, level: &Level<'_>, metrics: &Metrics) -> i32 {
        let mut y = 0;
        for row in 0..=rows.order.len() {
            self.channels[row].top = y;
            y += self.channel_height(row, rows, level, metrics);
            let Some(items) = rows.order.get(row) else { break };
            let height = items.iter().map(|&item| rows.items[item].h).max().unwrap_or(0);
            for &item in items {
                let item = &mut rows.items[item];
                if item.kind == ItemKind::Bend {
                    item.h = height;
                }
                item.y = y + (height - item.h) / 2;
            }
            y += height;
        }
        y
    }

    fn channel_height(&self, channel: usize, rows: &Rows, level: &Level<'_>, metrics: &Metrics) -> i32 {
        let it = &self.channels[channel];
        let is_inside = channel > 0 && channel < rows.order.len();
        let tracks = it.bars.iter().map(|bar| bar.track + 1).max().unwrap_or(0) as i32;
        let is_short = is_inside
            && rows.order[channel - 1].iter().any(|&item| match rows.items[item].kind {
                ItemKind::Label(_) => true,
                _ => matches!(level.child(item), Some(Child::Entry)),
            });
        let tracks = tracks.max(i32::from(is_inside && !is_short));
        let has_arrow = it.nets.iter().flat_map(|net| &net.lower).any(|port| level.is_node(port.tip.item));
        let stem = if is_inside || tracks > 0 { metrics.stem } else { 0 };
        stem + tracks * metrics.track + if has_arrow { metrics.arrow } else { 0 }
    }

    /// All wires and labels, drawn.
    pub(super) fn scene(&self, rows: &Rows, level: &Level<'_>, metrics: &Metrics) -> Scene {
        let mut scene = Scene::default();
        let pen = Pen { wiring: self, rows, level, metrics };
        for channel in &self.channels {
            let nets = channel.nets.iter().enumerate().filter(|(_, net)| net.part_of.is_none());
            scene.wires.extend(nets.map(|(ix, net)| {
                let arrows = pen.arrows_down(net);
                Wire { conditional: net.conditional, lines: lines(&pen.net(channel, ix, 0)), arrows }
            }));
        }
        scene.wires.extend((0..self.loops.len()).map(|ix| pen.looped(ix)));
        for (ix, item) in rows.items.iter().enumerate() {
            if let ItemKind::Label(arc) = rows.items[ix].kind {
                let text = level.arcs[arc].label.clone().unwrap_or_default();
                scene.labels.push(Label { rect: Rect { x: item.x, y: item.y, w: item.w, h: item.h }, text });
            }
        }
        for (ix, it) in self.loops.iter().enumerate() {
            if let Some(text) = &it.label {
                scene.labels.push(Label { rect: pen.lane_label(ix, &scene), text: text.clone() });
            }
        }
        scene
    }
}

/// The width of a lane with its label.
fn lane_width(it: &Loop, metrics: &Metrics) -> i32 {
    it.label.as_deref().map_or(1, metrics.text_width)
}

/// Groups the links of a channel into nets: the links of a bundle that begin or end at the same place.
fn nets(links: &[super::rows::Link]) -> Vec<Net> {
    let mut nets: Vec<Net> = Vec::new();
    let mut keys = Vec::new();
    for link in links {
        let key = (link.bundle, if link.star == Star::Fan { link.upper } else { link.lower });
        let ix = keys.iter().position(|it| *it == key).unwrap_or_else(|| {
            keys.push(key);
            nets.push(Net { conditional: link.conditional, upper: Vec::new(), lower: Vec::new(), part_of: None });
            nets.len() - 1
        });
        let net = &mut nets[ix];
        for (ports, tip) in [(&mut net.upper, link.upper), (&mut net.lower, link.lower)] {
            if ports.iter().all(|port| port.tip != tip) {
                ports.push(Port { tip, x: 0 });
            }
        }
    }
    nets
}

impl Net {
    /// The ports on this side, and on the other.
    fn sides(&self, is_upper: bool) -> (&[Port], &[Port]) {
        if is_upper { (&self.upper, &self.lower) } else { (&self.lower, &self.upper) }
    }

    /// The column in which a port on this side would make the wire straight.
    fn straight_column(&self, is_upper: bool, rows: &Rows) -> Option<i32> {
        let (near, far) = self.sides(is_upper);
        let [far] = far else { return None };
        let is_wider = |far: usize| near.iter().all(|port| rows.items[far].w > rows.items[port.tip.item].w);
        // Of two boxes the wider one gives way, lest a wire leave a narrow box at its corner.
        let gives_way = !is_upper || rows.items[far.tip.item].kind != ItemKind::Child || !is_wider(far.tip.item);
        gives_way.then_some(far.x)
    }

    fn columns(&self, lanes: &[i32]) -> Columns {
        let lane = self.part_of.map(|loop_ix| lanes[loop_ix]);
        let side = |ports: &[Port]| ports.iter().map(|port| port.x).collect::<Vec<i32>>();
        let (mut top, mut bottom) = (side(&self.upper), side(&self.lower));
        if self.upper.is_empty() {
            bottom.extend(lane);
        } else {
            top.extend(lane);
        }
        Columns { top, bottom }
    }
}
