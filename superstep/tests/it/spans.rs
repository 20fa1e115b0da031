//! The spans of `tracing` that a run makes: run, step, task, and what is called inside.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use superstep::{BoxError, Context, Entrypoint, NodeOptions, RetryPolicy, START, StateGraph, Task};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;

use crate::support::{Count, Notes, a_b_c, says};

/// Every span as the way to it; for tests on one thread.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    spans: Vec<(String, &'static Metadata<'static>)>,
    entered: Vec<u64>,
}

impl Recorder {
    /// The spans that this run makes, in the order of names.
    async fn of<T>(run: impl Future<Output = T>) -> Vec<String> {
        let recorder = Self::default();
        let _listening = tracing::subscriber::set_default(recorder.clone());
        run.await;
        let mut ways: Vec<String> = recorder.0.lock().unwrap().spans.iter().map(|(way, _)| way.clone()).collect();
        ways.sort();
        ways
    }
}

/// The fields that tell one span from another.
#[derive(Default)]
struct Told(BTreeMap<&'static str, String>);

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if !["thread", "namespace", "tasks"].contains(&field.name()) {
            self.0.insert(field.name(), format!("{value:?}").replace('"', ""));
        }
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("superstep")
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut told = Told::default();
        span.record(&mut told);
        let mut recorded = self.0.lock().unwrap();
        let parent = span.parent().map(Id::into_u64).or(recorded.entered.last().copied());
        let before = parent.map(|id| format!("{} > ", recorded.spans[id as usize - 1].0)).unwrap_or_default();
        let fields: Vec<String> = told.0.into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        recorded.spans.push((format!("{before}{} {}", span.metadata().name(), fields.join(" ")), span.metadata()));
        Id::from_u64(recorded.spans.len() as u64)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(id.into_u64());
    }
    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.pop();
    }
    fn current_span(&self) -> Current {
        let recorded = self.0.lock().unwrap();
        match recorded.entered.last() {
            Some(id) => Current::new(Id::from_u64(*id), recorded.spans[*id as usize - 1].1),
            None => Current::none(),
        }
    }
}

#[tokio::test]
async fn a_run_is_around_its_steps_and_a_step_around_its_tasks() {
    let app = a_b_c().name("abc").compile().unwrap();
    let spans = Recorder::of(app.invoke(Notes::update().topic("t")).into_future()).await;
    let task = |step, node| format!("run graph=abc > step step={step} > task attempt=1 node={node} step={step}");
    let mut expected = vec!["run graph=abc".to_owned()];
    for (step, node) in [(1, "a"), (2, "b"), (3, "c")] {
        expected.extend([format!("run graph=abc > step step={step}"), task(step, node)]);
    }
    assert_eq!(spans, expected);
}

#[tokio::test]
async fn a_path_is_in_the_span_of_its_nodes_task() {
    for (beside, options) in
        [(false, NodeOptions::new()), (true, NodeOptions::new()), (false, NodeOptions::new().retry(RetryPolicy::new()))]
    {
        let mut graph = StateGraph::new();
        graph.add_node_with("a", says("a"), options).add_node("b", says("b")).add_node("z", says("z"));
        graph.add_edge(START, "a").add_conditional_edges("a", async |_: Notes, _: Context| {
            let _in_path = tracing::debug_span!(target: "superstep_test", "path");
            "z"
        });
        if beside {
            graph.add_edge(START, "b");
        }
        let app = graph.name("g").compile().unwrap();
        let spans = Recorder::of(app.invoke(Notes::update().topic("t")).into_future()).await;
        let path = "run graph=g > step step=1 > task attempt=1 node=a step=1 > path ";
        assert!(spans.iter().any(|span| span == path), "{spans:#?}");
    }
}

/// A second attempt starts where the task was sent to wait, far from its step.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_comes_later_is_in_its_step_too() {
    let tries = Count::default();
    let fails_once = move |_: Notes| {
        let first = tries.up() == 0;
        async move {
            tokio::task::yield_now().await;
            if first { Err::<(), BoxError>("not yet".into()) } else { Ok(()) }
        }
    };
    let options = NodeOptions::new().retry(RetryPolicy::new());
    let mut graph = StateGraph::new();
    graph.add_node_with("a", fails_once, options).add_node("b", says("b"));
    let app = graph.add_edge(START, "a").add_edge(START, "b").name("g").compile().unwrap();
    let spans = Recorder::of(app.invoke(Notes::update().topic("t")).into_future()).await;
    let task = |attempt, node| format!("run graph=g > step step=1 > task attempt={attempt} node={node} step=1");
    assert_eq!(
        spans,
        ["run graph=g".to_owned(), "run graph=g > step step=1".into(), task(1, "a"), task(1, "b"), task(2, "a")]
    );
}

#[tokio::test]
async fn a_graph_inside_is_a_run_inside_its_task() {
    let inner = StateGraph::new().add_node("x", says("x")).add_edge(START, "x").name("inner").compile().unwrap();
    let app = StateGraph::new().add_node("child", inner).add_edge(START, "child").name("outer").compile().unwrap();
    let spans = Recorder::of(app.invoke(Notes::update().topic("t")).into_future()).await;
    let inside = "run graph=outer > step step=1 > task attempt=1 node=child step=1 > run attempt=1 graph=inner";
    assert_eq!(spans.last().unwrap(), &format!("{inside} > step step=1 > task attempt=1 node=x step=1"));
}

#[tokio::test]
async fn a_call_of_a_function_is_inside_the_function_that_calls() {
    let double = Task::new("double", async |n: i64| Ok::<_, BoxError>(n * 2));
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let double = double.clone();
        async move { double.call(&cx, n).await }
    });
    let flow = flow.compile();
    let spans = Recorder::of(flow.invoke(2).into_future()).await;
    assert_eq!(
        spans.last().unwrap(),
        "run graph=flow > step step=0 > task attempt=1 node=flow step=0 > call attempt=1 step=0 task=double"
    );
}

/// Graphs inside say them too.
#[tokio::test]
async fn runs_with_tags_say_so() {
    let inner = StateGraph::new().add_node("x", says("x")).add_edge(START, "x").name("inner").compile().unwrap();
    let app = StateGraph::new().add_node("child", inner).add_edge(START, "child").name("outer").compile().unwrap();
    let spans = Recorder::of(app.invoke(Notes::update().topic("t")).tag("a").tag("b").into_future()).await;
    assert_eq!(spans[0], "run graph=outer tags=a,b");
    assert!(spans.last().unwrap().contains("run attempt=1 graph=inner tags=a,b"), "{spans:?}");
}
