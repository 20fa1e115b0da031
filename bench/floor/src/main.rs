//! The floor: the same state work with no framework at all.
//! `bench-floor CASE N`; the "-spawn" variants put every node on its own tokio task.
#[path = "../../common.rs"]
mod common;
mod disk;
use common::*;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const SYS: &str = "floor";

/// Everything runs on a worker thread: from the `block_on` thread each spawn would cost a cross-thread wake-up.
#[tokio::main]
async fn main() {
    tokio::spawn(bench()).await.unwrap();
}

async fn bench() {
    let (case, n) = args();
    let none = json!({});
    match case.as_str() {
        "w1" => report(SYS, "W1", n, &measure(|| chain(n, false)).await, n, none),
        "w1-spawn" => report("floor-spawn", "W1", n, &measure(|| chain(n, true)).await, n, none),
        "w2" => report(SYS, "W2", n, &measure(|| chain(n, false)).await, n, none),
        "w2-spawn" => report("floor-spawn", "W2", n, &measure(|| chain(n, true)).await, n, none),
        "w3" => {
            let t = measure(|| fan(n)).await;
            let us_per_task = median(&t) / n as f64 * 1e6;
            report(SYS, "W3", n, &t, 2, json!({"us_per_task": us_per_task}));
        }
        "w4" => report(SYS, "W4", n, &measure(|| wide(n)).await, 21, none),
        "w4one" => report(SYS, "W4-one", n, &measure(|| wide_one(n)).await, 21, none),
        "w5" => {
            let t = measure(|| react(n, |_, _| ())).await;
            report(SYS, "W5", n, &t, 2 * n + 1, none);
        }
        "w6mem" => react_saved(n, false).await,
        "w6mem-full" => react_saved(n, true).await,
        "w6sql" | "w6sql-async" => disk::on_a_thread(move || disk::sqlite(n)),
        "w6threads" => disk::on_a_thread(move || disk::threads(n)),
        "w6pg" | "w6pg-async" => disk::postgres(n).await,
        "w7" => {
            let t = measure(|| concurrent(n)).await;
            let runs_per_s = n as f64 / median(&t);
            report(SYS, "W7-memory", n, &t, n * 10, json!({"runs_per_s": runs_per_s}));
        }
        "w8" => stream(n).await,
        "w9" => {
            let t = measure(|| subgraphs(n)).await;
            let us_per_subgraph = median(&t) / n as f64 * 1e6;
            report(SYS, "W9", n, &t, 2, json!({"us_per_subgraph": us_per_subgraph}));
        }
        "mem" => memory(n).await,
        other => eprintln!("no case {other}"),
    }
}

async fn inc(x: i64) -> i64 {
    black_box(x) + 1
}

async fn chain(n: usize, spawn: bool) {
    let mut x = 0;
    for _ in 0..n {
        x = if spawn { tokio::spawn(inc(x)).await.unwrap() } else { inc(x).await };
    }
    assert_eq!(black_box(x), n as i64);
}

async fn fan(n: usize) {
    let mut set = JoinSet::new();
    for i in 0..n {
        set.spawn(async move { (i, vec![black_box(i)]) });
    }
    let mut parts = Vec::with_capacity(n);
    while let Some(r) = set.join_next().await {
        parts.push(r.unwrap());
    }
    // Merge in task order, not in the order of arrival.
    parts.sort_by_key(|p| p.0);
    let items: Vec<usize> = parts.into_iter().flat_map(|p| p.1).collect();
    assert_eq!(items.len(), n);
}

/// 10 rounds; in each, 5 tasks read the shared state and return updates for a fifth of the fields.
async fn wide(fields: usize) {
    let mut state: Arc<Vec<i64>> = Arc::new(vec![0; fields]);
    for _ in 0..10 {
        let mut set = JoinSet::new();
        for k in 0..5 {
            let s = state.clone();
            set.spawn(async move { (k..s.len()).step_by(5).map(|i| (i, s[i] + 1)).collect::<Vec<_>>() });
        }
        let mut updates = Vec::new();
        while let Some(r) = set.join_next().await {
            updates.extend(r.unwrap());
        }
        let s = Arc::make_mut(&mut state);
        for (i, v) in updates {
            s[i] = v;
        }
    }
    assert!(state.iter().all(|v| *v == 10));
}

