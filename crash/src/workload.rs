//! The graph that is disturbed: rounds of a node that calls functional tasks and of three parallel nodes, whose results
//! end up in the state in a fixed order.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use superstep::{BoxError, Checkpointer, CompiledStateGraph, Context, Durability, END, START, State, StateGraph, Task};

use crate::audit::Audit;

/// The threads of a batch.
pub(crate) const THREADS: usize = 12;
const ROUNDS: u64 = 6;
const PARALLEL: [&str; 3] = ["left", "middle", "right"];

#[derive(State, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) seed: u64,
    pub(crate) round: u64,
    #[state(append)]
    pub(crate) notes: Vec<String>,
}

pub(crate) fn thread_name(batch: &str, number: usize) -> String {
    format!("{batch}-{number}")
}

pub(crate) fn batch_of(thread: &str) -> &str {
    thread.rsplit_once('-').map_or(thread, |(batch, _)| batch)
}

/// How a thread of a batch is run.
pub(crate) fn durability(number: usize) -> Durability {
    match number % 6 {
        0 | 2 | 4 => Durability::Sync,
        1 | 3 => Durability::Async,
        // These are quick, and come through a round before they are killed now and then.
        _ => Durability::Exit,
    }
}

/// The node after which runs stop that are saved only when they end: else none of them would come to its end.
pub(crate) const LAST_OF_ROUND: &str = "join";

impl Tally {
    /// How far a thread is; it never goes back.
    pub(crate) fn progress(&self) -> usize {
        self.notes.len() + self.round as usize
    }

    /// How long a node works, so that a worker which is stopped does not hold the lock of the file every time.
    fn work(&self) -> Duration {
        Duration::from_millis(4 * (1 + self.seed % 5))
    }
}

/// The state that a thread starts with.
pub(crate) fn input(number: usize) -> Tally {
    Tally { seed: number as u64, ..Tally::default() }
}

pub(crate) fn graph<C: Checkpointer>(
    saver: C,
    audit: Option<Arc<Audit>>,
) -> Result<CompiledStateGraph<Tally>, crate::Error> {
    let mut graph = StateGraph::<Tally>::new();
    graph.add_node("plan", planned(audit.clone()));
    for name in PARALLEL {
        graph.add_node(name, started(name, audit.clone())).add_edge("plan", name);
    }
    graph
        .add_node(LAST_OF_ROUND, joined(audit))
        .add_edge(START, "plan")
        .add_edge(PARALLEL, LAST_OF_ROUND)
        .add_conditional_edges(LAST_OF_ROUND, |state: &Tally| if state.round < ROUNDS { "plan" } else { END });
    Ok(graph.checkpointer(saver).compile()?)
}

/// A node that calls two functional tasks, one after the other. They say when they start, too.
fn planned(audit: Option<Arc<Audit>>) -> impl Fn(Tally, Context) -> Planning + Clone + Send + Sync + 'static {
    let called = audit.clone();
    let double = Task::new("double", move |(tally, number): (Tally, u64), cx: Context| {
        let audit = called.clone();
        async move {
            note_start(audit.as_deref(), &cx, tally.progress());
            if audit.is_some() {
                tokio::time::sleep(tally.work() / 2).await;
            }
            Ok::<_, BoxError>(number * 2)
        }
    });
    move |state: Tally, cx: Context| {
        let (audit, double) = (audit.clone(), double.clone());
        Box::pin(async move {
            note_start(audit.as_deref(), &cx, state.progress());
            let once = double.call(&cx, (state.clone(), state.seed)).await?;
            let twice = double.call(&cx, (state.clone(), once)).await?;
            let note = format!("plan of round {} with {twice}", state.round);
            Ok(TallyUpdate { notes: Some(vec![note]), ..TallyUpdate::default() })
        })
    }
}

type Planning = std::pin::Pin<Box<dyn Future<Output = Result<TallyUpdate, BoxError>> + Send>>;

/// A node that says when it starts, works a little, and notes what it did.
fn started(
    name: &'static str,
    audit: Option<Arc<Audit>>,
) -> impl Fn(Tally, Context) -> std::pin::Pin<Box<dyn Future<Output = TallyUpdate> + Send>> + Clone + Send + Sync + 'static
{
    move |state: Tally, cx: Context| {
        let audit = audit.clone();
        Box::pin(async move {
            note_start(audit.as_deref(), &cx, state.progress());
            if audit.is_some() {
                tokio::time::sleep(state.work()).await;
            }
            let note = format!("{name} of round {} with {}", state.round, state.seed * 31 + state.round);
            TallyUpdate { notes: Some(vec![note]), ..TallyUpdate::default() }
        })
    }
}

fn joined(
    audit: Option<Arc<Audit>>,
) -> impl Fn(Tally, Context) -> std::pin::Pin<Box<dyn Future<Output = TallyUpdate> + Send>> + Clone + Send + Sync + 'static
{
    move |state: Tally, cx: Context| {
        let audit = audit.clone();
        Box::pin(async move {
            note_start(audit.as_deref(), &cx, state.progress());
            TallyUpdate { round: Some(state.round + 1), ..TallyUpdate::default() }
        })
    }
}

fn note_start(audit: Option<&Audit>, cx: &Context, progress: usize) {
    if let (Some(audit), Some(thread)) = (audit, cx.thread()) {
        audit.started(thread, cx.task_id(), progress);
    }
}
