//! How many calls of tasks run at once, and how long they may be silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use superstep::{
    BoxError, CompiledEntrypoint, Context, Entrypoint, ErrorKind, MemorySaver, RetryPolicy, START, Send, Sent,
    StateGraph, Task, TimeoutPolicy,
};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{Count, Notes};

const SECOND: Duration = Duration::from_secs(1);

/// How many are at work now, and how many were at most.
#[derive(Clone, Default)]
struct Gauge(Arc<(AtomicUsize, AtomicUsize)>);

impl Gauge {
    async fn work(&self) {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        sleep(SECOND).await;
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn peak(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

/// Works for a second.
fn working(gauge: &Gauge) -> Task<i64, i64> {
    let gauge = gauge.clone();
    Task::new("work", move |n: i64| {
        let gauge = gauge.clone();
        async move {
            gauge.work().await;
            Ok::<_, BoxError>(n)
        }
    })
}

/// Calls a task with each number below `n`, all at once, and adds what they give.
async fn all_of(task: &Task<i64, i64>, n: i64, cx: &Context) -> Result<i64, BoxError> {
    let calls: Vec<_> = (0..n).map(|n| task.call(cx, n)).collect();
    let mut sum = 0;
    for call in calls {
        sum += call.await?;
    }
    Ok(sum)
}

fn calling(task: Task<i64, i64>) -> CompiledEntrypoint<i64> {
    let run = move |n: i64, cx: Context| {
        let task = task.clone();
        async move { all_of(&task, n, &cx).await }
    };
    Entrypoint::new("flow", run).compile()
}

/// Eight calls ran at once under a limit of two: the limit was asked by nodes alone.
#[tokio::test(start_paused = true)]
async fn no_more_calls_run_at_once_than_allowed() {
    for limit in 1..4 {
        let gauge = Gauge::default();
        let (flow, start) = (calling(working(&gauge)), Instant::now());
        let out = flow.invoke(8).max_concurrency(limit).await.unwrap();
        assert_eq!((out.get::<i64>().unwrap(), gauge.peak()), (28, limit));
        assert_eq!(start.elapsed(), 8_u32.div_ceil(limit as u32) * SECOND, "a caller that waits takes no place");
    }
    let gauge = Gauge::default();
    calling(working(&gauge)).invoke(8).await.unwrap();
    assert_eq!(gauge.peak(), 8, "without a limit all run at once");
}

/// LangGraph hangs here: with a limit of one at the first call, with a greater one as soon as so many calls wait for calls.
#[tokio::test(start_paused = true)]
async fn calls_inside_calls_come_to_their_end_under_every_limit() {
    for limit in [1, 2, 3] {
        let gauge = Gauge::default();
        let inner = working(&gauge);
        let middle = Task::new("middle", move |n: i64, cx: Context| {
            let inner = inner.clone();
            async move { Ok::<_, BoxError>(all_of(&inner, 3, &cx).await? + n) }
        });
        let outer = Task::new("outer", move |n: i64, cx: Context| {
            let middle = middle.clone();
            async move { Ok::<_, BoxError>(all_of(&middle, 3, &cx).await? + n) }
        });
        let run = calling(outer).invoke(3).max_concurrency(limit).into_future();
        let out = timeout(60 * SECOND, run).await.expect("nobody waits for ever").unwrap();
        assert_eq!((out.get::<i64>().unwrap(), gauge.peak()), (3 * (3 * 3 + 3) + 3, limit));
    }
}

/// A caller need not wait for its call by awaiting it: here another task of the runtime does.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_awaited_elsewhere_gets_the_place_of_its_caller() {
    let task = working(&Gauge::default());
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let task = task.clone();
        async move { tokio::spawn(async move { task.call(&cx, n).await }).await? }
    });
    let run = flow.compile().invoke(4).max_concurrency(1).into_future();
    let out = timeout(60 * SECOND, run).await.expect("nobody waits for ever").unwrap();
    assert_eq!(out.get::<i64>().unwrap(), 4);
}

