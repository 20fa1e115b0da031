//! Workflows made of functions.

use std::time::Duration;

use serde_json::json;
use superstep::{
    BoxError, CompiledEntrypoint, Context, Entrypoint, ErrorKind, Final, GoOn, MemoryCache, MemorySaver, MemoryStore,
    Previous, Resume, RetryPolicy, START, StateGraph, Store, StoreHandle, Task,
};
use tokio::time::{Instant, sleep};

use crate::support::{Count, Notes, events};

const SECOND: Duration = Duration::from_secs(1);

fn counting(runs: &Count, fail: usize) -> Task<i64, i64> {
    let runs = runs.clone();
    Task::new("double", move |n: i64| {
        let failed = runs.up() < fail;
        async move { if failed { Err::<i64, BoxError>("not yet".into()) } else { Ok(n * 2) } }
    })
}

fn calling(task: Task<i64, i64>) -> Entrypoint<i64> {
    Entrypoint::new("flow", move |n: i64, cx: Context| {
        let task = task.clone();
        async move { task.call(&cx, n).await }
    })
}

#[tokio::test]
async fn a_finished_task_does_not_run_again_after_a_question() {
    let runs = Count::default();
    let task = counting(&runs, 0);
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let task = task.clone();
        async move {
            let (a, b) = (task.call(&cx, n), task.call(&cx, n + 1));
            let sum = a.await? + b.await?;
            let extra: i64 = cx.interrupt("how much more?")?;
            Ok::<_, BoxError>(sum + extra)
        }
    })
    .checkpointer(MemorySaver::new())
    .compile();
    let out = flow.invoke(1).thread("t").await.unwrap();
    assert_eq!((out.interrupts[0].value.clone(), runs.get()), (json!("how much more?"), 2));
    let out = flow.resume(Resume::value(100)).thread("t").await.unwrap();
    assert_eq!((out.get::<i64>().unwrap(), runs.get()), (106, 2));
}

#[tokio::test]
async fn a_finished_task_does_not_run_again_after_a_failure() {
    let (runs, failures) = (Count::default(), Count::default());
    let task = counting(&runs, 0);
    let fails = failures.clone();
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let (task, failed) = (task.clone(), fails.up() == 0);
        async move {
            let double = task.call(&cx, n).await?;
            if failed { Err::<i64, BoxError>("later".into()) } else { Ok(double) }
        }
    })
    .checkpointer(MemorySaver::new())
    .compile();
    assert_eq!(flow.invoke(4).thread("t").await.unwrap_err().to_string(), "node `flow` failed in step 0: later");
    assert_eq!(flow.resume(GoOn).thread("t").await.unwrap().get::<i64>().unwrap(), 8);
    assert_eq!((runs.get(), failures.get()), (1, 2));
}

