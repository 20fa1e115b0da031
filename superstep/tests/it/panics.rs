//! Whatever panics of what a run was given, the run ends with an error that says so, and its thread can go on.
//!
//! Reducers have a file of their own, `reducer_panics.rs`.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Waker};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use superstep::{
    BoxError, CachePolicy, CheckpointError, Context, Durability, Entrypoint, Error, ErrorKind, MappedGraph,
    MemoryCache, MemorySaver, NodeOptions, RetryPolicy, START, SavedFields, Send, Sent, State, StateGraph, Task,
};

use crate::support::hooked::{Call, Hook, Hooked, Serving};
use crate::support::{Notes, a_b_c, says};

/// What of a value panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Clone,
    Drop,
    Serialize,
    Deserialize,
    Equal,
}

static ARMED: Mutex<BTreeSet<(&str, Fault)>> = Mutex::new(BTreeSet::new());

fn arm(name: &'static str, fault: Fault) {
    ARMED.lock().unwrap().insert((name, fault));
}

fn disarm(name: &'static str) {
    ARMED.lock().unwrap().retain(|(armed, _)| *armed != name);
}

/// A value that panics as long as it is armed, each time; each test has one of its own name.
#[derive(Default, Debug)]
struct Bomb(String);

impl Bomb {
    fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    fn tick(&self, fault: Fault) {
        let is_armed = ARMED.lock().unwrap().iter().any(|(name, armed)| *name == self.0 && *armed == fault);
        assert!(!is_armed, "{fault:?} of a bomb");
    }
}

impl Clone for Bomb {
    fn clone(&self) -> Self {
        self.tick(Fault::Clone);
        Self(self.0.clone())
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        self.tick(Fault::Drop);
    }
}

impl PartialEq for Bomb {
    fn eq(&self, other: &Self) -> bool {
        self.tick(Fault::Equal);
        self.0 == other.0
    }
}

impl Serialize for Bomb {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        self.tick(Fault::Serialize);
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bomb {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bomb = Self(String::deserialize(deserializer)?);
        bomb.tick(Fault::Deserialize);
        Ok(bomb)
    }
}

#[derive(State, Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
struct Cargo {
    bomb: Bomb,
    #[state(any)]
    latest: Bomb,
    #[state(append)]
    log: Vec<String>,
}

/// Waits for its turn, so that the step's tasks run by themselves.
async fn yielding() {
    tokio::task::yield_now().await;
}

/// A run that waits for ever fails instead.
async fn ended<T>(run: impl IntoFuture<Output = Result<T, Error>>) -> Error {
    let run = tokio::time::timeout(Duration::from_hours(1), run.into_future()).await;
    run.expect("the run waits for ever").err().expect("it panicked")
}

fn check(error: &Error, node: Option<&str>, words: &str) {
    assert_eq!((error.kind(), error.node(), error.to_string().as_str()), (ErrorKind::Panic, node, words));
}

/// A graph of `work` beside `other`; `before` comes first and gives `bomb` a value.
fn beside(name: &'static str) -> StateGraph<Cargo> {
    let mut graph = StateGraph::new();
    graph
        .add_node("before", move |_: &Cargo| Cargo::update().bomb(Bomb::new(name)).log(["before"]))
        .add_node("other", async |_: Arc<Cargo>| {
            yielding().await;
            Cargo::update().log(["other"])
        })
        .add_edge(START, "before")
        .add_edge("before", "work")
        .add_edge("before", "other");
    graph
}

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// The run waited for ever for the task: its future was gone with the panic, and the sender of the others was still there.
#[tokio::test(start_paused = true)]
async fn a_retry_on_that_panics_is_an_error_of_its_node() {
    let policy = || RetryPolicy::new().retry_on(|error| panic!("asked about {:?}", error.kind()));
    let words = "the `retry_on` of node `work` panicked in step 1: asked about Node; \
                 it was asked about \"node `work` failed in step 1: no luck\"";
    for alone in [true, false] {
        let mut graph = StateGraph::<Notes>::new();
        let fail = async |_: Notes| {
            yielding().await;
            Err::<(), _>("no luck")
        };
        graph.add_node_with("work", fail, NodeOptions::new().retry(policy())).add_edge(START, "work");
        if !alone {
            graph.add_node("other", says("other")).add_edge(START, "other");
        }
        check(&ended(graph.compile().unwrap().invoke(Notes::update().total(1))).await, Some("work"), words);
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_on_of_a_task_that_panics_is_an_error_of_the_task() {
    let task = Task::new("fetch", async |_: i64| Err::<i64, BoxError>("no luck".into()));
    let task = task.retry(RetryPolicy::new().retry_on(|_| panic!("no idea")));
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let task = task.clone();
        async move { task.call(&cx, n).await }
    });
    let words = "the `retry_on` of task `fetch` panicked in step 0: no idea; \
                 it was asked about \"task `fetch` failed in step 0: no luck\"";
    check(&ended(flow.compile().invoke(1)).await, Some("fetch"), words);
}

