//! superstep on the shared workloads: `bench-superstep CASE N`.
//!
//! `bench-superstep count:CASE N ITERATIONS` runs the case that often and times nothing: it is the mode for callgrind.
mod chats;
#[path = "../../common.rs"]
mod common;
mod disk;
mod graphs;
mod postgres;
mod wide;

use common::*;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::Mutex;
use std::time::Instant;
use superstep::{Durability, MemorySaver};

const SYSTEM: &str = "superstep";

/// Everything runs on a worker thread: from the `block_on` thread each spawn would cost a cross-thread wake-up.
#[tokio::main]
async fn main() {
    let (case, n) = args();
    match case.strip_prefix("count:") {
        Some(counted) => {
            let iterations = std::env::args().nth(3).and_then(|s| s.parse().ok()).unwrap_or(10);
            let bench = Bench { n, iterations: Some(iterations) };
            tokio::spawn(bench.run(counted.to_owned())).await.unwrap();
        }
        None => tokio::spawn(Bench { n, iterations: None }.run(case)).await.unwrap(),
    }
}

/// One case: its size, and how often to run it untimed instead of measuring it.
struct Bench {
    n: usize,
    iterations: Option<usize>,
}

impl Bench {
    async fn run(self, case: String) {
        let n = self.n;
        match case.as_str() {
            "w1" => {
                let app = graphs::chain(n);
                self.report("W1", n, None, || graphs::run_chain(&app, n)).await;
            }
            "w2" => {
                let app = graphs::tick_loop(n);
                self.report("W2", n, None, || graphs::run_loop(&app, n)).await;
            }
            "w3" => {
                let app = graphs::fan(n);
                self.report("W3", 2, Some("us_per_task"), || graphs::run_fan(&app, n)).await;
            }
            "w4" => self.wide().await,
            "w4one" => self.wide_one().await,
            "w5" => {
                let app = graphs::react(n);
                self.report("W5", 2 * n + 1, None, || graphs::run_react(&app, n)).await;
            }
            "w6mem" => {
                // A fresh saver per run, so that the peak memory is that of one run.
                let app = || graphs::react_saved(n, MemorySaver::new());
                let run = || async { graphs::run_react_saved(&app(), n, Durability::default()).await };
                self.report("W6-memory", 2 * n + 1, None, run).await;
            }
            "w6sql" => disk::sqlite(&self, Durability::Sync).await,
            "w6sql-async" => disk::sqlite(&self, Durability::Async).await,
            "w6threads" => disk::threads(&self).await,
            "w6pg" => postgres::run(&self, Durability::Sync).await,
            "w6pg-async" => postgres::run(&self, Durability::Async).await,
            "w7" => {
                let run = || async { graphs::run_concurrent(graphs::chain_saved(10), n).await };
                self.report("W7-memory", n * 10, Some("us_per_run"), run).await;
            }
            "w8" => self.stream().await,
            "w9" => {
                let app = graphs::subgraph_fan(n);
                self.report("W9", 2, Some("us_per_subgraph"), || graphs::run_subgraph_fan(&app, n)).await;
            }
            "chats" => chats::run(&self).await,
            "mem" => memory(n).await,
            other => eprintln!("no case {other}"),
        }
    }

    async fn wide(&self) {
        match self.n {
            3 => self.report("W4", 21, None, wide::Wide3::runner()).await,
            100 => self.report("W4", 21, None, wide::Wide100::runner()).await,
            300 => self.report("W4", 21, None, wide::Wide300::runner()).await,
            other => eprintln!("no case w4 with {other} fields"),
        }
    }

    async fn wide_one(&self) {
        match self.n {
            3 => self.report("W4-one", 21, None, wide::Wide3::one_field_runner()).await,
            100 => self.report("W4-one", 21, None, wide::Wide100::one_field_runner()).await,
            300 => self.report("W4-one", 21, None, wide::Wide300::one_field_runner()).await,
            other => eprintln!("no case w4one with {other} fields"),
        }
    }

    async fn stream(&self) {
        let app = graphs::tick_loop(self.n);
        let firsts = Mutex::new(vec![]);
        let run = || async {
            let first = graphs::run_stream(&app, self.n).await;
            firsts.lock().unwrap().push(first.as_secs_f64());
        };
        if let Some(times) = self.measure("W8", self.n, run).await {
            let first_event_us = median(&firsts.lock().unwrap()) * 1e6;
            let events_per_s = self.n as f64 / median(&times);
            let extra = json!({"first_event_us": first_event_us, "events_per_s": events_per_s});
            report(SYSTEM, "W8", self.n, &times, self.n, extra);
        }
    }

    /// Measures and reports a case; `per_item` names the time per unit of `n` where a step is not the unit.
    async fn report<Fut: Future<Output = ()>>(
        &self,
        case: &str,
        steps: usize,
        per_item: Option<&str>,
        run: impl FnMut() -> Fut,
    ) {
        if let Some(times) = self.measure(case, steps, run).await {
            let seconds_per_item = median(&times) / self.n as f64;
            let extra = match per_item {
                Some("us_per_run") => json!({"runs_per_s": 1.0 / seconds_per_item}),
                Some(name) => json!({ name: seconds_per_item * 1e6 }),
                None => Value::Null,
            };
            report(SYSTEM, case, self.n, &times, steps, extra);
        }
    }

    /// The times of a measured case; none if the case was only to be repeated.
    async fn measure<Fut: Future<Output = ()>>(
        &self,
        case: &str,
        steps: usize,
        mut run: impl FnMut() -> Fut,
    ) -> Option<Vec<f64>> {
        let Some(iterations) = self.iterations else {
            return Some(measure(run).await);
        };
        for _ in 0..iterations {
            run().await;
        }
        println!(
            "{}",
            json!({"system": SYSTEM, "case": format!("count:{case}"), "args": self.n,
                "iterations": iterations, "supersteps": steps})
        );
        None
    }
}

/// One run of `steps` steps; the node itself looks at the memory at step 10,000.
async fn memory(steps: usize) {
    let app = graphs::watched_loop(steps);
    let start = Instant::now();
    graphs::run_loop(&app, steps).await;
    report_memory(SYSTEM, steps, start.elapsed().as_secs_f64(), graphs::rss_after_10k_mb());
}
