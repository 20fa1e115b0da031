//! Graphs inside graphs: as deep as the limit they fit on the stack of a thread of tokio, and deeper they are an error.
//!
//! These run in debug builds and in release: `cargo test --release -p superstep --test it nesting::`.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use superstep::{
    BoxError, BuildError, CompiledStateGraph, Context, Durability, Entrypoint, Error, ErrorKind, MAX_LEVELS,
    MappedGraph, MemorySaver, Mode, NodeOptions, RetryPolicy, START, State, StateGraph, Task,
};

#[derive(State, Clone, Default, Debug, Serialize, Deserialize)]
struct Depth {
    /// How many more levels are wanted.
    wanted: usize,
    reached: usize,
}

type App = CompiledStateGraph<Depth>;

/// What the stack of a thread of tokio holds; that of a thread of `std` too.
const STACK: usize = 2 << 20;

/// Runs on a thread of its own with no more stack than a thread of tokio has.
fn on_small_stack(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        thread.unwrap().join().unwrap();
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

/// A graph at the bottom: it has reached one level.
fn bottom() -> App {
    let mut graph = StateGraph::new();
    graph.add_node("in", |_: &Depth| Depth::update().reached(1)).add_edge(START, "in").compile().unwrap()
}

/// `levels` graphs, each inside the next in the way that `inside` says.
fn stacked(levels: usize, inside: impl Fn(App) -> App) -> App {
    (1..levels).fold(bottom(), |graph, _| inside(graph))
}

/// A graph as a node; what it reached is counted after it.
fn as_node(graph: App) -> App {
    let mut outer = StateGraph::new();
    outer
        .add_node("in", graph)
        .add_node("count", |depth: &Depth| Depth::update().reached(depth.reached + 1))
        .add_sequence(["in", "count"])
        .compile()
        .unwrap()
}

/// A graph as a node with all that makes its step a large one: another beside it, retries and a limit of time.
fn as_busy_node(graph: App) -> App {
    let mut outer = StateGraph::new();
    let options = NodeOptions::new().retry(RetryPolicy::new()).timeout(Duration::from_hours(1));
    outer
        .add_node_with("in", graph, options)
        .add_node("beside", |_: &Depth| ())
        .add_node("count", |depth: &Depth| Depth::update().reached(depth.reached + 1))
        .add_edge(START, "in")
        .add_edge(START, "beside")
        .add_edge("in", "count")
        .compile()
        .unwrap()
}

fn as_mapped_node(graph: App) -> App {
    let output = |inner: &Depth| Depth::update().reached(inner.reached + 1);
    let mut outer = StateGraph::new();
    outer.add_node("in", MappedGraph::new(graph, Depth::clone, output)).add_edge(START, "in").compile().unwrap()
}

/// A graph that runs itself inside of itself, as often as its input says.
fn calling_itself(call: fn(Context, usize) -> Calling) -> App {
    let mut graph = StateGraph::new();
    let node = move |depth: Depth, cx: Context| async move {
        let inner = if depth.wanted > 1 { call(cx, depth.wanted - 1).await?.reached } else { 0 };
        Ok::<_, BoxError>(Depth::update().reached(inner + 1))
    };
    let beside = NodeOptions::new().retry(RetryPolicy::new().max_attempts(1));
    graph.add_node_with("in", node, beside).add_node("beside", |_: &Depth| ());
    graph.add_edge(START, "in").add_edge(START, "beside").compile().unwrap()
}

type Calling = Pin<Box<dyn Future<Output = Result<Depth, BoxError>> + Send>>;

/// Inside the run, with the context.
fn by_context(cx: Context, wanted: usize) -> Calling {
    Box::pin(async move { Ok(cx.invoke(&calling_itself(by_context), Depth::update().wanted(wanted)).await?.state) })
}

/// As a run of its own, that is driven where it is awaited all the same.
fn by_itself(_: Context, wanted: usize) -> Calling {
    Box::pin(async move { Ok(calling_itself(by_itself).invoke(Depth::update().wanted(wanted)).await?.state) })
}

/// A function that calls a task that runs an entrypoint that calls the function.
fn by_tasks(cx: Context, wanted: usize) -> Calling {
    let task = Task::new("call", async |wanted: usize| {
        let flow = Entrypoint::new("flow", async |wanted: usize, cx: Context| {
            let out = cx.invoke(&calling_itself(by_tasks), Depth::update().wanted(wanted)).await?;
            Ok::<_, BoxError>(out.state.reached)
        });
        Ok::<_, BoxError>(flow.compile().invoke(wanted).await?.get::<usize>()?)
    });
    Box::pin(async move { Ok(Depth { wanted, reached: task.call(&cx, wanted).await? }) })
}

async fn reached(app: &App, wanted: usize) -> Result<usize, Error> {
    Ok(app.invoke(Depth::update().wanted(wanted)).await?.state.reached)
}

async fn streamed(app: &App, wanted: usize) -> Result<usize, Error> {
    let input = Depth::update().wanted(wanted);
    let mut events = app.stream(input).modes([Mode::Updates, Mode::Messages, Mode::Tasks]).subgraphs().start();
    while let Some(event) = events.next().await {
        event?;
    }
    Ok(events.output().unwrap().state.reached)
}

/// An app with `levels` levels, and with the input that makes it so many.
fn apps(levels: usize) -> [(&'static str, App); 5] {
    [
        ("nodes", stacked(levels, as_node)),
        ("busy nodes", stacked(levels, as_busy_node)),
        ("mapped nodes", stacked(levels, as_mapped_node)),
        ("calls by context", calling_itself(by_context)),
        ("calls by itself", calling_itself(by_itself)),
    ]
}

#[test]
fn graphs_run_as_deep_as_the_limit_on_a_small_stack() {
    on_small_stack(|| {
        for (name, app) in apps(MAX_LEVELS) {
            assert_eq!(block_on(reached(&app, MAX_LEVELS)).unwrap(), MAX_LEVELS, "{name}");
            assert_eq!(block_on(streamed(&app, MAX_LEVELS)).unwrap(), MAX_LEVELS, "{name}, streamed");
            assert_eq!(app.invoke(Depth::update().wanted(MAX_LEVELS)).blocking().unwrap().state.reached, MAX_LEVELS);
        }
    });
}

#[test]
fn graphs_run_as_deep_as_the_limit_on_the_threads_of_tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for (name, app) in apps(MAX_LEVELS) {
        let run = async move { (reached(&app, MAX_LEVELS).await.unwrap(), streamed(&app, MAX_LEVELS).await.unwrap()) };
        let found = runtime.block_on(async { tokio::spawn(run).await.unwrap() });
        assert_eq!(found, (MAX_LEVELS, MAX_LEVELS), "{name}");
    }
}

#[test]
fn graphs_are_saved_looked_at_drawn_and_dropped_as_deep_as_the_limit() {
    on_small_stack(|| {
        let inner = stacked(MAX_LEVELS - 1, as_node);
        let mut graph = StateGraph::new();
        graph.add_node("in", inner).add_edge(START, "in").checkpointer(MemorySaver::new());
        let app = graph.interrupt_after(["in"]).compile().unwrap();
        for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
            let thread = app.thread(format!("{durability:?}"));
            let out = block_on(thread.invoke(Depth::update().wanted(1)).durability(durability).into_future()).unwrap();
            assert_eq!(out.state.reached, MAX_LEVELS - 1, "{durability:?}");
            block_on(thread.state_with_subgraphs()).unwrap();
            block_on(thread.history()).unwrap();
        }
        assert!(app.draw_expanded(MAX_LEVELS).to_mermaid().contains("in"));
    });
}

