//! Drawing a graph: its edges are found by playing it with every declared way open. What the play does not come to is
//! drawn as it was declared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::draw::{Drawing, DrawnEdge, DrawnNode};
use crate::graph::compile::CompiledStateGraph;
use crate::index::{ChannelIx, NodeIx};
use crate::names::{END, START};
use crate::plan::{ControlKind, GraphCore, NodePlan, Plan, StopAt};
use crate::state::State;

/// How many steps are played at most.
const LIMIT: usize = 250;

impl<S: State> CompiledStateGraph<S> {
    /// The graph as nodes and edges.
    ///
    /// Edges are drawn as far as they are known. A conditional edge that returns plain names, a `goto` or a `Send` may
    /// lead anywhere, so the nodes that only they lead to stand alone, and
    /// [`Diagnostic::UnknownTargets`](crate::Diagnostic::UnknownTargets) says whose targets are missing. Name them
    /// with `#[derive(Routes)]`, with
    /// [`add_conditional_edges_with_map`](crate::StateGraph::add_conditional_edges_with_map), or with
    /// [`NodeOptions::destinations`](crate::NodeOptions::destinations).
    pub fn draw(&self) -> Drawing {
        self.draw_expanded(0)
    }

    /// The same with subgraphs expanded so many levels deep; `usize::MAX` expands all.
    pub fn draw_expanded(&self, depth: usize) -> Drawing {
        self.core.draw(depth)
    }
}

impl GraphCore {
    /// The drawing, graphs inside expanded so many levels deep.
    pub(crate) fn draw(&self, depth: usize) -> Drawing {
        let mut drawing = Player::new(&self.plan).play();
        if depth > 0 {
            for (ix, node) in self.plan.nodes.enumerated() {
                if let Some(inside) = self.inside(ix) {
                    expand(&mut drawing, &node.name, inside.draw(depth - 1));
                }
            }
        }
        drawing
    }
}

/// An edge on its way: the trigger that it writes, if it is conditional, and its label.
type Wire = (ChannelIx, bool, Option<String>);

struct Player<'a> {
    plan: &'a Plan,
    edges: BTreeSet<(String, String, bool, Option<String>)>,
    declared: BTreeSet<NodeIx>,
}

