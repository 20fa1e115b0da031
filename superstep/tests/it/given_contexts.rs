//! What a caller gives a run for its nodes, and what becomes of it if types do not meet.

use std::sync::{Arc, Mutex};

use superstep::{
    BoxError, Context, Entrypoint, ErrorKind, MemorySaver, NodeOptions, RetryPolicy, Runtime, START, StateGraph, Task,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::support::{Count, Notes, NotesUpdate, says};

#[derive(Clone)]
struct Deps;
struct Other;

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

fn asking() -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("n", async |_: Notes, _: Runtime<Deps>| Notes::update().log(["found"])).add_edge(START, "n");
    graph
}

#[tokio::test]
async fn a_node_that_asks_for_another_type_than_was_given_fails_with_both_names() {
    let app = asking().compile().unwrap();
    let deps = std::any::type_name::<Deps>();
    let words = |given: &str| {
        format!(
            "node `n` failed in step 1: it asks for a context of type `{deps}`{given}; give the run one with `.context(..)`"
        )
    };
    let error = app.invoke(input()).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Node, words("")));
    let error = app.invoke(input()).context(Arc::new(Deps)).await.unwrap_err();
    assert_eq!(error.to_string(), words(&format!(", but the run was given `alloc::sync::Arc<{deps}>`")));
    let error = app.invoke(input()).context(Other).context(3u8).await.unwrap_err();
    let other = std::any::type_name::<Other>();
    assert_eq!(error.to_string(), words(&format!(", but the run was given `{other}`, `u8`")));
    assert_eq!(app.invoke(input()).context(Deps).await.unwrap().state.log, ["found"]);
}

#[tokio::test]
async fn a_missing_context_is_not_tried_again() {
    let runs = Count::default();
    let counter = runs.clone();
    let asks = move |_: Notes, cx: Context| {
        counter.up();
        async move {
            let _deps = <Runtime<Deps> as superstep::FromContext>::from_context(&cx)?;
            Ok::<_, BoxError>(())
        }
    };
    let options = NodeOptions::new().retry(RetryPolicy::new());
    let app = StateGraph::new().add_node_with("n", asks, options).add_edge(START, "n").compile().unwrap();
    let error = app.invoke(input()).context(Other).await.unwrap_err();
    assert!(error.to_string().contains("Other"), "{error}");
    assert_eq!(runs.get(), 1);
}

/// The warnings of a run, for tests on one thread.
#[derive(Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    pub(crate) async fn of<T>(run: impl Future<Output = T>) -> Vec<String> {
        let warnings = Self::default();
        let _listening = tracing::subscriber::set_default(warnings.clone());
        run.await;
        std::mem::take(&mut *warnings.0.lock().unwrap())
    }
}

#[derive(Default)]
struct Words(Vec<String>);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push(format!("{}={value:?}", field.name()));
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("superstep") && *metadata.level() == Level::WARN
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut words = Words::default();
        event.record(&mut words);
        self.0.lock().unwrap().push(words.0.join(" "));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_context_that_nobody_asked_for_is_named_in_the_log() {
    let app = StateGraph::<Notes>::new().add_node("n", says("n")).add_edge(START, "n").compile().unwrap();
    let warnings = Warnings::of(app.invoke(input()).context(Deps).into_future()).await;
    let deps = std::any::type_name::<Deps>();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("nobody asked for") && warnings[0].contains(deps), "{warnings:?}");
    let warnings =
        Warnings::of(asking().compile().unwrap().invoke(input()).context(Deps).context(Other).into_future()).await;
    assert!(warnings.len() == 1 && warnings[0].contains("Other"), "{warnings:?}");
}

/// Whoever asks for it, however deep: a tool, a task, a graph inside.
#[tokio::test]
async fn nothing_is_said_of_contexts_that_somebody_took_or_that_were_replaced() {
    let child = asking().compile().unwrap();
    let app = StateGraph::new().add_node("child", child).add_edge(START, "child").compile().unwrap();
    assert!(Warnings::of(app.invoke(input()).context(Deps).into_future()).await.is_empty());
    let task: Task<i64, i64> = Task::new("t", async |n: i64, cx: Context| {
        cx.context::<Deps>();
        Ok::<_, BoxError>(n)
    });
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let task = task.clone();
        async move { task.call(&cx, n).await }
    });
    assert!(Warnings::of(flow.compile().invoke(1).context(Deps).into_future()).await.is_empty());
    let app = asking().compile().unwrap();
    assert!(Warnings::of(app.invoke(input()).context(Deps).context(Deps).into_future()).await.is_empty());
}

/// A run that stopped before its end may not have come to the node that asks.
#[tokio::test]
async fn nothing_is_said_of_contexts_before_the_run_came_to_its_end() {
    let mut graph = asking();
    let app = graph.checkpointer(MemorySaver::new()).interrupt_before(["n"]).compile().unwrap();
    assert!(Warnings::of(app.invoke(input()).thread("t").context(Deps).into_future()).await.is_empty());
    assert!(Warnings::of(app.invoke(superstep::GoOn).thread("t").context(Deps).into_future()).await.is_empty());
}

/// As in LangGraph, which warns too.
#[tokio::test]
async fn a_durability_without_a_checkpointer_is_told_of_in_the_log() {
    let graph = || {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node("n", says("n")).add_edge(START, "n");
        graph
    };
    let sync = superstep::Durability::Sync;
    let warnings = Warnings::of(graph().compile().unwrap().invoke(input()).durability(sync).into_future()).await;
    assert!(warnings.len() == 1 && warnings[0].contains("`durability` has no effect"), "{warnings:?}");
    let app = graph().checkpointer(MemorySaver::new()).compile().unwrap();
    assert!(Warnings::of(app.invoke(input()).thread("t").durability(sync).into_future()).await.is_empty());
}

/// A graph that ignores unknown targets says in the log who led to them.
#[tokio::test]
async fn an_ignored_target_is_named_in_the_log_with_where_it_came_from() {
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("plan", says("plan")).add_edge(START, "plan").add_conditional_edges("plan", |_: &Notes| "agnet");
    let app = graph.ignore_unknown_targets(true).compile().unwrap();
    let warnings = Warnings::of(app.invoke(input()).into_future()).await;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in ["a conditional edge of `plan` led to", "agnet", "it is ignored"] {
        assert!(warnings[0].contains(part), "{part}: {warnings:?}");
    }
}