#[test]
fn a_question_at_the_bottom_is_looked_at_and_answered() {
    on_small_stack(|| {
        let ask = |_: Depth, cx: Context| async move {
            Ok::<_, BoxError>(Depth::update().reached(cx.interrupt::<usize>("how deep?")?))
        };
        let mut lowest = StateGraph::new();
        let lowest = lowest.add_node("in", ask).add_edge(START, "in").compile().unwrap();
        let inner = (2..MAX_LEVELS).fold(lowest, |graph, _| as_node(graph));
        let mut graph = StateGraph::new();
        let app = graph.add_node("in", inner).add_edge(START, "in").checkpointer(MemorySaver::new()).compile().unwrap();
        let thread = app.thread("t");
        assert_eq!(block_on(thread.invoke(Depth::update().wanted(1)).into_future()).unwrap().interrupts.len(), 1);
        assert_eq!(block_on(thread.state_with_subgraphs()).unwrap().interrupts.len(), 1);
        let out = block_on(thread.invoke(superstep::Command::new().resume(1)).into_future()).unwrap();
        assert_eq!(out.state.reached, MAX_LEVELS - 1);
    });
}

/// They ended the process: the stack of the thread that drove them overflowed between 71 and 120 levels.
#[test]
fn a_graph_that_runs_itself_without_end_is_an_error_that_names_the_limit_and_the_way_out() {
    let way_out = "would run inside 32 others, which is the limit; end the recursion earlier, make it a loop of one graph, \
                   or start it as a run of its own with `tokio::spawn`";
    on_small_stack(|| {
        for (call, place) in [(by_context as fn(_, _) -> _, " in node `in`"), (by_itself, "")] {
            let error = block_on(reached(&calling_itself(call), 1_000)).unwrap_err();
            assert_eq!((error.kind(), error.node()), (ErrorKind::Nesting, Some("in")));
            assert_eq!(error.to_string(), format!("graph `graph`{place} {way_out}"));
            let one_too_many = block_on(reached(&calling_itself(call), MAX_LEVELS + 1)).unwrap_err();
            assert_eq!(one_too_many.to_string(), error.to_string());
        }
        let error = block_on(reached(&calling_itself(by_tasks), 1_000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Nesting);
    });
}

#[test]
fn what_a_node_spawns_begins_anew() {
    fn spawned(_: Context, wanted: usize) -> Calling {
        Box::pin(async move {
            let app = calling_itself(spawned);
            Ok(tokio::spawn(app.invoke(Depth::update().wanted(wanted)).into_future()).await??.state)
        })
    }
    on_small_stack(|| assert_eq!(block_on(reached(&calling_itself(spawned), 100)).unwrap(), 100));
}

#[test]
fn a_graph_that_holds_too_many_levels_is_not_compiled() {
    on_small_stack(|| {
        let mut graph = StateGraph::<Depth>::new();
        graph.add_node("in", stacked(MAX_LEVELS, as_node)).add_node("mapped", {
            MappedGraph::new(stacked(MAX_LEVELS, as_mapped_node), Depth::clone, |_: &Depth| ())
        });
        let mistakes = graph.add_edge(START, "in").add_edge(START, "mapped").compile().unwrap_err();
        let too_deep = |node: &str| BuildError::TooDeep { node: node.to_owned(), levels: 32, limit: 32 };
        assert_eq!(mistakes.errors(), [too_deep("in"), too_deep("mapped")]);
        assert_eq!(
            mistakes.errors()[0].to_string(),
            "node `in` holds graphs inside graphs 32 levels deep, with this one 32 are the limit; call the inner ones one \
             after another, or start them as runs of their own"
        );
    });
}

#[test]
fn a_run_can_be_dropped_at_the_bottom() {
    on_small_stack(|| {
        let stuck = async |_: Depth| std::future::pending::<()>().await;
        let mut lowest = StateGraph::<Depth>::new();
        let lowest = lowest.add_node("in", stuck).add_edge(START, "in").compile().unwrap();
        let app = (1..MAX_LEVELS).fold(lowest, |graph, _| as_busy_node(graph));
        let paused = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let run = async {
            tokio::time::timeout(Duration::from_secs(1), app.invoke(Depth::update().wanted(1)).into_future()).await
        };
        assert!(paused.block_on(run).is_err(), "it is stuck");
    });
}