impl<'a> Player<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self { plan, edges: BTreeSet::new(), declared: BTreeSet::new() }
    }

    fn name(&self, node: NodeIx) -> String {
        self.plan.nodes[node].name.to_string()
    }

    /// The ways that a node declares: of its commands and of its conditional edges.
    fn declared_wires(&self, node: NodeIx) -> (Vec<Wire>, Vec<Option<String>>) {
        let (mut wires, mut ends) = (Vec::new(), Vec::new());
        let plan_node = &self.plan.nodes[node];
        let commands = plan_node.destinations.iter().flatten().map(|(to, label)| (to.clone(), label.clone()));
        let branches = plan_node.branches.iter().flat_map(|b| b.map.iter().flatten());
        let branches = branches.map(|(label, to)| (to.clone(), Some(label.clone())));
        for (to, label) in commands.chain(branches) {
            if to == END {
                ends.push(label);
            } else if let Some(channel) = self.plan.node(&to).and_then(|n| self.plan.nodes[n].wake) {
                wires.push((channel, true, label));
            }
        }
        (wires, ends)
    }

    fn static_wires(&self, node: NodeIx) -> Vec<Wire> {
        let node = &self.plan.nodes[node];
        node.edges.iter().copied().chain(node.joins.iter().map(|(c, _)| *c)).map(|c| (c, false, None)).collect()
    }

    fn play(mut self) -> Drawing {
        let first = self.plan.triggered.get(ChannelIx::FIRST).cloned().unwrap_or_default();
        let mut sources: BTreeMap<NodeIx, BTreeSet<Wire>> = BTreeMap::new();
        let mut step_sources: BTreeMap<NodeIx, BTreeSet<Wire>> = BTreeMap::new();
        let mut declared_by: BTreeMap<NodeIx, BTreeSet<Wire>> = BTreeMap::new();
        let mut live = Signals::new(self.plan);
        let mut wave = if first.is_empty() { self.field_entries() } else { first.to_vec() };
        for _ in 0..LIMIT {
            if wave.is_empty() {
                break;
            }
            step_sources = BTreeMap::new();
            let mut written: Vec<(ChannelIx, usize)> = Vec::new();
            for &node in &wave {
                let mut wires: BTreeSet<Wire> = self.static_wires(node).into_iter().collect();
                written.extend(self.plan.nodes[node].edges.iter().map(|c| (*c, 0)));
                written.extend(self.plan.nodes[node].joins.iter().copied());
                if self.declared.insert(node) {
                    let (declared, ends) = self.declared_wires(node);
                    for label in ends {
                        self.edges.insert((self.name(node), END.to_owned(), true, label));
                    }
                    written.extend(declared.iter().map(|(c, _, _)| (*c, 0)));
                    wires.extend(declared.iter().cloned());
                    declared_by.insert(node, declared.into_iter().collect());
                }
                // A conditional way hides the plain one to the same place.
                let conditional: BTreeSet<ChannelIx> =
                    declared_by.get(&node).into_iter().flatten().map(|w| w.0).collect();
                wires.retain(|(c, cond, _)| *cond || !conditional.contains(c));
                wires.extend(declared_by.get(&node).cloned().unwrap_or_default());
                step_sources.insert(node, wires);
            }
            sources.extend(step_sources.iter().map(|(n, w)| (*n, w.clone())));
            wave = live.step(self.plan, &wave, &written);
            self.connect(&wave, &mut sources, &step_sources);
        }
        self.add_unplayed();
        self.finish(&step_sources)
    }

    /// Nodes of a graph without a start node: those that read what an input writes.
    fn field_entries(&self) -> Vec<NodeIx> {
        let crate::plan::InputMode::Fields(fields) = &self.plan.input else { return Vec::new() };
        let woken = fields.iter().flat_map(|f| self.plan.triggered[self.plan.channel_of_field(*f)].iter().copied());
        woken.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn connect(
        &mut self,
        wave: &[NodeIx],
        sources: &mut BTreeMap<NodeIx, BTreeSet<Wire>>,
        step_sources: &BTreeMap<NodeIx, BTreeSet<Wire>>,
    ) {
        let mut by_trigger: BTreeMap<ChannelIx, Vec<(NodeIx, bool, Option<String>)>> = BTreeMap::new();
        for (source, wires) in sources.iter() {
            for (channel, conditional, label) in wires {
                by_trigger.entry(*channel).or_default().push((*source, *conditional, label.clone()));
            }
        }
        for &node in wave {
            let mut added = false;
            for trigger in &self.plan.nodes[node].triggers {
                for (source, conditional, label) in by_trigger.get(trigger).into_iter().flatten() {
                    let wire = (*trigger, *conditional, label.clone());
                    self.edges.insert((self.name(*source), self.name(node), *conditional, label.clone()));
                    if step_sources.get(source).is_some_and(|w| w.contains(&wire)) {
                        added = true;
                    } else if let Some(wires) = sources.get_mut(source) {
                        wires.remove(&wire);
                    }
                }
            }
            if !added {
                let implied = step_sources.keys().map(|s| (self.name(*s), self.name(node), true, None));
                self.edges.extend(implied.collect::<Vec<_>>());
            }
        }
    }

    /// The edges that were declared but not come to: of nodes that nothing known leads to, of joins that wait for one,
    /// and those to the end.
    fn add_unplayed(&mut self) {
        for node in self.plan.nodes.places() {
            let mut wires = self.static_wires(node);
            if self.plan.nodes[node].ends {
                self.add_missing(node, END, false, None);
            }
            if !self.declared.contains(&node) {
                let (declared, ends) = self.declared_wires(node);
                wires.extend(declared);
                ends.into_iter().for_each(|label| self.add_missing(node, END, true, label));
            }
            for (channel, conditional, label) in wires {
                for &to in &self.plan.triggered[channel] {
                    self.add_missing(node, &self.plan.nodes[to].name, conditional, label.clone());
                }
            }
        }
    }

    fn add_missing(&mut self, from: NodeIx, to: &str, conditional: bool, label: Option<String>) {
        let from = self.name(from);
        if !self.edges.iter().any(|edge| edge.0 == from && edge.1 == to) {
            self.edges.insert((from, to.to_owned(), conditional, label));
        }
    }

    /// Whether a path of the node may lead to where nobody said.
    fn is_open(&self, node: &str) -> bool {
        let node = self.plan.node(node).map(|n| &self.plan.nodes[n]);
        node.is_some_and(|n| n.branches.iter().any(|branch| branch.map.is_none()))
    }

    fn finish(self, last: &BTreeMap<NodeIx, BTreeSet<Wire>>) -> Drawing {
        let mut nodes: Vec<DrawnNode> = self.plan.nodes.iter().map(|n| drawn(self.plan, n)).collect();
        let mut edges: Vec<DrawnEdge> = Vec::new();
        let mut add = |from: &str, to: &str, conditional: bool, label: Option<String>| {
            if edges.iter().any(|e| e.from == from && e.to == to) {
                return;
            }
            let mut edge = DrawnEdge::new(from, to);
            if conditional {
                edge = edge.conditional();
            }
            edges.push(match label.filter(|l| l != to) {
                Some(label) => edge.label(label),
                None => edge,
            });
        };
        if self.plan.node(START).is_none() {
            nodes.insert(0, DrawnNode::new(START));
            let first = self.plan.triggered.get(ChannelIx::FIRST).filter(|_| !self.plan.control.is_empty()).cloned();
            for node in first.map_or_else(|| self.field_entries(), crate::plan::Woken::into_vec) {
                add(START, &self.plan.nodes[node].name, false, None);
            }
        }
        for (from, to, conditional, label) in &self.edges {
            add(from, to, *conditional, label.clone());
        }
        let leaves: BTreeSet<&String> = self.edges.iter().map(|e| &e.0).collect();
        let ends: BTreeSet<&String> =
            self.edges.iter().map(|e| &e.1).filter(|t| *t != END && !leaves.contains(t)).collect();
        if !ends.is_empty() {
            ends.into_iter().for_each(|from| add(from, END, self.is_open(from), None));
        } else if last.len() == 1 && !self.edges.iter().any(|e| e.1 == END) {
            last.keys().for_each(|n| add(&self.plan.nodes[*n].name, END, true, None));
        }
        if edges.iter().any(|e| e.to == END) {
            nodes.push(DrawnNode::new(END));
        }
        Drawing::new(nodes, edges)
    }
}

