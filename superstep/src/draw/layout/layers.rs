//! Breaks cycles and gives every child of a level its layer.
//!
//! After this, each arc not set aside points from a smaller layer to a larger one.

use super::level::Arc;

/// What the layering needs to know of one child.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A gate through which wires enter the group: in a layer of its own above all others.
    Entry,
    /// The start of the graph, from which the search begins.
    Start,
    Plain,
    /// The end of the graph: below all else.
    End,
    /// A gate through which wires leave the group: in a layer of its own below all others.
    Exit,
}

/// Which arcs close a cycle, judged by a depth-first search from the start.
pub(super) fn back_arcs(roles: &[Role], arcs: &[Arc]) -> Vec<bool> {
    let mut outgoing = vec![Vec::new(); roles.len()];
    let mut is_entered = vec![false; roles.len()];
    for (ix, arc) in arcs.iter().enumerate() {
        outgoing[arc.from.child].push(ix);
        is_entered[arc.to.child] = true;
    }
    let mut roots: Vec<usize> = (0..roles.len()).collect();
    roots.sort_by_key(|&child| match roles[child] {
        Role::Entry | Role::Start => 0,
        _ if !is_entered[child] => 1,
        _ => 2,
    });
    let mut search = Search { arcs, outgoing, state: vec![Visit::New; roles.len()], is_back: vec![false; arcs.len()] };
    for root in roots {
        search.visit(root);
    }
    search.is_back
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    Open,
    Done,
}

struct Search<'a> {
    arcs: &'a [Arc],
    outgoing: Vec<Vec<usize>>,
    state: Vec<Visit>,
    is_back: Vec<bool>,
}

impl Search<'_> {
    fn visit(&mut self, root: usize) {
        if self.state[root] != Visit::New {
            return;
        }
        self.state[root] = Visit::Open;
        let mut path = vec![(root, 0)];
        while let Some((child, next)) = path.last_mut() {
            let Some(&arc_ix) = self.outgoing[*child].get(*next) else {
                self.state[*child] = Visit::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let to = self.arcs[arc_ix].to.child;
            match self.state[to] {
                Visit::New => {
                    self.state[to] = Visit::Open;
                    path.push((to, 0));
                }
                Visit::Open => self.is_back[arc_ix] = true,
                Visit::Done => {}
            }
        }
    }
}

/// The layer of each child: the length of the longest way to it, with the ends of the graph at the bottom.
pub(super) fn layers(roles: &[Role], arcs: &[Arc], is_back: &[bool]) -> Vec<usize> {
    let gated = |child: usize| matches!(roles[child], Role::Entry | Role::Exit);
    let forward: Vec<(usize, usize)> = arcs
        .iter()
        .zip(is_back)
        .filter(|&(arc, is_back)| !is_back && !gated(arc.from.child) && !gated(arc.to.child))
        .map(|(arc, _)| (arc.from.child, arc.to.child))
        .collect();
    let mut layer = longest_ways(roles.len(), &forward);
    lower_late_sources(roles, arcs, &forward, &mut layer);
    lower_end(roles, &mut layer);
    add_gate_layers(roles, &mut layer);
    layer
}

fn longest_ways(count: usize, forward: &[(usize, usize)]) -> Vec<usize> {
    let mut layer = vec![0; count];
    let mut waiting = vec![0; count];
    let mut outgoing = vec![Vec::new(); count];
    for &(from, to) in forward {
        waiting[to] += 1;
        outgoing[from].push(to);
    }
    let mut ready: Vec<usize> = (0..count).filter(|&child| waiting[child] == 0).collect();
    while let Some(child) = ready.pop() {
        for &to in &outgoing[child] {
            layer[to] = layer[to].max(layer[child] + 1);
            waiting[to] -= 1;
            if waiting[to] == 0 {
                ready.push(to);
            }
        }
    }
    layer
}

/// Brings a child that nothing enters close to what it leads to.
fn lower_late_sources(roles: &[Role], arcs: &[Arc], forward: &[(usize, usize)], layer: &mut [usize]) {
    for child in 0..roles.len() {
        if roles[child] != Role::Plain || arcs.iter().any(|arc| arc.to.child == child) {
            continue;
        }
        if let Some(nearest) = forward.iter().filter(|(from, _)| *from == child).map(|&(_, to)| layer[to]).min() {
            layer[child] = nearest - 1;
        }
    }
}

fn lower_end(roles: &[Role], layer: &mut [usize]) {
    let others = (0..roles.len()).filter(|&child| matches!(roles[child], Role::Start | Role::Plain));
    let Some(deepest) = others.map(|child| layer[child]).max() else { return };
    for child in 0..roles.len() {
        if roles[child] == Role::End {
            layer[child] = layer[child].max(deepest + 1);
        }
    }
}

fn add_gate_layers(roles: &[Role], layer: &mut [usize]) {
    let has = |role| roles.contains(&role);
    let shift = usize::from(has(Role::Entry));
    for child in 0..roles.len() {
        layer[child] = if roles[child] == Role::Entry { 0 } else { layer[child] + shift };
    }
    let last = layer.iter().max().map_or(0, |deepest| deepest + 1);
    for child in 0..roles.len() {
        if roles[child] == Role::Exit {
            layer[child] = last;
        }
    }
}
