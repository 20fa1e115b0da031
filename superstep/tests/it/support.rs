//! What the tests of runs share: a small state, and histories and events without ids.

pub(crate) mod hooked;
pub(crate) mod postgres;
pub(crate) mod random_graphs;
pub(crate) mod savers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{Error, Event, EventStream, MemorySaver, Persist, State, StateGraph, StateSnapshot, Thread};

/// A state with a field for most needs.
#[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notes {
    #[state(append)]
    pub(crate) log: Vec<String>,
    #[state(sum)]
    pub(crate) total: i64,
    pub(crate) topic: Option<String>,
}

/// A node that logs its name.
pub(crate) fn says(
    name: &'static str,
) -> impl Fn(Notes) -> std::future::Ready<NotesUpdate> + Clone + Send + Sync + 'static {
    move |_| std::future::ready(Notes::update().log([name]))
}

/// `a`, then `b`, then `c`; each logs its name.
pub(crate) fn a_b_c() -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_node("b", says("b")).add_node("c", says("c")).add_sequence(["a", "b", "c"]);
    graph
}

/// The graph, saved in memory.
pub(crate) fn saved(graph: &mut StateGraph<Notes>) -> superstep::CompiledStateGraph<Notes> {
    graph.checkpointer(MemorySaver::new()).compile().expect("the graph has no mistakes")
}

/// Counts from outside of a graph.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    /// One more; gives how many there were before.
    pub(crate) fn up(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A snapshot without what differs from run to run: ids and times.
pub(crate) fn plain<S: State>(snapshot: &StateSnapshot<S>) -> Value {
    json!({
        "values": snapshot.values(), "next": snapshot.next, "step": snapshot.step, "source": snapshot.source,
        "tasks": without_ids(snapshot.to_json()["tasks"].take()),
    })
}

/// The history of a thread, newest first, without ids.
pub(crate) async fn history<S: State>(thread: &Thread<S>) -> Result<Vec<Value>, Error> {
    Ok(thread.history().await?.iter().map(plain).collect())
}

/// One line for each checkpoint, oldest first.
pub(crate) async fn trace<S: State>(thread: &Thread<S>) -> Result<String, Error> {
    let mut lines = Vec::new();
    for at in thread.history().await?.iter().rev() {
        let (step, source) = (at.step.unwrap_or_default(), at.source.map(|s| s.to_string()).unwrap_or_default());
        lines.push(format!("{step:>2} {source:<6} {} -> {}", at.values(), at.next.join(", ")));
    }
    Ok(lines.join("\n"))
}

/// All events of a stream as JSON without ids, each with its mode; an error ends the list.
pub(crate) async fn events<S: Persist>(mut stream: EventStream<S>) -> Vec<Value> {
    let mut all = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => all.push(shown(&event)),
            Err(error) => all.push(json!({ "error": error.to_string(), "kind": format!("{:?}", error.kind()) })),
        }
    }
    all
}

fn shown(event: &Event) -> Value {
    json!({ "mode": format!("{:?}", event.mode), "path": event.path(), "data": without_ids(event.to_json()) })
}

/// Takes ids out of a value, wherever they are.
pub(crate) fn without_ids(value: Value) -> Value {
    const IDS: [&str; 6] = ["id", "checkpoint", "parent", "timestamp", "created_at", "namespace"];
    match value {
        Value::Object(map) => {
            map.into_iter().filter(|(k, _)| !IDS.contains(&k.as_str())).map(|(k, v)| (k, without_ids(v))).collect()
        }
        Value::Array(list) => list.into_iter().map(without_ids).collect(),
        other => other,
    }
}

/// The items of a JSON list; none of anything else.
pub(crate) fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Compares two lists item by item, to name the first that differs.
pub(crate) fn same_items(one: &Value, other: &Value, what: &str) -> Result<(), TestCaseError> {
    for (at, (one, other)) in items(one).iter().zip(items(other)).enumerate() {
        prop_assert_eq!(one, other, "{}, at {}", what, at);
    }
    prop_assert_eq!(items(one).len(), items(other).len(), "how many there are of {}", what);
    Ok(())
}