fn drawn(plan: &Plan, node: &NodePlan) -> DrawnNode {
    let mut drawn = DrawnNode::new(&*node.name);
    drawn.metadata = node.metadata.clone();
    if node.defer {
        drawn.metadata.insert("defer".to_owned(), json!(true));
    }
    let stops = |at: &StopAt| match at {
        StopAt::Nodes(list) => list.iter().any(|n| plan.nodes[*n].name == node.name),
        StopAt::Everywhere => !node.hidden,
        StopAt::Nowhere => false,
    };
    let stop = match (stops(&plan.stop_before), stops(&plan.stop_after)) {
        (true, true) => Some("before,after"),
        (true, false) => Some("before"),
        (false, true) => Some("after"),
        (false, false) => None,
    };
    if let Some(stop) = stop {
        drawn.metadata.insert("__interrupt".to_owned(), json!(stop));
    }
    drawn
}

/// Replaces a node by the graph inside it.
fn expand(drawing: &mut Drawing, name: &str, mut inner: Drawing) {
    let Some(place) = drawing.nodes.iter().position(|n| n.id == name) else { return };
    if inner.nodes.len() <= 1 {
        return;
    }
    trim(&mut inner, START, |e| e.from == START, |e| e.to == START);
    trim(&mut inner, END, |e| e.to == END, |e| e.from == END);
    let has = |id: &str, incoming: bool| inner.edges.iter().any(|e| if incoming { e.to == id } else { e.from == id });
    let only = |nodes: Vec<&DrawnNode>| match nodes.as_slice() {
        [one] => Some(one.id.clone()),
        _ => None,
    };
    let first = only(inner.nodes.iter().filter(|n| !has(&n.id, true)).collect());
    let last = only(inner.nodes.iter().filter(|n| !has(&n.id, false)).collect());
    let (Some(first), Some(last)) = (first, last) else { return };
    let prefixed = |id: &str| format!("{name}:{id}");
    drawing.nodes.remove(place);
    for mut node in inner.nodes {
        node.id = prefixed(&node.id);
        node.group.insert(0, name.to_owned());
        drawing.nodes.push(node);
    }
    for edge in &mut drawing.edges {
        if edge.from == name {
            edge.from = prefixed(&last);
        }
        if edge.to == name {
            edge.to = prefixed(&first);
        }
    }
    for mut edge in inner.edges {
        (edge.from, edge.to) = (prefixed(&edge.from), prefixed(&edge.to));
        drawing.edges.push(edge);
    }
}

