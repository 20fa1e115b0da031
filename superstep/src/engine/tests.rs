//! The pure parts of a step, without nodes that run: who is chosen, and what becomes of writes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::apply::{Applied, apply_start, apply_step, merge_first};
use super::live::{Live, Start};
use super::tasks::{Task, next_tasks, sort_by_path};
use super::writes::TaskWrites;
use crate::index::NodeIx;
use crate::json::JsonState;
use crate::node::NodeOptions;
use crate::plan::Plan;
use crate::state::IntoUpdate;
use crate::state::erased::{AnyUpdate, Writes};
use crate::{END, START, StateGraph};

/// A graph whose nodes write what a test says.
struct Played {
    plan: Arc<Plan>,
    live: Live,
}

fn graph(names: &[&str]) -> StateGraph<JsonState> {
    let mut graph = StateGraph::dynamic(JsonState::schema().append("log").sum("total").ephemeral("flash"));
    for name in names {
        graph.add_node(*name, |_: &JsonState| ());
    }
    graph
}

impl Played {
    /// At the beginning of a run.
    fn new(graph: &StateGraph<JsonState>) -> Self {
        let plan = graph.compile().expect("it is a graph").core.plan;
        let mut live = Live::empty(&plan);
        apply_start(&plan, &mut live, Start::Writes { writes: Writes::default(), goto: Vec::new() });
        Self { plan, live }
    }

    fn writes(&self, node: NodeIx, update: Value) -> TaskWrites {
        let puts = IntoUpdate::<JsonState>::into_update(update).into_puts().expect("it is an update");
        let puts = self.plan.ty.admit(AnyUpdate::of::<JsonState>(puts), None).expect("it is of this state");
        let mut writes = TaskWrites::of_puts(puts);
        self.plan.way_out(node, None, &mut writes).unwrap_or_else(|_| panic!("edges lead on"));
        writes
    }

    /// The tasks of the next step, with what they wrote.
    fn begin(&mut self, update: impl Fn(&str) -> Value) -> Vec<Task> {
        let mut tasks = next_tasks(&self.plan, &self.live, self.live.updated.as_deref());
        for task in &mut tasks {
            task.writes = self.writes(task.node, update(&self.plan.nodes[task.node].name));
        }
        self.live.open_step();
        tasks
    }

    fn end(&mut self, tasks: &mut [Task]) {
        let mut batch: Vec<Applied<'_>> = tasks.iter_mut().map(Applied::of_task).collect();
        apply_step(&self.plan, &mut self.live, &mut batch).expect("the rules take it");
    }

    /// Who runs in each step to the end.
    fn steps(&mut self) -> Vec<String> {
        let mut steps = Vec::new();
        while let tasks @ [_, ..] = &mut *self.begin(|_| json!({})) {
            let names: Vec<&str> = tasks.iter().map(|task| &*self.plan.nodes[task.node].name).collect();
            steps.push(names.join(" "));
            self.end(tasks);
        }
        steps
    }

    fn shown(&self) -> Value {
        let fields = self.plan.fields().iter().enumerate();
        let json = |field| self.plan.ty.field_json(&self.live.state, field).expect("it is shown");
        fields.filter_map(|(field, spec)| Some((spec.name().to_owned(), json(field)?))).collect()
    }
}

#[test]
fn edges_wake_one_after_another() {
    let mut chain = graph(&["a", "b", "c"]);
    chain.add_sequence(["a", "b", "c"]);
    assert_eq!(Played::new(&chain).steps(), ["__start__", "a", "b", "c"]);
}

#[test]
fn a_join_waits_for_all_of_its_members() {
    let mut joined = graph(&["a", "b", "late", "end"]);
    joined.add_edge(START, "a").add_edge(START, "b").add_edge("b", "late").add_edge(["a", "late"], "end");
    assert_eq!(Played::new(&joined).steps(), ["__start__", "a b", "late", "end"]);
}

#[test]
fn a_deferred_node_runs_when_nothing_else_is_left() {
    let mut deferred = graph(&["a", "b", "c"]);
    deferred.add_node_with("last", |_: &JsonState| (), NodeOptions::new().defer());
    deferred.add_sequence(["a", "b", "c"]).add_edge("a", "last").add_edge("last", END);
    assert_eq!(Played::new(&deferred).steps(), ["__start__", "a", "b", "c", "last"]);
}

#[test]
fn what_changes_in_a_step_gets_one_version() {
    let mut wide = graph(&["a", "b"]);
    wide.add_edge(START, "a").add_edge(START, "b").add_edge("a", END);
    let mut played = Played::new(&wide);
    for before in 1..=2 {
        let mut tasks = played.begin(|_| json!({ "log": ["x"], "total": 1 }));
        assert_eq!((played.live.max_version, played.live.version), (before, before + 1));
        played.end(&mut tasks);
        assert_eq!(played.live.max_version, before + 1);
        let newest = played.live.versions.iter().filter(|version| **version == before + 1).count();
        assert!(newest >= 2, "both fields have it");
    }
}

#[test]
fn writes_count_in_the_order_of_tasks() {
    let mut wide = graph(&["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        wide.add_edge(START, name).add_edge(name, END);
    }
    let mut played = Played::new(&wide);
    let mut start = played.begin(|_| json!({}));
    played.end(&mut start);
    let mut tasks = played.begin(|name| json!({ "log": [name] }));
    tasks.reverse();
    sort_by_path(&played.plan, &mut tasks);
    played.end(&mut tasks);
    assert_eq!(played.shown()["log"], json!(["a", "b", "c"]));
}

/// With paths a lone task's writes are merged before the rest of its step, and the step comes to the same.
#[test]
fn what_is_merged_first_is_merged_once() {
    let mut chain = graph(&["a", "b"]);
    chain.add_sequence(["a", "b"]);
    let mut both = [Played::new(&chain), Played::new(&chain)];
    for flash in [Some("once"), None, Some("again")] {
        for (played, first) in both.iter_mut().zip([true, false]) {
            let mut tasks = played.begin(|_| match flash {
                Some(flash) => json!({ "log": ["x"], "total": 2, "flash": flash }),
                None => json!({ "total": 1 }),
            });
            if first {
                let Task { node, writes, .. } = &mut tasks[0];
                merge_first(&played.plan, &mut played.live, *node, writes).expect("the rules take it");
            }
            played.end(&mut tasks);
        }
        let [first, rest] = &both;
        assert_eq!(first.shown(), rest.shown());
        let versions = |live: &Live| live.versions.iter().copied().collect::<Vec<u64>>();
        let facts = |live: &Live| (versions(live), live.max_version, live.present.clone(), live.seen.clone());
        assert_eq!(facts(&first.live), facts(&rest.live));
        let sorted = |live: &Live| {
            let mut updated = live.updated.clone().unwrap_or_default();
            updated.sort_unstable();
            updated
        };
        assert_eq!(sorted(&first.live), sorted(&rest.live));
    }
}
