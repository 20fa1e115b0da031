//! The graph that is disturbed: rounds of three parallel tasks, whose results end up in the state in a fixed order.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use superstep::{Checkpointer, CompiledStateGraph, Context, END, START, State, StateGraph};

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

/// The state that a thread starts with.
pub(crate) fn input(number: usize) -> Tally {
    Tally { seed: number as u64, ..Tally::default() }
}

pub(crate) fn graph<C: Checkpointer>(
    saver: C,
    audit: Option<Arc<Audit>>,
) -> Result<CompiledStateGraph<Tally>, crate::Error> {
    let mut graph = StateGraph::<Tally>::new();
    graph.add_node("plan", started("plan", audit.clone()));
    for name in PARALLEL {
        graph.add_node(name, started(name, audit.clone())).add_edge("plan", name);
    }
    graph
        .add_node("join", joined(audit))
        .add_edge(START, "plan")
        .add_edge(PARALLEL, "join")
        .add_conditional_edges("join", |state: &Tally| if state.round < ROUNDS { "plan" } else { END });
    Ok(graph.checkpointer(saver).compile()?)
}

/// A node that says when it starts, works a little, and notes what it did.
fn started(
    name: &'static str,
    audit: Option<Arc<Audit>>,
) -> impl Fn(Tally, Context) -> std::pin::Pin<Box<dyn Future<Output = TallyUpdate> + Send>> + Clone + Send + Sync + 'static
{
    move |state: Tally, cx: Context| {
        let audit = audit.clone();
        Box::pin(async move {
            note_start(audit.as_deref(), &cx);
            // Longer than a save: a worker that is stopped should not hold the lock of the file every time.
            if audit.is_some() {
                tokio::time::sleep(std::time::Duration::from_millis(4 * (1 + state.seed % 5))).await;
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
            note_start(audit.as_deref(), &cx);
            TallyUpdate { round: Some(state.round + 1), ..TallyUpdate::default() }
        })
    }
}

fn note_start(audit: Option<&Audit>, cx: &Context) {
    if let (Some(audit), Some(thread)) = (audit, cx.thread()) {
        audit.started(thread, cx.task_id());
    }
}