/// What callers do after a call counts again, so callers that go on are no more than the limit either.
#[tokio::test(start_paused = true)]
async fn a_caller_takes_a_place_again_when_it_goes_on() {
    let (gauge, inside) = (Gauge::default(), Gauge::default());
    let (task, after) = (working(&inside), gauge.clone());
    let node = move |Sent(n): Sent<i64>, cx: Context| {
        let (task, after) = (task.clone(), after.clone());
        async move {
            let n = task.call(&cx, n).await?;
            after.work().await;
            Ok::<_, BoxError>(Notes::update().total(n))
        }
    };
    let sends = |_: &Notes| (1..=6i64).map(|n| Send::new("work", n)).collect::<Vec<_>>();
    let app = StateGraph::<Notes>::new().add_node("work", node).add_conditional_edges(START, sends).compile().unwrap();
    let run = app.invoke(Notes::update().topic("t")).max_concurrency(2).into_future();
    let out = timeout(60 * SECOND, run).await.expect("nobody waits for ever").unwrap();
    assert_eq!((out.state.total, gauge.peak(), inside.peak()), (21, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_leaves_its_place_to_others() {
    let gauge = Gauge::default();
    let task = working(&gauge);
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let task = task.clone();
        async move {
            let given_up = timeout(SECOND / 2, task.call(&cx, n)).await;
            Ok::<_, BoxError>((given_up.is_err(), all_of(&task, 3, &cx).await?))
        }
    });
    let run = flow.compile().invoke(4).max_concurrency(1).into_future();
    let out = timeout(60 * SECOND, run).await.expect("nobody waits for ever").unwrap();
    assert_eq!(out.get::<(bool, i64)>().unwrap(), (true, 3));
}

/// Works for five seconds, showing in some way each second that it is alive.
fn slow(alive: fn(&Context)) -> Task<i64, i64> {
    Task::new("slow", move |n: i64, cx: Context| async move {
        for _ in 0..5 {
            sleep(SECOND).await;
            alive(&cx);
        }
        Ok::<_, BoxError>(n)
    })
}

fn once(task: Task<i64, i64>) -> Entrypoint<i64> {
    Entrypoint::new("flow", move |n: i64, cx: Context| {
        let task = task.clone();
        async move { task.call(&cx, n).await }
    })
}

/// How a workflow ended: the number that it gave, or its error's words; and when.
async fn ended(flow: Entrypoint<i64>) -> (Result<i64, String>, Duration) {
    let start = Instant::now();
    let out = flow.compile().invoke(4).await.map(|out| out.get::<i64>().unwrap());
    let out = out.map_err(|error| {
        assert_eq!(error.kind(), ErrorKind::Timeout);
        error.to_string()
    });
    (out, start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_task_without_a_sign_of_life_is_idle() {
    let idle = TimeoutPolicy::idle_only(2 * SECOND);
    let words = "task `slow` exceeded its idle timeout of 2s in step 0".to_owned();
    assert_eq!(ended(once(slow(|_| {}).timeout(idle))).await, (Err(words.clone()), 2 * SECOND));
    assert_eq!(ended(once(slow(Context::heartbeat).timeout(idle))).await, (Ok(4), 5 * SECOND));
    let looks = |cx: &Context| _ = cx.node().len();
    assert_eq!(ended(once(slow(looks).timeout(idle))).await, (Err(words), 2 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn idle_and_run_limits_of_a_task_both_count() {
    let both = TimeoutPolicy::run(4 * SECOND).idle(2 * SECOND);
    assert_eq!(ended(once(slow(|_| {}).timeout(both))).await.1, 2 * SECOND);
    let words = "task `slow` exceeded its run timeout of 4s in step 0".to_owned();
    assert_eq!(ended(once(slow(Context::heartbeat).timeout(both))).await, (Err(words.clone()), 4 * SECOND));
    assert_eq!(ended(once(slow(|_| {}).timeout(4 * SECOND))).await, (Err(words), 4 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn events_of_a_task_are_signs_of_life_unless_only_heartbeats_count() {
    let talks = |n: i64, cx: Context| async move {
        for _ in 0..5 {
            sleep(SECOND).await;
            cx.emit("here").await;
        }
        Ok::<_, BoxError>(n)
    };
    let idle = TimeoutPolicy::idle_only(2 * SECOND);
    assert_eq!(ended(once(Task::new("slow", talks).timeout(idle))).await, (Ok(4), 5 * SECOND));
    let heartbeats = idle.on_heartbeat_only();
    assert_eq!(ended(once(Task::new("slow", talks).timeout(heartbeats))).await.1, 2 * SECOND);
    assert_eq!(ended(once(slow(Context::heartbeat).timeout(heartbeats))).await, (Ok(4), 5 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn the_idle_time_of_a_task_is_counted_anew_in_each_attempt() {
    let runs = Count::default();
    let counter = runs.clone();
    let task = Task::new("slow", move |n: i64| {
        let first = counter.up() == 0;
        async move {
            sleep(if first { 60 * SECOND } else { SECOND }).await;
            Ok::<_, BoxError>(n)
        }
    });
    let retry = RetryPolicy::new().jitter(false).initial_interval(10 * SECOND);
    let task = task.timeout(TimeoutPolicy::idle_only(2 * SECOND)).retry(retry);
    assert_eq!((ended(once(task)).await, runs.get()), ((Ok(4), 13 * SECOND), 2));
}

/// As in LangGraph (1.2.22: `idle_timeout` of an entrypoint beside a task that writes to the stream or calls
/// `heartbeat`): what a task does is no sign of life of its caller.
#[tokio::test(start_paused = true)]
async fn an_entrypoint_is_idle_while_it_waits_for_a_task() {
    let words = "node `flow` exceeded its idle timeout of 2s in step 0".to_owned();
    let flow = once(slow(Context::heartbeat)).timeout(TimeoutPolicy::idle_only(2 * SECOND));
    assert_eq!(ended(flow).await, (Err(words), 2 * SECOND));
    let beats = Entrypoint::new("flow", async |n: i64, cx: Context| {
        for _ in 0..5 {
            sleep(SECOND).await;
            cx.heartbeat();
        }
        n
    });
    assert_eq!(ended(beats.timeout(TimeoutPolicy::idle_only(2 * SECOND))).await, (Ok(4), 5 * SECOND));
}

#[tokio::test]
async fn limits_of_calls_that_make_no_sense_are_refused_by_name() {
    let none = "a timeout must be greater than zero";
    let lone = "`on_heartbeat_only` is about an idle limit, and there is none; add one with `.idle(..)`";
    let keeps = "results that are kept for no time are never found; give the cache a longer `ttl`, or none";
    let no_time = TimeoutPolicy::idle_only(Duration::ZERO);
    let cases = [
        (once(slow(|_| {}).timeout(no_time)), format!("task `slow`: {none}")),
        (once(slow(|_| {})).timeout(no_time), format!("entrypoint `flow`: {none}")),
        (once(slow(|_| {}).timeout(TimeoutPolicy::run(SECOND).on_heartbeat_only())), format!("task `slow`: {lone}")),
        (once(slow(|_| {}).cached(Some(Duration::ZERO))), format!("task `slow`: {keeps}")),
    ];
    for (flow, words) in cases {
        let error = flow.checkpointer(MemorySaver::new()).compile().invoke(4).thread("t").await.unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Invalid, words));
    }
}
