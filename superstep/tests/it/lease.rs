//! Several who want one thread: the last to claim it has it, and whoever had it before writes nothing more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use superstep::{
    CompiledStateGraph, Context, Durability, Error, GoOn, Interrupted, MemorySaver, NodeOptions, Output, Resume,
    RetryPolicy, START, StateGraph, Thread,
};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::support::{Count, Notes, NotesUpdate, a_b_c, saved, says};

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// A node that waits where a test can see it, the first time that it runs.
#[derive(Clone, Default)]
struct Gate {
    calls: Count,
    reached: Arc<Notify>,
    open: Arc<Notify>,
    dropped: Arc<AtomicBool>,
}

/// Notes that the future around it has ended or was dropped.
struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Gate {
    fn node(&self) -> impl Fn(Notes) -> futures::Node + Clone + Send + Sync + 'static {
        let gate = self.clone();
        move |_| Box::pin(gate.clone().pass())
    }

    async fn pass(self) -> NotesUpdate {
        if self.calls.up() == 0 {
            let _ended = OnDrop(self.dropped.clone());
            self.reached.notify_one();
            self.open.notified().await;
        }
        Notes::update().log(["gate"])
    }
}

mod futures {
    pub(super) type Node = std::pin::Pin<Box<dyn Future<Output = super::NotesUpdate> + Send>>;
}

/// `a`, then a gate, then `z`.
fn gated(gate: &Gate) -> CompiledStateGraph<Notes> {
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("a", says("a")).add_node("gate", gate.node());
    saved(graph.add_node("z", says("z")).add_sequence(["a", "gate", "z"]))
}

/// Starts a run, and waits until it stands at the gate.
async fn at_the_gate(
    app: &CompiledStateGraph<Notes>,
    gate: &Gate,
    durability: Durability,
) -> JoinHandle<Result<Output<Notes>, Error>> {
    let run = app.invoke(Notes::update().topic("first")).thread("t").durability(durability);
    let running = tokio::spawn(run.into_future());
    gate.reached.notified().await;
    running
}

/// Opens the gate; the run behind it must find that it has lost the thread.
async fn ends_fenced(gate: &Gate, running: JoinHandle<Result<Output<Notes>, Error>>) -> Error {
    gate.open.notify_one();
    let error = running.await.unwrap().unwrap_err();
    assert!(error.is_fenced(), "{error}");
    assert!(!error.is_retryable(), "the thread has to be loaded again first");
    error
}

/// Each checkpoint of the thread goes on from the one before.
async fn is_one_chain(thread: &Thread<Notes>) {
    let history = thread.history().await.unwrap();
    for (newer, older) in history.iter().zip(&history[1..]) {
        assert_eq!(newer.parent, older.checkpoint);
        assert!(newer.checkpoint.as_ref().map(|at| at.id) > older.checkpoint.as_ref().map(|at| at.id));
    }
    assert_eq!(history.last().unwrap().parent, None);
}

#[tokio::test]
async fn of_two_runs_on_a_thread_the_older_one_is_fenced() {
    for durability in ALL {
        let gate = Gate::default();
        let app = gated(&gate);
        let older = at_the_gate(&app, &gate, durability).await;
        let newer = app.invoke(Notes::update().topic("second")).thread("t").durability(durability).await.unwrap();
        let error = ends_fenced(&gate, older).await;
        assert!(error.to_string().contains("thread `t` was taken over by another run or update"), "{error}");
        let state = app.thread("t").state().await.unwrap();
        assert_eq!((&*state.state, state.next.len()), (&newer.state, 0), "{durability:?}");
        is_one_chain(&app.thread("t")).await;
    }
}

#[tokio::test]
async fn what_a_fenced_run_had_saved_is_what_the_newer_one_goes_on_from() {
    for durability in [Durability::Sync, Durability::Async] {
        let gate = Gate::default();
        let app = gated(&gate);
        let older = at_the_gate(&app, &gate, durability).await;
        let newer = app.invoke(GoOn).thread("t").await.unwrap();
        ends_fenced(&gate, older).await;
        assert_eq!(newer.state.log, ["a", "gate", "z"], "`a` had run and was saved");
        assert_eq!(app.thread("t").state().await.unwrap().state.log, ["a", "gate", "z"]);
        is_one_chain(&app.thread("t")).await;
    }
}

#[tokio::test]
async fn an_update_by_hand_fences_a_run() {
    for durability in ALL {
        let gate = Gate::default();
        let app = gated(&gate);
        let running = at_the_gate(&app, &gate, durability).await;
        app.thread("t").update(Notes::update().log(["by hand"])).as_node("z").await.unwrap();
        ends_fenced(&gate, running).await;
        let state = app.thread("t").state().await.unwrap();
        assert_eq!(state.state.log.last().map(String::as_str), Some("by hand"));
        assert!(!state.state.log.contains(&"gate".to_owned()));
        is_one_chain(&app.thread("t")).await;
    }
}