#[tokio::test]
async fn a_failure_of_a_task_can_be_caught() {
    let runs = Count::default();
    let task = counting(&runs, 1);
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let task = task.clone();
        async move { task.call(&cx, n).await.unwrap_or(-1) }
    })
    .compile();
    assert_eq!(flow.invoke(4).await.unwrap().get::<i64>().unwrap(), -1);
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_again_by_its_policy() {
    let runs = Count::default();
    let policy = RetryPolicy::new().initial_interval(SECOND).backoff_factor(2.0).jitter(false).max_attempts(3);
    let flow = calling(counting(&runs, 2).retry(policy)).compile();
    let start = Instant::now();
    assert_eq!(flow.invoke(4).await.unwrap().get::<i64>().unwrap(), 8);
    assert_eq!((runs.get(), start.elapsed()), (3, 3 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn jitter_is_added_to_the_pauses_of_tasks_too() {
    let mut extra = Duration::ZERO;
    for _ in 0..20 {
        let policy = RetryPolicy::new().initial_interval(SECOND).jitter(true);
        let flow = calling(counting(&Count::default(), 1).retry(policy)).compile();
        let start = Instant::now();
        flow.invoke(4).await.unwrap();
        extra += start.elapsed().saturating_sub(SECOND);
    }
    assert!(extra > Duration::ZERO, "of twenty pauses at least one was longer");
}

fn slow() -> Task<i64, i64> {
    Task::new("slow", |n: i64| async move {
        sleep(5 * SECOND).await;
        Ok::<_, BoxError>(n)
    })
}

#[tokio::test(start_paused = true)]
async fn a_task_keeps_to_its_timeout() {
    let error = calling(slow().timeout(SECOND)).compile().invoke(4).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("`slow` exceeded its run timeout of 1s"), "{error}");
    assert!(calling(slow().timeout(6 * SECOND)).compile().invoke(4).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_entrypoint_keeps_to_its_timeout() {
    let error = calling(slow()).timeout(SECOND).compile().invoke(4).await.unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Timeout, Some("flow")));
}

#[tokio::test(start_paused = true)]
async fn an_entrypoint_runs_again_by_its_policy_and_its_finished_tasks_do_not() {
    let (runs, failures) = (Count::default(), Count::default());
    let task = counting(&runs, 0);
    let fails = failures.clone();
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let (task, failed) = (task.clone(), fails.up() == 0);
        async move {
            let double = task.call(&cx, n).await?;
            if failed { Err::<i64, BoxError>("later".into()) } else { Ok(double) }
        }
    })
    .retry(RetryPolicy::new().jitter(false))
    .compile();
    assert_eq!(flow.invoke(4).await.unwrap().get::<i64>().unwrap(), 8);
    assert_eq!((runs.get(), failures.get()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_cached_task_runs_once_for_each_argument_while_its_result_is_kept() {
    let runs = Count::default();
    let flow = calling(counting(&runs, 0).cached(Some(10 * SECOND))).cache(MemoryCache::new()).compile();
    for n in [1, 2, 1, 2] {
        assert_eq!(flow.invoke(n).await.unwrap().get::<i64>().unwrap(), n * 2);
    }
    assert_eq!(runs.get(), 2);
    sleep(11 * SECOND).await;
    flow.invoke(1).await.unwrap();
    assert_eq!(runs.get(), 3);
}

#[tokio::test]
async fn a_workflow_has_a_store() {
    let flow = Entrypoint::new("flow", async |word: String, store: StoreHandle| {
        store.put(["words"], "w", json!(word)).await?;
        Ok::<_, BoxError>(store.get(["words"], "w").await?.map(|item| item.value))
    })
    .store(MemoryStore::new())
    .compile();
    assert_eq!(flow.invoke("tea").await.unwrap().get::<String>().unwrap(), "tea");
}

fn summing() -> CompiledEntrypoint<i64> {
    Entrypoint::new("sum", async |n: i64, Previous(before): Previous<i64>| {
        let total = before.unwrap_or(0) + n;
        Final { value: format!("so far {total}"), save: total }
    })
    .checkpointer(MemorySaver::new())
    .compile()
}

#[tokio::test]
async fn what_is_saved_is_given_to_the_next_run_of_the_thread() {
    let flow = summing();
    assert_eq!(flow.invoke(2).thread("t").await.unwrap().get::<String>().unwrap(), "so far 2");
    assert_eq!(flow.invoke(3).thread("t").await.unwrap().get::<String>().unwrap(), "so far 5");
    assert_eq!(flow.invoke(3).thread("u").await.unwrap().get::<String>().unwrap(), "so far 3");
    assert_eq!(flow.thread("t").state().await.unwrap().state.saved, Some(json!(5)));
}

#[tokio::test]
async fn each_task_and_then_the_entrypoint_is_streamed() {
    let flow = calling(counting(&Count::default(), 0)).checkpointer(MemorySaver::new()).compile();
    let all = events(flow.stream(4).thread("t").start()).await;
    let shown: Vec<_> = all.iter().map(|e| e["data"].clone()).collect();
    assert_eq!(shown, [json!({ "double": 8 }), json!({ "flow": 8 })]);
}

#[tokio::test]
async fn a_panic_of_a_task_is_an_error_of_its_caller() {
    let task: Task<i64, i64> = Task::new("bad", |n: i64| async move {
        assert!(n > 100, "too small");
        Ok::<_, BoxError>(n)
    });
    let error = calling(task).compile().invoke(4).await.unwrap_err();
    assert!(error.to_string().contains("panic"), "{error}");
    assert!(error.to_string().contains("bad"), "the error names the task: {error}");
}

#[tokio::test]
async fn an_input_that_does_not_fit_is_refused() {
    let error = summing().invoke("two").thread("t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("the input does not fit the entrypoint"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_task_at_once_does_not_keep_called_tasks_from_running() {
    let flow = calling(counting(&Count::default(), 0)).compile();
    let run = flow.invoke(4).max_concurrency(1).into_future();
    let out = tokio::time::timeout(60 * SECOND, run).await.expect("the run does not wait for itself").unwrap();
    assert_eq!(out.get::<i64>().unwrap(), 8);
}

#[tokio::test]
async fn limits_that_make_no_sense_are_refused_by_name() {
    let runs = Count::default();
    let no_time = "a timeout must be greater than zero";
    let no_attempts = "a retry policy needs at least one attempt";
    let none = || RetryPolicy::new().max_attempts(0);
    let cases = [
        (calling(counting(&runs, 0).timeout(Duration::ZERO)), format!("task `double`: {no_time}")),
        (calling(counting(&runs, 0).retry(none())), format!("task `double`: {no_attempts}")),
        (calling(counting(&runs, 0)).timeout(Duration::ZERO), format!("entrypoint `flow`: {no_time}")),
        (calling(counting(&runs, 0)).retry(none()), format!("entrypoint `flow`: {no_attempts}")),
    ];
    for (flow, words) in cases {
        let error = flow.compile().invoke(4).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Invalid, words));
    }
    assert_eq!(runs.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cached_result_without_an_end_is_kept_for_good() {
    let runs = Count::default();
    let flow = calling(counting(&runs, 0).cached(None)).cache(MemoryCache::new()).compile();
    flow.invoke(1).await.unwrap();
    sleep(1_000_000 * SECOND).await;
    assert_eq!((flow.invoke(1).await.unwrap().get::<i64>().unwrap(), runs.get()), (2, 1));
}

#[tokio::test]
async fn a_workflow_is_a_graph_of_one_node() {
    let flow = summing();
    assert_eq!((flow.graph().name(), flow.graph().draw().nodes.len()), ("sum", 3));
    flow.invoke(2).thread("t").await.unwrap();
    assert_eq!(flow.graph().get_state("t").await.unwrap().state.saved, Some(json!(2)));
}

#[tokio::test]
async fn what_functions_returned_is_in_their_updates() {
    let flow = calling(counting(&Count::default(), 0)).compile();
    let mut stream = flow.stream(4).start();
    let mut returned = Vec::new();
    while let Some(event) = stream.next().await {
        if let superstep::EventData::Updates(update) = event.unwrap().data {
            returned.push((update.node.clone(), update.returned().cloned()));
        }
    }
    assert_eq!(returned[0], ("double".to_owned(), Some(json!(8))));
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("no luck")]
struct NoLuck;

#[tokio::test]
async fn the_error_of_a_task_names_the_task_and_is_still_found() {
    let inner: Task<i64, i64> = Task::new("inner", |_: i64| async { Err::<i64, _>(NoLuck) });
    let outer = Task::new("outer", move |n: i64, cx: Context| {
        let inner = inner.clone();
        async move { inner.call(&cx, n).await }
    });
    let flow = calling(outer).checkpointer(MemorySaver::new()).compile();
    let error = flow.invoke(4).thread("t").await.unwrap_err();
    assert_eq!(error.to_string(), "task `inner` failed in step 0: no luck");
    assert_eq!((error.kind(), error.downcast_ref::<NoLuck>()), (ErrorKind::Node, Some(&NoLuck)));
    let state = flow.thread("t").state().await.unwrap();
    assert_eq!(state.tasks[0].error.as_ref().unwrap().to_string(), "no luck");
}

#[tokio::test]
async fn a_cached_task_without_a_cache_is_refused() {
    let runs = Count::default();
    let error = calling(counting(&runs, 0).cached(None)).compile().invoke(4).await.unwrap_err();
    assert_eq!((error.kind(), runs.get()), (ErrorKind::Invalid, 0));
    assert!(error.to_string().contains("the results of task `double` are cached, but there is no cache"), "{error}");
}

/// A task that asks for a number and adds it.
fn asking() -> Task<i64, i64> {
    Task::new("ask", async |n: i64, cx: Context| {
        let more: i64 = cx.interrupt(format!("how much more than {n}?"))?;
        Ok::<_, BoxError>(n + more)
    })
}

/// Asks in turn, each time on what came before.
fn in_turn(times: usize) -> CompiledEntrypoint<i64> {
    let task = asking();
    let run = move |n: i64, cx: Context| {
        let task = task.clone();
        async move {
            let mut n = n;
            for _ in 0..times {
                n = task.call(&cx, n).await?;
            }
            Ok::<_, BoxError>(n)
        }
    };
    Entrypoint::new("flow", run).checkpointer(MemorySaver::new()).compile()
}

/// The task and its caller ask one and the same question, which counted as two.
#[tokio::test]
async fn an_answer_by_value_reaches_the_task_that_asked() {
    for durability in [superstep::Durability::Sync, superstep::Durability::Async, superstep::Durability::Exit] {
        let flow = in_turn(3);
        let mut out = flow.invoke(1).thread("t").durability(durability).await.unwrap();
        for (question, answer) in [("how much more than 1?", 10), ("how much more than 11?", 100)] {
            assert_eq!((out.interrupts.len(), &out.interrupts[0].value), (1, &json!(question)), "{durability:?}");
            assert_eq!(flow.thread("t").state().await.unwrap().interrupts, out.interrupts);
            out = flow.resume(Resume::value(answer)).thread("t").durability(durability).await.unwrap();
        }
        // By its id too: the id is that of the task's question.
        let id = out.interrupts[0].id.clone();
        let out = flow.resume(Resume::by_id([(id, 1000)])).thread("t").durability(durability).await.unwrap();
        assert_eq!(out.get::<i64>().unwrap(), 1111, "{durability:?}");
    }
}

#[tokio::test]
async fn an_answer_by_value_reaches_a_task_that_a_task_called() {
    let inner = asking();
    let outer = Task::new("outer", move |n: i64, cx: Context| {
        let inner = inner.clone();
        async move { Ok::<_, BoxError>(inner.call(&cx, n).await? * 2) }
    });
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let outer = outer.clone();
        async move { outer.call(&cx, n).await }
    })
    .checkpointer(MemorySaver::new())
    .compile();
    let out = flow.invoke(1).thread("t").await.unwrap();
    assert_eq!(out.interrupts.len(), 1);
    let out = flow.resume(Resume::value(20)).thread("t").await.unwrap();
    assert_eq!(out.get::<i64>().unwrap(), 42);
}

/// In the node of a graph, of a graph inside it, and of one that an entrypoint calls.
#[tokio::test]
async fn an_answer_by_value_reaches_a_task_that_a_node_called() {
    let task = asking();
    let node = move |_: Notes, cx: Context| {
        let task = task.clone();
        async move { Ok::<_, BoxError>(Notes::update().total(task.call(&cx, 1).await?)) }
    };
    let graph = || {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node("asks", node.clone()).add_edge(START, "asks");
        graph
    };
    let mut around = StateGraph::<Notes>::new();
    around.add_node("child", graph().compile().unwrap()).add_edge(START, "child");
    for graph in [&mut graph(), &mut around] {
        let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
        let out = app.invoke(Notes::default()).thread("t").await.unwrap();
        assert_eq!(out.interrupts.len(), 1);
        let out = app.invoke(Resume::value(41)).thread("t").await.unwrap();
        assert_eq!(out.state.total, 42);
    }
    let child = graph().compile().unwrap();
    let flow = Entrypoint::new("flow", move |_: i64, cx: Context| {
        let child = child.clone();
        async move { Ok::<_, BoxError>(cx.invoke(&child, Notes::default()).await?.state.total) }
    })
    .checkpointer(MemorySaver::new())
    .compile();
    assert_eq!(flow.invoke(1).thread("t").await.unwrap().interrupts.len(), 1);
    assert_eq!(flow.resume(Resume::value(41)).thread("t").await.unwrap().get::<i64>().unwrap(), 42);
}

/// An entrypoint inside another could not be given its input.
#[tokio::test]
async fn an_entrypoint_may_call_an_entrypoint_whose_task_asks() {
    let inner = in_turn(2);
    let outer = Entrypoint::new("outer", move |n: i64, cx: Context| {
        let inner = inner.clone();
        async move {
            let inside = cx.invoke(inner.graph(), n).await?.get::<i64>()?;
            let more: i64 = cx.interrupt("and outside?")?;
            Ok::<_, BoxError>(inside + more)
        }
    })
    .checkpointer(MemorySaver::new())
    .compile();
    let mut out = outer.invoke(1).thread("t").await.unwrap();
    let questions = ["how much more than 1?", "how much more than 11?", "and outside?"];
    for (question, answer) in questions.into_iter().zip([10, 100, 1000]) {
        assert_eq!((out.interrupts.len(), &out.interrupts[0].value), (1, &json!(question)));
        out = outer.resume(Resume::value(answer)).thread("t").await.unwrap();
    }
    assert_eq!(out.get::<i64>().unwrap(), 1111);
}

#[tokio::test]
async fn tasks_that_ask_at_once_are_answered_by_id() {
    let task = asking();
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let task = task.clone();
        async move {
            let (one, other) = tokio::join!(task.call(&cx, n), task.call(&cx, n + 1));
            Ok::<_, BoxError>(one? + other?)
        }
    })
    .checkpointer(MemorySaver::new())
    .compile();
    let out = flow.invoke(1).thread("t").await.unwrap();
    let asked: Vec<_> = out.interrupts.iter().map(|question| question.value.clone()).collect();
    assert_eq!(asked, ["how much more than 1?", "how much more than 2?"]);
    let error = flow.resume(Resume::value(10)).thread("t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AmbiguousResume);
    let answer = |ix: usize, n: i64| (out.interrupts[ix].id.clone(), n);
    // What is left when one is answered takes an answer by value.
    let left = flow.resume(Resume::by_id([answer(1, 10)])).thread("t").await.unwrap();
    assert_eq!(left.interrupts, out.interrupts[..1]);
    let out = flow.resume(Resume::value(100)).thread("t").await.unwrap();
    assert_eq!(out.get::<i64>().unwrap(), 1 + 100 + 2 + 10);
}

/// The end of the task was shown with the question, and then that of its caller with the same one.
#[tokio::test]
async fn the_question_of_a_task_is_shown_once_in_the_tasks_stream() {
    let flow = in_turn(1);
    let modes = [superstep::Mode::Tasks];
    let shown = events(flow.stream(1).thread("t").modes(modes).start()).await;
    let asked: Vec<_> = shown
        .iter()
        .filter(|event| event["data"]["interrupts"].as_array().is_some_and(|list| !list.is_empty()))
        .collect();
    assert_eq!((asked.len(), &asked[0]["data"]["name"]), (1, &json!("flow")), "{shown:?}");
    assert_eq!(asked[0]["data"]["result"], json!({}), "a task that asked has written nothing");
}

/// LangGraph (1.2.22) takes the answer of the run before for the answer to the first question of the new one.
#[tokio::test]
async fn new_input_begins_without_the_answers_of_the_run_before() {
    let flow = Entrypoint::new("flow", async |n: i64, cx: Context| -> Result<String, BoxError> {
        let first: String = cx.interrupt(("first", n))?;
        let second: String = cx.interrupt(("second", n))?;
        Ok(format!("{first}, {second}"))
    });
    let flow = flow.checkpointer(MemorySaver::new()).compile();
    flow.invoke(1).thread("t").await.unwrap();
    let out = flow.resume(Resume::value("x")).thread("t").await.unwrap();
    assert_eq!(out.interrupts[0].value, json!(["second", 1]));
    let out = flow.invoke(2).thread("t").await.unwrap();
    assert_eq!(out.interrupts[0].value, json!(["first", 2]));
}

/// LangGraph counts the calls of a task on from attempt to attempt: it runs and asks them again.
#[tokio::test(start_paused = true)]
async fn another_attempt_of_a_task_finds_what_its_calls_gave() {
    let asks = Task::new("asks", async |n: i64, cx: Context| -> Result<i64, BoxError> { Ok(cx.interrupt::<i64>(n)?) });
    let tries = Count::default();
    let (runs, counted) = (Count::default(), tries.clone());
    let outer = Task::new("outer", move |n: i64, cx: Context| {
        let (asks, runs, tries) = (asks.clone(), runs.clone(), counted.clone());
        async move {
            runs.up();
            let answer = asks.call(&cx, n).await?;
            if tries.up() == 0 { Err::<i64, BoxError>("not yet".into()) } else { Ok(answer) }
        }
    });
    let flow = calling(outer.retry(RetryPolicy::new())).checkpointer(MemorySaver::new()).compile();
    let asked = flow.invoke(1).thread("t").await.unwrap();
    assert_eq!(asked.interrupts.len(), 1);
    let out = flow.resume(Resume::value(7)).thread("t").await.unwrap();
    assert_eq!((out.get::<i64>().unwrap(), tries.get()), (7, 2));
}
