//! Single flight: what is wanted several times at once is computed once.

use std::sync::Arc;

use serde_json::{Value, json};
use superstep::{
    BoxError, CachePolicy, CompiledStateGraph, Context, Entrypoint, EventData, JsonState, MemoryCache, NodeOptions,
    START, Send, Sent, StateGraph, Task,
};
use tokio::sync::{Barrier, Semaphore};

use crate::support::Count;

/// Lets all tasks that can go on do so, until they wait for something that is not ready.
async fn let_others_go_on() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// A graph of one cached node that counts its runs, says that it has begun, and then does `work`.
fn graph<F>(
    cache: MemoryCache,
    runs: &Count,
    work: impl Fn(usize) -> F + Clone + std::marker::Send + Sync + 'static,
) -> CompiledStateGraph<JsonState>
where
    F: Future<Output = Result<Value, BoxError>> + std::marker::Send + 'static,
{
    let runs = runs.clone();
    let node = move |_: JsonState| work(runs.up());
    StateGraph::dynamic(JsonState::schema().last_value("n").last_value("out"))
        .add_node_with("work", node, NodeOptions::new().cache(CachePolicy::new()))
        .add_edge(START, "work")
        .cache(cache)
        .compile()
        .expect("the graph is sound")
}

/// Runs the graph `count` times at once, all with the same input.
async fn at_once(app: &CompiledStateGraph<JsonState>, count: usize) -> Vec<Result<Value, String>> {
    let one = |app: CompiledStateGraph<JsonState>| async move {
        let out = app.invoke(json!({ "n": 1 })).await;
        out.map(|out| out.to_json()["out"].clone()).map_err(|error| error.to_string())
    };
    let runs: Vec<_> = (0..count).map(|_| tokio::spawn(one(app.clone()))).collect();
    let mut results = Vec::new();
    for run in runs {
        results.push(run.await.expect("a run does not panic"));
    }
    results
}

#[tokio::test]
async fn runs_that_want_the_same_result_at_once_compute_it_once() {
    let runs = Count::default();
    let app = graph(MemoryCache::new(), &runs, |_| async {
        let_others_go_on().await;
        Ok(json!({ "out": 7 }))
    });
    assert_eq!(at_once(&app, 8).await, vec![Ok(json!(7)); 8]);
    assert_eq!(runs.get(), 1);
}

#[tokio::test]
async fn graphs_that_share_a_cache_wait_for_each_other() {
    let (cache, runs) = (MemoryCache::new(), Count::default());
    let make = || {
        graph(cache.clone(), &runs, |_| async {
            let_others_go_on().await;
            Ok(json!({ "out": 7 }))
        })
    };
    let (one, other) = (make(), make());
    let (a, b) = tokio::join!(at_once(&one, 2), at_once(&other, 2));
    assert_eq!([a, b].concat(), vec![Ok(json!(7)); 4]);
    assert_eq!(runs.get(), 1);
}

/// Both must be in the node at the same time: if one waited for the other, neither would come out.
#[tokio::test]
async fn graphs_with_caches_of_their_own_do_not_wait_for_each_other() {
    let (runs, both) = (Count::default(), Arc::new(Barrier::new(2)));
    let make = || {
        let both = both.clone();
        graph(MemoryCache::new(), &runs, move |_| {
            let both = both.clone();
            async move {
                both.wait().await;
                Ok(json!({ "out": 7 }))
            }
        })
    };
    let (one, other) = (make(), make());
    tokio::join!(at_once(&one, 1), at_once(&other, 1));
    assert_eq!(runs.get(), 2);
}

#[tokio::test]
async fn those_who_waited_for_a_failure_run_themselves() {
    let runs = Count::default();
    let app = graph(MemoryCache::new(), &runs, |run| async move {
        let_others_go_on().await;
        if run == 0 { Err("the first fails".into()) } else { Ok(json!({ "out": 7 })) }
    });
    let results = at_once(&app, 3).await;
    assert_eq!(results[0], Err("node `work` failed in step 1: the first fails".to_owned()));
    assert_eq!(results[1..], [Ok(json!(7)), Ok(json!(7))]);
    assert_eq!(runs.get(), 3);
}

#[tokio::test]
async fn those_who_waited_for_a_cancelled_run_go_on() {
    let (runs, begun) = (Count::default(), Arc::new(Semaphore::new(0)));
    let signal = begun.clone();
    let app = graph(MemoryCache::new(), &runs, move |run| {
        signal.add_permits(1);
        async move { if run == 0 { std::future::pending().await } else { Ok(json!({ "out": 7 })) } }
    });
    let stuck = tokio::spawn({
        let app = app.clone();
        async move { app.invoke(json!({ "n": 1 })).await.map(drop) }
    });
    begun.acquire().await.expect("it is not closed").forget();
    let waiting = tokio::spawn({
        let app = app.clone();
        async move { at_once(&app, 1).await }
    });
    let_others_go_on().await;
    assert!(!waiting.is_finished(), "it waits for the first");
    stuck.abort();
    assert_eq!(waiting.await.expect("it does not panic"), [Ok(json!(7))]);
    assert_eq!(runs.get(), 2);
}

fn fan_out(runs: &Count) -> CompiledStateGraph<JsonState> {
    let runs = runs.clone();
    let work = move |Sent(word): Sent<String>| {
        runs.up();
        async move {
            let_others_go_on().await;
            json!({ "words": [word] })
        }
    };
    let sends = |_: &JsonState| ["tea", "milk", "tea", "tea"].map(|word| Send::new("work", word)).to_vec();
    StateGraph::dynamic(JsonState::schema().topic("words"))
        .add_node_with("work", work, NodeOptions::new().cache(CachePolicy::new()))
        .add_conditional_edges(START, sends)
        .cache(MemoryCache::new())
        .compile()
        .expect("the graph is sound")
}

#[tokio::test]
async fn tasks_of_one_step_that_want_the_same_result_compute_it_once() {
    for limit in [None, Some(1)] {
        let runs = Count::default();
        let mut run = fan_out(&runs).invoke(json!({ "words": [] }));
        if let Some(limit) = limit {
            run = run.max_concurrency(limit);
        }
        let out = run.await.expect("it runs").to_json();
        assert_eq!(out, json!({ "words": ["tea", "milk", "tea", "tea"] }));
        assert_eq!(runs.get(), 2);
    }
}

#[tokio::test]
async fn the_result_of_another_is_shown_as_cached() {
    let mut stream = fan_out(&Count::default()).stream(json!({ "words": [] })).start();
    let mut cached = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventData::Updates(update) = event.expect("it runs").data {
            cached.push(update.cached);
        }
    }
    cached.sort_unstable();
    assert_eq!(cached, [false, false, true, true]);
}

#[tokio::test]
async fn calls_that_want_the_same_result_at_once_compute_it_once() {
    let runs = Count::default();
    let counter = runs.clone();
    let double = Task::new("double", move |n: i64| {
        counter.up();
        async move {
            let_others_go_on().await;
            Ok::<_, BoxError>(n * 2)
        }
    })
    .cached(None);
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let double = double.clone();
        async move {
            let (a, b) = tokio::join!(double.call(&cx, n), double.call(&cx, n));
            Ok::<_, BoxError>(a? + b?)
        }
    })
    .cache(MemoryCache::new())
    .compile();
    let (a, b) = tokio::join!(flow.invoke(2), flow.invoke(2));
    assert_eq!((a.unwrap().get::<i64>().unwrap(), b.unwrap().get::<i64>().unwrap()), (8, 8));
    assert_eq!(runs.get(), 1);
}