#[tokio::test]
async fn a_thread_that_is_deleted_under_a_run_stays_deleted() {
    for durability in ALL {
        let gate = Gate::default();
        let app = gated(&gate);
        let running = at_the_gate(&app, &gate, durability).await;
        app.thread("t").delete().await.unwrap();
        let error = ends_fenced(&gate, running).await;
        assert!(error.to_string().contains("thread `t` is not there any more"), "{error}");
        assert!(app.thread("t").history().await.unwrap().is_empty());
        assert!(app.threads(None, 10).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_thread_that_is_made_again_does_not_take_the_writes_of_an_old_run() {
    let gate = Gate::default();
    let app = gated(&gate);
    let running = at_the_gate(&app, &gate, Durability::Sync).await;
    app.delete_thread("t").await.unwrap();
    app.invoke(Notes::update().topic("new")).thread("t").await.unwrap();
    ends_fenced(&gate, running).await;
    assert_eq!(app.thread("t").state().await.unwrap().state.topic.as_deref(), Some("new"));
    is_one_chain(&app.thread("t")).await;
}

#[tokio::test]
async fn looking_at_a_thread_fences_nobody() {
    let gate = Gate::default();
    let app = gated(&gate);
    let running = at_the_gate(&app, &gate, Durability::Sync).await;
    let thread = app.thread("t");
    thread.state().await.unwrap();
    thread.history().await.unwrap();
    thread.copy_to("copy").await.unwrap();
    thread.prune(superstep::Prune::keep_last(1)).await.unwrap();
    app.threads(None, 10).await.unwrap();
    gate.open.notify_one();
    assert_eq!(running.await.unwrap().unwrap().state.log, ["a", "gate", "z"]);
}

#[tokio::test]
async fn runs_of_different_threads_do_not_disturb_each_other() {
    let gate = Gate::default();
    let app = gated(&gate);
    let running = at_the_gate(&app, &gate, Durability::Sync).await;
    for name in ["u", "T", "t "] {
        let out = app.invoke(Notes::update().topic(name)).thread(name).await.unwrap();
        assert_eq!(out.state.log, ["a", "gate", "z"]);
    }
    gate.open.notify_one();
    assert_eq!(running.await.unwrap().unwrap().state.topic.as_deref(), Some("first"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_runs_on_a_thread_one_chain_is_left() {
    let app = saved(&mut a_b_c());
    let runs: Vec<_> = (0..16)
        .map(|number| tokio::spawn(app.invoke(Notes::update().total(number)).thread("t").into_future()))
        .collect();
    let mut ended = 0;
    for run in runs {
        match run.await.unwrap() {
            Ok(_) => ended += 1,
            Err(error) => assert!(error.is_fenced(), "{error}"),
        }
    }
    assert!(ended > 0, "nobody takes the thread from the last one");
    is_one_chain(&app.thread("t")).await;
}

/// The result of the quick task cannot be saved; the slow one would wait for ever.
#[tokio::test]
async fn a_fenced_run_stops_its_tasks() {
    let (gate, slow) = (Gate::default(), Gate::default());
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("quick", gate.node()).add_node("slow", slow.node());
    let app = saved(graph.add_edge(START, "quick").add_edge(START, "slow"));
    let running = at_the_gate(&app, &gate, Durability::Sync).await;
    slow.reached.notified().await;
    app.thread("t").update(Notes::update().log(["by hand"])).as_node("quick").await.unwrap();
    ends_fenced(&gate, running).await;
    assert!(slow.dropped.load(Ordering::SeqCst), "the slow task is still there");
}

/// Neither a retry nor an error handler helps a run that has lost its thread.
#[tokio::test]
async fn a_run_that_is_fenced_inside_a_subgraph_is_not_retried() {
    let (gate, handled) = (Gate::default(), Count::default());
    let mut child = StateGraph::<Notes>::new();
    child.add_node("gate", gate.node()).add_node("after", says("after"));
    let child = child.add_sequence(["gate", "after"]).compile().unwrap();
    let note = handled.clone();
    let handler = move |_: Notes| {
        note.up();
        std::future::ready(Notes::update().log(["handled"]))
    };
    let options = NodeOptions::new().retry(RetryPolicy::new()).error_handler(handler);
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node_with("child", child, options).add_edge(START, "child");
    let app = saved(&mut graph);
    let running = at_the_gate(&app, &gate, Durability::Sync).await;
    app.thread("t").update(Notes::update().log(["by hand"])).as_node("child").await.unwrap();
    ends_fenced(&gate, running).await;
    assert_eq!((gate.calls.get(), handled.get()), (1, 0));
    assert_eq!(app.thread("t").state().await.unwrap().state.log, ["by hand"]);
}

#[tokio::test]
async fn of_two_answers_to_one_question_the_later_one_counts() {
    let (gate, calls) = (Gate::default(), Count::default());
    let (waits, count) = (gate.clone(), calls.clone());
    let ask = move |_: Notes, cx: Context| {
        let (waits, count) = (waits.clone(), count.clone());
        async move {
            let answer: String = cx.interrupt("which?")?;
            if count.up() == 0 {
                waits.reached.notify_one();
                waits.open.notified().await;
            }
            Ok::<_, Interrupted>(Notes::update().log([answer]))
        }
    };
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("ask", ask).add_edge(START, "ask");
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    app.invoke(Notes::update().topic("t")).thread("t").await.unwrap();
    let first = tokio::spawn(app.invoke(Resume::value("first")).thread("t").into_future());
    gate.reached.notified().await;
    app.invoke(Resume::value("second")).thread("t").await.unwrap();
    ends_fenced(&gate, first).await;
    assert_eq!(app.thread("t").state().await.unwrap().state.log, ["second"]);
}
