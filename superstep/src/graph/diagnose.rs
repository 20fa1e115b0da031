//! Diagnostics: what is legal but probably not meant.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::call::AnyNode;
use crate::graph::build::GraphDraft;
use crate::names::{END, START};
use crate::plan::Diagnostic;

pub(crate) fn diagnose(graph: &GraphDraft) -> Vec<Diagnostic> {
    let map = Map::of(graph);
    let mut found = Vec::new();
    map.unreachable(&mut found);
    Map::may_run_twice(graph, &mut found);
    same_field(graph, &mut found);
    goto_beside_edges(graph, &mut found);
    found
}

/// Who may wake whom.
struct Map<'a> {
    nodes: Vec<&'a str>,
    next: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// Those that may lead anywhere.
    open_ended: BTreeSet<&'a str>,
}

impl<'a> Map<'a> {
    fn of(graph: &'a GraphDraft) -> Self {
        let nodes: Vec<&str> = graph.nodes.iter().map(|(n, _, _)| n.as_str()).collect();
        let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut open_ended = BTreeSet::new();
        let mut add = |from: &'a str, to: &'a str| {
            if to != END {
                next.entry(from).or_default().insert(to);
            }
        };
        for (from, to) in &graph.edges {
            add(from, to);
        }
        for (sources, to) in &graph.joins {
            sources.iter().for_each(|from| add(from, to));
        }
        for branch in &graph.branches {
            match &branch.map {
                Some(map) => map.iter().for_each(|(_, to)| add(&branch.from, to)),
                None => drop(open_ended.insert(branch.from.as_str())),
            }
        }
        let steers = |handler: &Option<AnyNode>| handler.as_ref().is_some_and(|h| h.steers);
        let handled_anywhere = steers(&graph.defaults.handler);
        for (name, node, options) in &graph.nodes {
            match &options.destinations {
                Some(known) => known.iter().for_each(|(to, _)| add(name, to)),
                None if node.steers || steers(&options.handler) || handled_anywhere => {
                    open_ended.insert(name);
                }
                None => {}
            }
        }
        Self { nodes, next, open_ended }
    }

    fn after(&self, node: &str) -> impl Iterator<Item = &'a str> {
        self.next.get(node).into_iter().flatten().copied().collect::<Vec<_>>().into_iter()
    }

    fn reachable(&self) -> BTreeSet<&'a str> {
        let mut seen = BTreeSet::new();
        let mut queue: VecDeque<&str> = VecDeque::from([START]);
        while let Some(node) = queue.pop_front() {
            if seen.insert(node) {
                queue.extend(self.after(node));
            }
        }
        seen
    }

    /// If something that is reached may lead anywhere, so may everything be: then that is what to tell.
    fn unreachable(&self, found: &mut Vec<Diagnostic>) {
        let reachable = self.reachable();
        let mut lost = self.nodes.iter().filter(|n| !reachable.contains(*n)).peekable();
        let mut open = reachable.intersection(&self.open_ended).peekable();
        if open.peek().is_none() {
            found.extend(lost.map(|n| Diagnostic::Unreachable { node: (*n).to_owned() }));
        } else if lost.peek().is_some() {
            found.extend(open.map(|n| Diagnostic::UnknownTargets { node: (*n).to_owned() }));
        }
    }

    /// The steps in which each node may run, on static edges without going round a loop.
    fn steps(graph: &'a GraphDraft) -> BTreeMap<&'a str, BTreeSet<usize>> {
        let mut steps: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        let mut wave: BTreeSet<&str> = BTreeSet::from([START]);
        for step in 1..=graph.nodes.len() {
            let mut next = BTreeSet::new();
            for (from, to) in &graph.edges {
                if wave.contains(from.as_str()) && to != END {
                    next.insert(to.as_str());
                }
            }
            for node in &next {
                steps.entry(node).or_default().insert(step);
            }
            wave = next;
        }
        steps
    }

    /// Whether static edges alone lead from a node back to it; then it is meant to run again.
    fn on_static_loop(graph: &'a GraphDraft, node: &str) -> bool {
        let mut seen = BTreeSet::from([node]);
        loop {
            let reached = graph.edges.iter().filter(|(from, _)| seen.contains(from.as_str()));
            let reached: Vec<&str> = reached.map(|(_, to)| to.as_str()).collect();
            if reached.contains(&node) {
                return true;
            }
            let before = seen.len();
            seen.extend(reached);
            if seen.len() == before {
                return false;
            }
        }
    }

    fn may_run_twice(graph: &'a GraphDraft, found: &mut Vec<Diagnostic>) {
        let deferred: BTreeSet<&str> =
            graph.nodes.iter().filter(|(_, _, o)| o.defer).map(|(n, _, _)| n.as_str()).collect();
        for (node, steps) in Self::steps(graph) {
            if steps.len() > 1 && !deferred.contains(node) && !Self::on_static_loop(graph, node) {
                found.push(Diagnostic::MayRunTwice { node: node.to_owned(), steps: steps.into_iter().collect() });
            }
        }
    }
}

fn same_field(graph: &GraphDraft, found: &mut Vec<Diagnostic>) {
    let steps = Map::steps(graph);
    let last_value = |f: &str| graph.fields().iter().any(|s| s.name() == f && s.kind == crate::FieldKind::LastValue);
    let mut writers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, _, options) in &graph.nodes {
        for field in options.writes.iter().flatten().filter(|f| last_value(f)) {
            writers.entry(field).or_default().push(name);
        }
    }
    let together = |a: &str, b: &str| match (steps.get(a), steps.get(b)) {
        (Some(x), Some(y)) => x.intersection(y).next().is_some(),
        _ => false,
    };
    for (field, names) in writers {
        let clash: Vec<String> =
            names.iter().filter(|a| names.iter().any(|b| *a != b && together(a, b))).map(|n| (*n).to_owned()).collect();
        if clash.len() > 1 {
            found.push(Diagnostic::SameField { nodes: clash, field: field.to_owned() });
        }
    }
}

fn goto_beside_edges(graph: &GraphDraft, found: &mut Vec<Diagnostic>) {
    for (name, _, options) in &graph.nodes {
        let edges: Vec<String> =
            graph.edges.iter().filter(|(from, to)| from == name && to != END).map(|(_, to)| to.clone()).collect();
        if options.destinations.is_some() && !edges.is_empty() {
            found.push(Diagnostic::GotoBesideEdges { node: name.clone(), edges });
        }
    }
}