/// Of a task that ran by itself and has conditional edges: the run waited for ever.
#[tokio::test(start_paused = true)]
async fn a_clone_that_panics_in_a_parallel_step_is_an_error_of_its_node() {
    const NAME: &str = "clone in a parallel step";
    let mut graph = beside(NAME);
    graph
        .add_node("work", async |_: Arc<Cargo>| {
            yielding().await;
            arm(NAME, Fault::Clone);
            Cargo::update().log(["work"])
        })
        .add_conditional_edges("work", |_: &Cargo| superstep::END);
    let words = "`Clone` of the state panicked: Clone of a bomb (in what `work` wrote in step 2)";
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    for durability in MODES {
        let thread = app.thread(format!("{durability:?}"));
        check(&ended(thread.invoke(()).durability(durability)).await, Some("work"), words);
        disarm(NAME);
        // As with any conditional edge that fails, the node is done and keeps what it wrote.
        assert_eq!(thread.state().await.unwrap().state.log.first().map(String::as_str), Some("before"));
        thread.update(Cargo::update().log(["by hand"])).as_node("other").await.unwrap();
    }
}

/// A value is dropped when another one takes its place.
#[tokio::test(start_paused = true)]
async fn a_value_that_panics_when_it_is_replaced_is_an_error_of_its_field() {
    const NAME: &str = "drop of a value";
    let write = |wait: bool| {
        move |_: Arc<Cargo>| async move {
            if wait {
                yielding().await;
            }
            arm(NAME, Fault::Drop);
            Cargo::update().bomb(Bomb::new("another")).log(["work"])
        }
    };
    for wait in [false, true] {
        let mut graph = StateGraph::new();
        graph
            .add_node("before", |_: &Cargo| Cargo::update().bomb(Bomb::new(NAME)).log(["before"]))
            .add_node("work", write(wait))
            .add_sequence(["before", "work"]);
        let words = "field `bomb`: its value panicked: Drop of a bomb (in what `work` wrote in step 2)";
        for durability in MODES {
            let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
            check(&ended(app.invoke(()).thread("t").durability(durability)).await, Some("work"), words);
            disarm(NAME);
            assert_eq!(
                app.thread("t").state().await.unwrap().state.log,
                ["before"].map(str::to_owned)[..usize::from(durability != Durability::Exit)]
            );
        }
    }
}

/// Two that panic when they are dropped: dropped together they would end the process.
#[tokio::test(start_paused = true)]
async fn values_and_payloads_that_panic_when_they_are_dropped_do_not_end_the_process() {
    const NAME: &str = "drop of many";
    let bomb = || Bomb::new(NAME);
    let write = move |_: Arc<Cargo>| async move {
        yielding().await;
        Cargo::update().latest(bomb()).log(["work"])
    };
    let mut graph = StateGraph::new();
    graph
        .add_node("sends", move |_: &Cargo| {
            superstep::Command::new().goto_all((0..3).map(|_| Send::new("sent", bomb())))
        })
        .add_node("sent", async |Sent(_): Sent<Arc<str>>| ())
        .add_node("one", write)
        .add_node("two", write)
        .add_node("last", |_: &Cargo| {
            arm(NAME, Fault::Drop);
            Err::<(), _>("no luck")
        });
    graph.add_edge(START, "sends").add_edge(START, "one").add_edge(START, "two").add_edge(START, "last");
    let app = graph.compile().unwrap();
    let error = ended(app.invoke(())).await;
    assert!([ErrorKind::Panic, ErrorKind::Node].contains(&error.kind()), "{error}");
    disarm(NAME);
}

