//! The order in which tasks finish never shows in what is saved.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use superstep::{
    CompiledStateGraph, Context, Durability, MemorySaver, NodeOptions, START, Send, Sent, State, StateGraph, Update,
};

use crate::support::history;

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Board {
    #[state(append)]
    log: Vec<String>,
    #[state(any)]
    latest: String,
    #[state(topic)]
    news: Vec<String>,
    #[state(sum)]
    total: i64,
    round: Option<u32>,
}

/// How long each task takes, by seed; and the order in which tasks really finished.
#[derive(Clone)]
struct Schedule {
    seed: u64,
    finished: Arc<Mutex<Vec<String>>>,
}

impl Schedule {
    /// Waits for a time that only the seed and the task's name decide.
    async fn wait(&self, task: &str) {
        let mut hash = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xcbf2_9ce4_8422_2325;
        for byte in task.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash ^= hash >> 29;
        match hash % 8 {
            // Some tasks end at their first poll, some give way a few times, most take their time.
            0 => {}
            n @ 1..=3 => {
                for _ in 0..n {
                    tokio::task::yield_now().await;
                }
            }
            _ => tokio::time::sleep(Duration::from_millis(hash % 97)).await,
        }
        self.finished.lock().expect("nobody panics with it").push(task.to_owned());
    }
}

fn graph(schedule: &Schedule, saver: MemorySaver) -> CompiledStateGraph<Board> {
    let named = |name: &'static str| {
        let schedule = schedule.clone();
        move |board: Board, cx: Context| {
            let schedule = schedule.clone();
            async move {
                schedule.wait(&format!("{name} in step {}", cx.step())).await;
                let line = format!("{name} saw {} and {:?}", board.total, board.news);
                Board::update().log([line.clone()]).latest(line).news([name.to_owned()]).total(1)
            }
        }
    };
    let work = {
        let schedule = schedule.clone();
        move |Sent(part): Sent<i64>, cx: Context| {
            let schedule = schedule.clone();
            async move {
                schedule.wait(&format!("work {part} in step {}", cx.step())).await;
                Board::update().total(part).log([format!("work {part}")]).latest(format!("work {part}"))
            }
        }
    };
    let next_round = |board: Board| async move { Update::new().set(Board::ROUND, Some(board.round.unwrap_or(0) + 1)) };
    StateGraph::<Board>::new()
        .add_node("delta", named("delta"))
        .add_node("alpha", named("alpha"))
        .add_node("charlie", named("charlie"))
        .add_node("bravo", named("bravo"))
        .add_node("work", work)
        .add_node("join", named("join"))
        .add_node("round", next_round)
        .add_node_with("last", named("last"), NodeOptions::new().defer())
        .add_edge(START, "round")
        .add_conditional_edges("round", |_: &Board| vec!["delta", "alpha", "charlie", "bravo"])
        .add_conditional_edges("alpha", |_: &Board| (1..=4).map(|n| Send::new("work", n)).collect::<Vec<_>>())
        .add_conditional_edges("bravo", |_: &Board| vec![Send::new("work", 10), Send::new("work", 20)])
        .add_edge(["delta", "charlie"], "join")
        .add_edge("delta", "last")
        .add_conditional_edges("join", |board: &Board| (board.round < Some(2)).then_some("round"))
        .checkpointer(saver)
        .compile()
        .expect("the graph has no mistakes")
}

#[tokio::test(start_paused = true)]
async fn a_thousand_completion_orders_give_one_history() {
    let mut orders = HashSet::new();
    let mut expected = None;
    for seed in 0..1_000 {
        let schedule = Schedule { seed, finished: Arc::default() };
        let app = graph(&schedule, MemorySaver::new());
        let durability = if seed % 2 == 0 { Durability::Sync } else { Durability::Async };
        let mut run = app.invoke(Board::update().log(["start"])).thread("t").durability(durability);
        if seed % 5 == 0 {
            run = run.max_concurrency(2);
        }
        run.await.expect("the run ends well");
        orders.insert(schedule.finished.lock().expect("nobody panics with it").clone());
        let found = history(&app.thread("t")).await.expect("the history can be read");
        assert!(found.len() > 5, "there is a history to compare");
        match &expected {
            None => expected = Some(found),
            Some(expected) => assert_eq!(&found, expected, "seed {seed}"),
        }
    }
    assert!(orders.len() > 900, "the schedules differ: {} orders", orders.len());
}
