//! Paths are code of their node: they take what it takes, may do what it may, and fail, wait and ask as a part of it.

mod asking;
mod bounds;
mod by_hand;
mod work;

use superstep::{CompiledStateGraph, IntoPath, NodeOptions, START, StateGraph};

use crate::support::{Count, Notes, NotesUpdate, saved, says};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

/// A node that logs its name and counts how often it ran.
fn counted(
    name: &'static str,
    runs: &Count,
) -> impl Fn(Notes) -> std::future::Ready<NotesUpdate> + Send + Sync + 'static {
    let runs = runs.clone();
    move |_| {
        runs.up();
        std::future::ready(Notes::update().log([name]))
    }
}

/// `a`, and `y` and `z` behind the path that leads on from it.
fn behind_a<M>(runs: &Count, options: NodeOptions<Notes>, path: impl IntoPath<Notes, M>) -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node_with("a", counted("a", runs), options).add_node("y", says("y")).add_node("z", says("z"));
    graph.add_edge(START, "a").add_conditional_edges("a", path);
    graph
}

/// The same, saved in memory.
fn led_by<M>(path: impl IntoPath<Notes, M>) -> CompiledStateGraph<Notes> {
    saved(&mut behind_a(&Count::default(), NodeOptions::new(), path))
}