/// The task of the send ran by itself and was gone with the panic: the run waited for ever.
#[tokio::test(start_paused = true)]
async fn a_payload_that_panics_when_it_is_dropped_is_an_error_of_the_node_that_had_it() {
    const NAME: &str = "drop of a payload";
    let mut graph = StateGraph::<Cargo>::new();
    graph
        .add_node("sends", |_: &Cargo| {
            superstep::Command::new().goto_all((0..3).map(|_| Send::new("work", Bomb::new(NAME))))
        })
        .add_node("work", async |Sent(bomb): Sent<Bomb>| {
            yielding().await;
            let name = bomb.0.clone();
            arm(NAME, Fault::Drop);
            Cargo::update().log([name])
        })
        .add_edge(START, "sends");
    let error = ended(graph.compile().unwrap().invoke(())).await;
    check(&error, Some("work"), "node `work` panicked in step 2: Drop of a bomb");
    disarm(NAME);
}

#[tokio::test(start_paused = true)]
async fn a_future_that_panics_when_it_is_dropped_is_an_error_of_its_node() {
    const NAME: &str = "drop of a future";
    let stuck = async |_: Arc<Cargo>| {
        let _bomb = Bomb::new(NAME);
        arm(NAME, Fault::Drop);
        std::future::pending::<()>().await;
    };
    let mut graph = StateGraph::<Cargo>::new();
    let limit = NodeOptions::new().timeout(Duration::from_secs(1));
    graph.add_node_with("work", stuck, limit).add_edge(START, "work");
    let words = "a value of node `work` panicked in step 1, outside of the node's own code: Drop of a bomb";
    check(&ended(graph.compile().unwrap().invoke(())).await, Some("work"), words);
    disarm(NAME);
    // Beside another one that fails, it is dropped with its task, and the failure stands.
    let mut graph = StateGraph::<Cargo>::new();
    graph.add_node("work", stuck).add_edge(START, "work");
    graph.add_node("fail", async |_: Arc<Cargo>| {
        yielding().await;
        Err::<(), _>("no luck")
    });
    let error = ended(graph.add_edge(START, "fail").compile().unwrap().invoke(())).await;
    assert_eq!((error.kind(), error.node()), (ErrorKind::Node, Some("fail")));
    yielding().await;
    disarm(NAME);
    // A run that nobody waits for any more has nobody to tell.
    let app = graph.compile().unwrap();
    let run = tokio::time::timeout(Duration::from_secs(1), {
        let mut graph = StateGraph::<Cargo>::new();
        graph.add_node("work", stuck).add_edge(START, "work").compile().unwrap().invoke(()).into_future()
    });
    assert!(run.await.is_err(), "it is stuck");
    disarm(NAME);
    drop(app);
}

