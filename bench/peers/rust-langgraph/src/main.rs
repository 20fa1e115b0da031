//! rust-langgraph 0.1.1: state with a merge method, Pregel loop; invoke takes &mut self. `bench-rust-langgraph CASE N`
#[path = "../../../common.rs"]
mod common;
use common::{Msg, args, model, report, tool, user};
use rust_langgraph::pregel::BranchResult;
use rust_langgraph::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

const SYS: &str = "rust-langgraph";

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct St {
    x: Option<i64>,
    n: i64,
    messages: Vec<Msg>,
}
impl State for St {
    fn merge(&mut self, o: Self) -> Result<()> {
        if o.x.is_some() {
            self.x = o.x;
        }
        self.n += o.n;
        common::add_messages(&mut self.messages, o.messages);
        Ok(())
    }
}
fn conf(t: usize) -> Config {
    let mut c = Config::new().with_thread_id(format!("t{t}"));
    c.recursion_limit = 1_000_000_000;
    c
}

/// Everything runs on a worker thread: from the `block_on` thread each spawn would cost a cross-thread wake-up.
#[tokio::main]
async fn main() {
    tokio::spawn(bench()).await.unwrap()
}

async fn bench() {
    let (case, n) = args();
    let mut k = 0;
    let mut times = vec![];
    macro_rules! go {
        ($name:expr, $steps:expr, $build:expr, $input:expr, $check:expr) => {{
            let mut app = $build;
            let all = std::time::Instant::now();
            let mut first = true;
            let mut wrong = None;
            while times.len() < 7 || (all.elapsed().as_secs_f64() < 2.0 && times.len() < 300) {
                k += 1;
                let t = std::time::Instant::now();
                match app.invoke($input, conf(k)).await {
                    Ok(o) => { let o: St = o; if !$check(&o) && wrong.is_none() { wrong = Some(format!("x={:?} n={} msgs={}", o.x, o.n, o.messages.len())); } }
                    Err(e) => { println!("{}", json!({"system": SYS, "failed": $name, "args": n, "err": e.to_string()})); return; }
                }
                if !first { times.push(t.elapsed().as_secs_f64()); }
                first = false;
                if all.elapsed().as_secs_f64() > 20.0 && times.len() >= 3 { break; }
            }
            report(SYS, $name, n, &times, $steps, json!({"wrong": wrong}));
        }};
    }
    let chain = |saver: Option<Arc<MemorySaver>>| {
        let mut g = StateGraph::<St>::new();
        for i in 0..n {
            g.add_node(format!("n{i}"), |s: St, _c: &Config| async move {
                Ok(St { x: Some(s.x.unwrap_or(0) + 1), ..Default::default() })
            });
            if i > 0 {
                g.add_edge(format!("n{}", i - 1), format!("n{i}"));
            }
        }
        g.set_entry_point("n0");
        g.set_finish_point(format!("n{}", n - 1));
        g.compile(saver.map(|s| s as _)).unwrap()
    };
    let react = |saver: Option<Arc<MemorySaver>>| {
        let mut g = StateGraph::<St>::new();
        g.add_node("model", move |s: St, _c: &Config| async move {
            Ok(St { messages: vec![model(s.messages.len(), n)], ..Default::default() })
        });
        g.add_node("tools", |s: St, _c: &Config| async move {
            Ok(St { messages: vec![tool(s.messages.last().unwrap())], ..Default::default() })
        });
        g.set_entry_point("model");
        g.add_conditional_edges("model", |s: &St| {
            let end = s.messages.last().unwrap().tool_calls.is_empty();
            async move { Ok(if end { BranchResult::end() } else { BranchResult::single("tools") }) }
        });
        g.add_edge("tools", "model");
        g.compile(saver.map(|s| s as _)).unwrap()
    };
    let chat = || St { messages: vec![user()], ..Default::default() };
    match case.as_str() {
        "w1" => go!("W1", n, chain(None), St { x: Some(0), ..Default::default() }, |o: &St| o.x == Some(n as i64)),
        "w2" => go!(
            "W2",
            n,
            {
                let mut g = StateGraph::<St>::new();
                g.add_node("tick", |_s: St, _c: &Config| async move { Ok(St { n: 1, ..Default::default() }) });
                g.set_entry_point("tick");
                g.add_conditional_edges("tick", move |s: &St| {
                    let more = (s.n as usize) < n;
                    async move { Ok(if more { BranchResult::single("tick") } else { BranchResult::end() }) }
                });
                g.compile(None).unwrap()
            },
            St::default(),
            |o: &St| o.n == n as i64
        ),
        "w5" => go!("W5", 2 * n + 1, react(None), chat(), |o: &St| o.messages.len() == 2 * n + 2),
        "w6mem" => {
            go!("W6-memory", 2 * n + 1, react(Some(Arc::new(MemorySaver::new()))), chat(), |o: &St| o.messages.len()
                == 2 * n + 2)
        }
        o => eprintln!("no case {o}"),
    }
}
