//! Watching a run changes nothing in it, and neither does saving it.
//!
//! Graphs made at random are run unwatched and watched, unsaved and with each durability: results and errors must be
//! equal, and of those that are saved alike the histories and the saved bytes too. On one thread: with several, whether a
//! sibling had ended when a task failed is chance.

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use superstep::{
    Checkpointer, CompiledStateGraph, Durability, Error, EventStream, ListQuery, MemorySaver, Mode, Output,
    SavedCheckpoint, TaskRecord,
};
use tokio::task::unconstrained;

use crate::support::random_graphs::{Board, Spec, histories_inside, inputs, spec, typed, typed_graph};
use crate::support::{history, same_items};

const MODES: [Mode; 7] =
    [Mode::Values, Mode::Updates, Mode::Messages, Mode::Custom, Mode::Tasks, Mode::Checkpoints, Mode::Debug];

/// How many steps a run may take.
const LIMIT: usize = 30;

fn ended(result: Result<&Output<Board>, &Error>) -> Value {
    match result {
        Ok(out) => json!({ "output": out.to_json(), "state": out.state }),
        Err(error) => {
            json!({ "error": error.to_string(), "kind": format!("{:?}", error.kind()), "node": error.node() })
        }
    }
}

async fn watched(mut stream: EventStream<Board>) -> Value {
    while let Some(event) = stream.next().await {
        if let Err(error) = event {
            return ended(Err(&error));
        }
    }
    ended(Ok(stream.output().expect("a stream that ends well has an output")))
}

/// How the runs of one thread ended.
async fn run(app: &CompiledStateGraph<Board>, spec: &Spec, durability: Durability, watch: bool) -> Vec<Value> {
    let mut all = Vec::new();
    for input in inputs(spec) {
        let input = typed(&input);
        all.push(if watch {
            let stream = app.stream(input).thread("t").recursion_limit(LIMIT).durability(durability);
            watched(stream.modes(MODES).subgraphs().start()).await
        } else {
            ended(app.invoke(input).thread("t").recursion_limit(LIMIT).durability(durability).await.as_ref())
        });
    }
    all
}

/// What is saved of a thread, without ids and times.
async fn saved(saver: &MemorySaver) -> Vec<Value> {
    let mut all = Vec::new();
    for namespace in saver.namespaces("t").await.expect("memory answers") {
        for found in saver.list("t", &namespace, &ListQuery::default()).await.expect("memory answers") {
            all.push((nodes_of(&namespace), found.record().id(), bytes(&found)));
        }
    }
    // In the order in which they were made: but how graphs beside each other take turns is chance.
    all.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    all.into_iter().map(|(nodes, _, bytes)| json!([nodes, bytes])).collect()
}

/// The nodes that a namespace names, without the ids of their tasks.
fn nodes_of(namespace: &str) -> Vec<String> {
    namespace.split('|').map(|level| level.split(':').next().unwrap_or_default().to_owned()).collect()
}

fn bytes(saved: &SavedCheckpoint) -> Value {
    let record = saved.record();
    let tail = |tail: &[superstep::Blob]| tail.iter().map(|bytes| hex(bytes)).collect::<Vec<_>>();
    let fields = saved.fields().iter().map(|f| json!([f.name(), f.whole().map(|whole| hex(whole)), tail(f.tail())]));
    // They are kept by id, which is chance.
    let mut writes: Vec<Value> = saved.writes().iter().map(task_bytes).collect();
    writes.sort_by_key(|task| task["path"].to_string());
    json!({
        "source": record.source().to_string(), "step": record.step(), "metadata": record.metadata(),
        "control": hex(record.control()), "fields": fields.collect::<Vec<_>>(),
        "writes": writes,
    })
}

fn hex(bytes: &[u8]) -> String {
    format!("{bytes:02x?}")
}

fn task_bytes(task: &TaskRecord) -> Value {
    let writes = task.writes().iter().map(|w| json!([w.channel(), hex(w.value()), w.is_overwrite()]));
    json!({
        "path": task.path(), "error": task.error(), "handled": task.is_handled(), "writes": writes.collect::<Vec<_>>(),
    })
}

/// What can be seen of a graph that is saved in this way, from outside and in the saver.
struct Seen {
    runs: Vec<Value>,
    kept: Value,
}

async fn seen(spec: &Spec, durability: Durability, watch: bool) -> Seen {
    let saver = MemorySaver::new();
    let app = typed_graph(spec).checkpointer(saver.clone()).compile().expect("the spec is a graph");
    let runs = run(&app, spec, durability, watch).await;
    let thread = app.thread("t");
    let history = history(&thread).await.expect("the history can be read");
    let kept = json!({ "history": history, "inside": histories_inside(&thread).await, "saved": saved(&saver).await });
    Seen { runs, kept }
}

async fn compare(spec: &Spec) -> Result<(), TestCaseError> {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let unwatched = unconstrained(seen(spec, durability, false)).await;
        let watched = unconstrained(seen(spec, durability, true)).await;
        prop_assert_eq!(&unwatched.runs, &watched.runs, "how runs with {:?} end", durability);
        for part in ["history", "inside", "saved"] {
            same_items(&unwatched.kept[part], &watched.kept[part], &format!("{part} with {durability:?}"))?;
        }
        // A graph inside that keeps one history remembers its last call only if it is saved.
        if spec.keeps_histories() {
            continue;
        }
        let first = Spec { inputs: spec.inputs[..1].to_vec(), ..spec.clone() };
        let app = typed_graph(spec).compile().expect("the spec is a graph");
        for watch in [false, true] {
            let unsaved = unconstrained(run(&app, &first, durability, watch)).await;
            prop_assert_eq!(&unsaved[..], &unwatched.runs[..1], "how the first run ends, watched: {}", watch);
        }
    }
    Ok(())
}

#[test]
fn watching_or_saving_a_run_changes_nothing_in_it() {
    let cases = std::env::var("SUPERSTEP_RANDOM_GRAPHS").ok().map_or(500, |n| n.parse().expect("a number"));
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let outcome = runner.run(&spec(), |spec| runtime.block_on(compare(&spec)));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