/// Takes the start or end off a drawing, if one node alone stands next to it.
fn trim(drawing: &mut Drawing, id: &str, mine: impl Fn(&DrawnEdge) -> bool, other: impl Fn(&DrawnEdge) -> bool) {
    let next: Vec<&DrawnEdge> = drawing.edges.iter().filter(|e| mine(e)).collect();
    let neighbours: BTreeSet<&str> =
        next.iter().map(|e| if e.from == id { e.to.as_str() } else { e.from.as_str() }).collect();
    let alone = neighbours.len() == 1 && !drawing.edges.iter().any(&other) && {
        let neighbour = neighbours.iter().next().copied().unwrap_or_default();
        let starts = next.first().is_some_and(|e| e.from == id);
        // What comes next must itself be the only beginning (or end) once this is gone.
        !drawing.edges.iter().any(|e| !mine(e) && if starts { e.to == neighbour } else { e.from == neighbour })
    };
    if alone {
        drawing.edges.retain(|e| !mine(e));
        drawing.nodes.retain(|n| n.id != id);
    }
}

/// The triggers, as far as drawing needs them.
struct Signals {
    joins: BTreeMap<ChannelIx, BTreeSet<usize>>,
    deferred: BTreeSet<ChannelIx>,
}

impl Signals {
    fn new(plan: &Plan) -> Self {
        let joins = plan
            .control
            .enumerated()
            .filter(|(_, c)| matches!(c.kind, ControlKind::Join { .. } | ControlKind::JoinDeferred { .. }));
        Self { joins: joins.map(|(c, _)| (c, BTreeSet::new())).collect(), deferred: BTreeSet::new() }
    }

    /// The nodes that run after a step that wrote these triggers.
    fn step(&mut self, plan: &Plan, ran: &[NodeIx], written: &[(ChannelIx, usize)]) -> Vec<NodeIx> {
        for channel in ran.iter().flat_map(|n| &plan.nodes[*n].triggers) {
            let full = |c: &ChannelIx, seen: &BTreeSet<usize>| matches!(&plan.control[*c].kind, ControlKind::Join { members } | ControlKind::JoinDeferred { members } if seen.len() == members.len());
            if let Some(seen) = self.joins.get_mut(channel)
                && full(channel, seen)
            {
                seen.clear();
            }
        }
        let mut open: BTreeSet<ChannelIx> = BTreeSet::new();
        for (channel, member) in written {
            match &plan.control[*channel].kind {
                ControlKind::Start | ControlKind::Branch => drop(open.insert(*channel)),
                ControlKind::BranchDeferred => drop(self.deferred.insert(*channel)),
                ControlKind::Join { members } => {
                    let seen = self.joins.entry(*channel).or_default();
                    seen.insert(*member);
                    if seen.len() == members.len() {
                        open.insert(*channel);
                    }
                }
                ControlKind::JoinDeferred { members } => {
                    let seen = self.joins.entry(*channel).or_default();
                    seen.insert(*member);
                    if seen.len() == members.len() {
                        self.deferred.insert(*channel);
                    }
                }
            }
        }
        if open.is_empty() {
            open = std::mem::take(&mut self.deferred);
        }
        let mut nodes: Vec<NodeIx> = open.iter().flat_map(|c| plan.triggered[*c].iter().copied()).collect();
        nodes.sort_by_key(|n| plan.nodes[*n].rank);
        nodes.dedup();
        nodes
    }
}
