//! Shared by all Rust benches (included with `#[path]`): timing, reporting, the fake chat messages.
#![allow(dead_code)]
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{future::Future, time::Instant};

/// Peak resident set of this process in MiB (VmHWM).
pub fn peak_rss_mb() -> f64 {
    let s = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    s.lines()
        .find(|l| l.starts_with("VmHWM"))
        .and_then(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1024.0
}

/// Seconds per run: a warm-up of 50 ms, then at least 7 samples (at most 300) until 1 s is spent; a slow case stops at
/// 3 samples after 4 s. Short runs share a sample of about 1 ms, so that reading the clock does not count.
pub async fn measure<F, Fut>(mut f: F) -> Vec<f64>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = ()>,
{
    let runs = runs_per_sample(&mut f).await;
    let (all, mut v) = (Instant::now(), Vec::new());
    loop {
        let t = Instant::now();
        for _ in 0..runs {
            f().await;
        }
        v.push(t.elapsed().as_secs_f64() / runs as f64);
        let spent = all.elapsed().as_secs_f64();
        if v.len() >= 300 || (v.len() >= 7 && spent > 1.0) || (v.len() >= 3 && spent > 4.0) {
            return v;
        }
    }
}

async fn runs_per_sample<F, Fut>(f: &mut F) -> usize
where
    F: FnMut() -> Fut,
    Fut: Future<Output = ()>,
{
    let (start, mut runs) = (Instant::now(), 0);
    while runs == 0 || start.elapsed().as_secs_f64() < 0.05 {
        f().await;
        runs += 1;
    }
    let seconds_per_run = start.elapsed().as_secs_f64() / runs as f64;
    ((1e-3 / seconds_per_run) as usize).max(1)
}

pub fn median(v: &[f64]) -> f64 {
    let mut s = v.to_vec();
    s.sort_by(f64::total_cmp);
    s[s.len() / 2]
}

/// Print one JSON line: the same fields as the Python side.
pub fn report(system: &str, case: &str, arg: usize, times: &[f64], steps: usize, extra: Value) {
    let (m, min) = (median(times), times.iter().copied().fold(f64::MAX, f64::min));
    let mut o = json!({"system": system, "case": case, "args": arg, "median_ms": m * 1e3, "min_ms": min * 1e3,
        "reps": times.len(), "supersteps": steps, "us_per_step": m / steps as f64 * 1e6, "peak_rss_mb": peak_rss_mb()});
    if let (Some(o), Some(e)) = (o.as_object_mut(), extra.as_object()) {
        for (k, v) in e {
            o.insert(k.clone(), v.clone());
        }
    }
    println!("{o}");
}

/// `prog CASE N`
pub fn args() -> (String, usize) {
    let mut a = std::env::args().skip(1);
    (a.next().unwrap_or_default(), a.next().and_then(|s| s.parse().ok()).unwrap_or(0))
}

/// Prints the line of the case `mem`: the peak resident set after 10,000 steps and at the end of one run.
pub fn report_memory(system: &str, steps: usize, seconds: f64, after_10k_mb: f64) {
    let o = json!({"system": system, "case": "memory", "args": steps, "median_ms": seconds * 1e3, "reps": 1,
        "supersteps": steps, "us_per_step": seconds / steps as f64 * 1e6, "peak_rss_mb": peak_rss_mb(),
        "rss_10k_mb": after_10k_mb, "rss_end_mb": peak_rss_mb()});
    println!("{o}");
}

/// Size of a database file together with its -wal file.
pub fn db_bytes(path: &str) -> u64 {
    let f = |p: String| std::fs::metadata(p).map(|m| m.len()).unwrap_or(0);
    f(path.into()) + f(format!("{path}-wal"))
}

pub fn fresh_db(name: &str) -> String {
    let p = std::env::temp_dir().join(format!("db_{name}_{}.sqlite", std::process::id())).display().to_string();
    for s in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(format!("{p}{s}"));
    }
    p
}
pub fn drop_db(p: &str) {
    for s in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(format!("{p}{s}"));
    }
}

/// What superstep keeps of a step of W6 in its rows: the floor saves as much. Its own program says if this is no longer so.
pub const SAVED_BYTES_PER_STEP: usize = 636;

/// The server that `cargo xtask` has started for the cases of PostgreSQL.
pub fn postgres_address() -> String {
    std::env::var("SUPERSTEP_TEST_POSTGRES").expect("`cargo xtask` gives the address of a server")
}

// ---- the fake ReAct conversation: 1 user message, T x (tool call, 200-byte tool result), 1 answer ----

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub args: Value,
}
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Msg {
    pub id: String,
    pub role: String,
    pub content: String,
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    #[serde(default)]
    pub tool_call_id: Option<String>,
}
pub fn user() -> Msg {
    Msg { id: "h0".into(), role: "user".into(), content: "hi".into(), ..Default::default() }
}
/// What the fake model says after `n` messages when it wants `turns` tool calls in all.
pub fn model(n: usize, turns: usize) -> Msg {
    let k = (n - 1) / 2;
    let mut m = Msg { id: format!("ai{k}"), role: "assistant".into(), ..Default::default() };
    if k < turns {
        m.tool_calls =
            vec![ToolCall { id: format!("call{k}"), name: "lookup".into(), args: json!({"q": format!("query {k}")}) }];
    } else {
        m.content = "a".repeat(200);
    }
    m
}
pub fn tool(last: &Msg) -> Msg {
    let c = &last.tool_calls[0];
    Msg {
        id: format!("t{}", c.id),
        role: "tool".into(),
        content: "r".repeat(200),
        tool_call_id: Some(c.id.clone()),
        ..Default::default()
    }
}
/// add_messages: replace by id, else append.
pub fn add_messages(left: &mut Vec<Msg>, right: Vec<Msg>) {
    for m in right {
        match left.iter().rposition(|x| x.id == m.id) {
            Some(i) => left[i] = m,
            None => left.push(m),
        }
    }
}
pub fn to_json<T: Serialize>(t: &T) -> Value {
    serde_json::to_value(t).unwrap()
}