/// 10 rounds of one writer that changes one field; the others only exist.
async fn wide_one(fields: usize) {
    let mut state: Arc<Vec<i64>> = Arc::new(vec![0; fields]);
    for _ in 0..10 {
        let s = state.clone();
        let v = async move { black_box(&s)[0] + 1 }.await;
        Arc::make_mut(&mut state)[0] = v;
    }
    assert_eq!(black_box(&state)[0], 10);
}

#[derive(Default)]
struct Chat {
    msgs: Vec<Msg>,
    by_id: HashMap<String, usize>,
}

impl Chat {
    fn add(&mut self, m: Msg) {
        match self.by_id.get(&m.id) {
            Some(i) => self.msgs[*i] = m,
            None => {
                self.by_id.insert(m.id.clone(), self.msgs.len());
                self.msgs.push(m);
            }
        }
    }
}

/// The ReAct loop; `save` is called after every node with the history before it and the new message.
async fn react(turns: usize, mut save: impl FnMut(&[Msg], &Msg)) {
    let mut c = Chat::default();
    c.add(user());
    loop {
        let m = async { model(c.msgs.len(), turns) }.await;
        let done = m.tool_calls.is_empty();
        save(&c.msgs, &m);
        c.add(m);
        if done {
            break;
        }
        let t = async { tool(c.msgs.last().unwrap()) }.await;
        save(&c.msgs, &t);
        c.add(t);
    }
    assert_eq!(c.msgs.len(), 2 * turns + 2);
}

/// Keeps a blob per step: the whole history if `full`, otherwise only the new message.
async fn react_saved(turns: usize, full: bool) {
    let bytes = Mutex::new(0);
    let t = measure(|| async {
        let mut store: Vec<Vec<u8>> = Vec::new();
        react(turns, |all, new| {
            store.push(if full { serde_json::to_vec(all) } else { serde_json::to_vec(new) }.unwrap());
        })
        .await;
        *bytes.lock().unwrap() = store.iter().map(Vec::len).sum::<usize>();
    })
    .await;
    let bytes = *bytes.lock().unwrap();
    let system = if full { "floor-full" } else { SYS };
    report(system, "W6-memory", turns, &t, 2 * turns + 1, json!({"bytes_total": bytes}));
}

/// `n` concurrent runs of 10 steps, a checkpoint blob kept per step.
async fn concurrent(n: usize) {
    let blobs: Arc<Mutex<HashMap<String, Vec<Vec<u8>>>>> = Arc::default();
    let mut set = JoinSet::new();
    for i in 0..n {
        let blobs = blobs.clone();
        set.spawn(async move {
            let (mut x, key) = (0i64, format!("t{i}"));
            for _ in 0..10 {
                x = inc(x).await;
                let blob = serde_json::to_vec(&json!({"x": x})).unwrap();
                blobs.lock().unwrap().entry(key.clone()).or_default().push(blob);
            }
            x
        });
    }
    while let Some(r) = set.join_next().await {
        assert_eq!(r.unwrap(), 10);
    }
}

/// One event per step through a bounded channel to a consumer on another task.
async fn stream(n: usize) {
    let firsts = Mutex::new(vec![]);
    let t = measure(|| async {
        let start = Instant::now();
        let (tx, mut rx) = mpsc::channel::<Value>(64);
        tokio::spawn(async move {
            let mut x = 0;
            for _ in 0..n {
                x = inc(x).await;
                tx.send(json!({"tick": {"n": 1}})).await.unwrap();
            }
            assert_eq!(x, n as i64);
        });
        let mut events = 0;
        while rx.recv().await.is_some() {
            if events == 0 {
                firsts.lock().unwrap().push(start.elapsed().as_secs_f64());
            }
            events += 1;
        }
        assert_eq!(events, n);
    })
    .await;
    let first_event_us = median(&firsts.lock().unwrap()) * 1e6;
    let events_per_s = n as f64 / median(&t);
    let extra = json!({"first_event_us": first_event_us, "events_per_s": events_per_s});
    report(SYS, "W8", n, &t, n, extra);
}

async fn subgraphs(n: usize) {
    let mut set = JoinSet::new();
    for i in 0..n {
        set.spawn(async move { (i, inc(inc(inc(i as i64).await).await).await) });
    }
    let mut v = Vec::new();
    while let Some(r) = set.join_next().await {
        v.push(r.unwrap());
    }
    v.sort();
    assert_eq!(v.len(), n);
}

async fn memory(steps: usize) {
    let start = Instant::now();
    chain(10_000, false).await;
    let after_10k = peak_rss_mb();
    chain(steps.saturating_sub(10_000), false).await;
    report_memory(SYS, steps, start.elapsed().as_secs_f64(), after_10k);
}