/// The panic went through `invoke` to its caller.
#[tokio::test(start_paused = true)]
async fn values_that_panic_when_they_are_saved_are_errors_that_name_their_field() {
    const NAME: &str = "serialize";
    for (wait, durability) in [false, true].into_iter().flat_map(|wait| MODES.map(|durability| (wait, durability))) {
        let mut graph = beside(NAME);
        graph.add_node("work", move |_: Arc<Cargo>| async move {
            if wait {
                yielding().await;
            }
            arm(NAME, Fault::Serialize);
            Cargo::update().bomb(Bomb::new(NAME)).log(["work"])
        });
        let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
        let thread = app.thread("t");
        let error = ended(thread.invoke(()).durability(durability)).await;
        assert_eq!(error.kind(), ErrorKind::Checkpoint);
        let words = error.to_string();
        assert!(words.contains("field `bomb`: its `Serialize` panicked: Serialize of a bomb"), "{words}");
        disarm(NAME);
        assert!(thread.state().await.unwrap().state.log.iter().all(|line| line != "work"));
        let again = thread.invoke(Cargo::update().log(["again"])).await;
        assert!(again.is_err(), "`work` arms it each time");
        disarm(NAME);
    }
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_panics_when_it_is_saved_is_an_error_that_names_where_it_goes() {
    const NAME: &str = "serialize a payload";
    let mut graph = StateGraph::<Cargo>::new();
    graph
        .add_node("sends", |_: &Cargo| {
            arm(NAME, Fault::Serialize);
            superstep::Command::new().goto(Send::new("work", Bomb::new(NAME)))
        })
        .add_node("work", async |Sent(_): Sent<Bomb>| Cargo::update().log(["work"]))
        .add_edge(START, "sends");
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    for durability in [Durability::Sync, Durability::Async] {
        let error = ended(app.invoke(()).thread("t").durability(durability)).await;
        disarm(NAME);
        let words = error.to_string();
        assert!(words.contains("its `Serialize` panicked: Serialize of a bomb"), "{durability:?}: {words}");
    }
}

#[tokio::test(start_paused = true)]
async fn values_that_panic_when_they_are_read_are_errors_that_name_their_field() {
    const NAME: &str = "deserialize";
    let mut graph = beside(NAME);
    graph.add_node("work", |_: &Cargo| Cargo::update().log(["work"]));
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    let thread = app.thread("t");
    thread.invoke(()).await.unwrap();
    arm(NAME, Fault::Deserialize);
    let words = "field `bomb`: its `Deserialize` panicked: Deserialize of a bomb";
    let errors = [
        ended(thread.state()).await,
        ended(thread.history()).await,
        ended(thread.invoke(())).await,
        ended(thread.update(Cargo::update().log(["by hand"])).as_node("work")).await,
        ended(thread.clear_tasks()).await,
    ];
    for error in errors {
        assert!(error.to_string().contains(words), "{error}");
    }
    disarm(NAME);
    assert_eq!(thread.invoke(()).await.unwrap().state.log.len(), 6);
}

/// An error without words.
#[derive(Debug)]
struct Speechless;

impl fmt::Display for Speechless {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Speechless {}

#[tokio::test(start_paused = true)]
async fn an_error_whose_words_panic_is_an_error_all_the_same() {
    let words = "node `fail` failed in step 1: an error whose `Display` panicked: no words";
    for alone in [true, false] {
        let mut graph = StateGraph::<Notes>::new();
        let fail = async |_: Notes| {
            yielding().await;
            Err::<(), BoxError>(Speechless.into())
        };
        graph.add_node_with("fail", fail, NodeOptions::new().retry(RetryPolicy::new())).add_edge(START, "fail");
        if !alone {
            graph.add_node("other", says("other")).add_edge(START, "other");
        }
        let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
        let error = ended(app.invoke(Notes::update().total(1)).thread("t")).await;
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Node, words));
        assert_eq!(format!("{error:?}"), words);
        assert!(error.downcast_ref::<Speechless>().is_some());
        let tasks = app.thread("t").state().await.unwrap().tasks;
        let failed = tasks.iter().find(|task| task.name == "fail").and_then(|task| task.error.clone());
        assert_eq!(failed.unwrap().message, "an error whose `Display` panicked: no words");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_key_that_panics_is_an_error_of_its_node() {
    let mut graph = StateGraph::<Notes>::new();
    let cached =
        NodeOptions::new().cache(CachePolicy::by(|notes: &Notes| -> String { panic!("{} keys", notes.total) }));
    graph.add_node_with("work", says("work"), cached).add_edge(START, "work").cache(MemoryCache::new());
    let error = ended(graph.compile().unwrap().invoke(Notes::update().total(2))).await;
    check(&error, Some("work"), "the cache key of node `work` panicked in step 1: 2 keys");
}

#[tokio::test(start_paused = true)]
async fn a_comparison_and_the_mappings_of_a_graph_that_panic_are_errors_of_their_node() {
    const NAME: &str = "equal";
    let mut graph = StateGraph::<Cargo>::new();
    graph.add_node("work", async |cargo: Cargo| {
        arm(NAME, Fault::Equal);
        cargo
    });
    let app = graph.add_edge(START, "work").compile().unwrap();
    let error = ended(app.invoke(Cargo::update().bomb(Bomb::new(NAME)))).await;
    check(&error, Some("work"), "node `work` panicked in step 1: Equal of a bomb");
    disarm(NAME);
    let inner = || a_b_c().compile().unwrap();
    let into =
        MappedGraph::new(inner(), |_: &Cargo| -> superstep::Update<Notes> { panic!("no way in") }, |_: &Notes| ());
    let out = MappedGraph::new(
        inner(),
        |_: &Cargo| Notes::update(),
        |_: &Notes| -> superstep::Update<Cargo> { panic!("no way out") },
    );
    for (words, graph) in [
        (
            "node `in` panicked in step 1: no way in",
            StateGraph::new().add_node("in", into).add_edge(START, "in").compile(),
        ),
        (
            "node `in` panicked in step 1: no way out",
            StateGraph::new().add_node("in", out).add_edge(START, "in").compile(),
        ),
    ] {
        check(&ended(graph.unwrap().invoke(())).await, Some("in"), words);
    }
}

#[tokio::test(start_paused = true)]
async fn an_input_and_an_answer_that_panic_when_they_are_encoded_are_refused() {
    const NAME: &str = "input";
    arm(NAME, Fault::Serialize);
    let flow = Entrypoint::new("flow", async |_: String| "done").checkpointer(MemorySaver::new()).compile();
    let error = ended(flow.invoke(Bomb::new(NAME)).thread("t")).await;
    assert_eq!(error.to_string(), "the input cannot be encoded: its `Serialize` panicked: Serialize of a bomb");
    let app = a_b_c().checkpointer(MemorySaver::new()).compile().unwrap();
    let answer = superstep::Command::new().resume(Bomb::new(NAME));
    let error = ended(app.invoke(answer).thread("t")).await;
    assert_eq!(error.to_string(), "the answer cannot be encoded: its `Serialize` panicked: Serialize of a bomb");
    disarm(NAME);
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_panics_is_an_error_that_names_it() {
    mod older {
        #[derive(superstep::State, Clone, Default, serde::Serialize, serde::Deserialize)]
        pub(super) struct Kept {
            pub(super) lines: u32,
        }
    }
    #[derive(State, Clone, Default, Serialize, Deserialize)]
    #[state(version = 2)]
    struct Kept {
        lines: u32,
    }
    let saver = MemorySaver::new();
    let mut old = StateGraph::<older::Kept>::new();
    old.add_node("a", async |kept: older::Kept| older::Kept::update().lines(kept.lines + 1)).add_edge(START, "a");
    old.checkpointer(saver.clone())
        .compile()
        .unwrap()
        .invoke(older::Kept::update().lines(1))
        .thread("t")
        .await
        .unwrap();
    let mut new = StateGraph::<Kept>::new();
    new.add_node("a", async |_: Kept| ()).add_edge(START, "a").checkpointer(saver);
    let app = new.migrate(1, |_: &mut SavedFields| -> () { panic!("lost the map") }).compile().unwrap();
    for error in [ended(app.thread("t").state()).await, ended(app.thread("t").invoke(())).await] {
        assert!(error.to_string().ends_with("the migration from version 1: it panicked: lost the map"), "{error}");
    }
}

/// Panics at every call of the checkpointer, as long as it is told to.
#[derive(Clone, Default)]
struct Panicking(Arc<AtomicBool>);

#[async_trait]
impl Hook for Panicking {
    async fn around(&self, _: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        assert!(!self.0.load(Ordering::SeqCst), "the disk is gone");
        serving.await
    }
}

#[tokio::test(start_paused = true)]
async fn a_checkpointer_that_panics_is_an_error_of_the_run() {
    for durability in MODES {
        let saver = Hooked::new(Panicking::default());
        let mut graph = a_b_c();
        let breaks = saver.clone();
        graph.add_node("break", move |_: &Notes| breaks.hook.0.store(true, Ordering::SeqCst)).add_edge("c", "break");
        let app = graph.checkpointer(saver.clone()).compile().unwrap();
        let error = ended(app.invoke(Notes::update().total(1)).thread("t").durability(durability)).await;
        assert!(error.to_string().contains("the disk is gone"), "{durability:?}: {error}");
        saver.hook.0.store(false, Ordering::SeqCst);
        assert!(app.thread("t").state().await.is_ok());
        saver.hook.0.store(true, Ordering::SeqCst);
        for error in [ended(app.thread("t").state()).await, ended(app.thread("t").history()).await] {
            assert_eq!(error.kind(), ErrorKind::Panic);
            assert!(error.to_string().ends_with("of thread `t` panicked: the disk is gone"), "{error}");
        }
    }
}

/// A step that several runs share a runtime with may lose its tasks: nobody polls them when their runtime is gone.
#[test]
fn a_task_that_its_runtime_drops_is_not_waited_for() {
    let mut graph = StateGraph::<Notes>::new();
    let stuck = async |_: Notes| std::future::pending::<()>().await;
    graph.add_node("a", stuck).add_node("b", stuck).add_edge(START, "a").add_edge(START, "b");
    let app = graph.compile().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut run = pin!(app.invoke(Notes::update().total(1)).into_future());
    let mut cx = Poller::from_waker(Waker::noop());
    {
        let _entered = runtime.enter();
        assert!(run.as_mut().poll(&mut cx).is_pending());
    }
    drop(runtime);
    let std::task::Poll::Ready(ended) = run.as_mut().poll(&mut cx) else { panic!("the run waits for ever") };
    let error = ended.unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    let node = error.node().unwrap();
    assert_eq!(
        error.to_string(),
        format!("node `{node}` was dropped by its runtime in step 1 before it came to its end")
    );
}
