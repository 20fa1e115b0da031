//! A step costs what it changes: the state is shared with nodes, and not copied when they are done with it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use superstep::{CompiledStateGraph, Durability, END, MemorySaver, Mode, START, State, StateGraph};

const STEPS: i64 = 100;

thread_local! {
    /// How often states were copied; each test runs on a thread of its own.
    static COPIES: Cell<usize> = const { Cell::new(0) };
}

/// A value that nobody writes: it is cloned when the state is.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counted;

impl Clone for Counted {
    fn clone(&self) -> Self {
        COPIES.set(COPIES.get() + 1);
        Self
    }
}

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Ledger {
    #[state(sum)]
    total: i64,
    #[state(append)]
    lines: Vec<i64>,
    rest: Counted,
}

/// Nodes that take turns: one leads on by an edge, the other by a path. `seen` is how many copies the last node saw beyond
/// those that the first one did.
fn ledger(seen: &Arc<AtomicUsize>) -> StateGraph<Ledger> {
    let (first, seen) = (Arc::new(AtomicUsize::new(0)), seen.clone());
    let write = move |ledger: Arc<Ledger>| {
        match ledger.total {
            0 => first.store(COPIES.get(), Ordering::Relaxed),
            _ => seen.store(COPIES.get() - first.load(Ordering::Relaxed), Ordering::Relaxed),
        }
        async move { Ledger::update().total(1).lines([ledger.total]) }
    };
    let mut graph = StateGraph::new();
    graph
        .add_node("odd", write.clone())
        .add_node("even", write)
        .add_edge(START, "odd")
        .add_edge("odd", "even")
        .add_conditional_edges("even", |ledger: &Ledger| if ledger.total < STEPS { "odd" } else { END });
    graph
}

async fn run(app: &CompiledStateGraph<Ledger>, durability: Durability) {
    let out = app.invoke(()).thread("t").durability(durability).recursion_limit(1000).await.unwrap();
    assert_eq!((out.total, out.lines.len()), (STEPS, STEPS as usize));
}

#[tokio::test]
async fn an_unwatched_run_copies_no_state() {
    let copies = Arc::default();
    run(&ledger(&copies).compile().unwrap(), Durability::Sync).await;
    assert_eq!(copies.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_run_that_is_saved_copies_no_state() {
    for durability in [Durability::Sync, Durability::Async] {
        let copies = Arc::default();
        run(&ledger(&copies).checkpointer(MemorySaver::new()).compile().unwrap(), durability).await;
        assert_eq!(copies.load(Ordering::Relaxed), 0, "{durability:?}");
    }
}

#[tokio::test]
async fn who_watches_updates_makes_no_copies() {
    let copies = Arc::default();
    let app = ledger(&copies).checkpointer(MemorySaver::new()).compile().unwrap();
    let mut stream = app.stream(()).thread("t").recursion_limit(1000).mode(Mode::Updates).start();
    while let Some(event) = stream.next().await {
        event.unwrap();
    }
    assert_eq!(stream.output().unwrap().total, STEPS);
    assert_eq!(copies.load(Ordering::Relaxed), 0);
}
