//! How long an attempt and a step may take.

use std::time::Duration;

use superstep::{
    BoxError, Command, CompiledStateGraph, Context, Error, ErrorKind, GoOn, MemorySaver, NodeDefaults, NodeOptions,
    RetryPolicy, START, Send, Sent, StateGraph, StreamWriter, TimeoutPolicy,
};
use tokio::time::{Instant, sleep};

use crate::support::{Count, Notes, says};

const SECOND: Duration = Duration::from_secs(1);

/// One node that takes five seconds, telling that it is alive every second in some way.
fn slow(options: NodeOptions<Notes>, alive: fn(&Context)) -> CompiledStateGraph<Notes> {
    let node = move |_: Notes, cx: Context| async move {
        for _ in 0..5 {
            sleep(SECOND).await;
            alive(&cx);
        }
        Notes::update().log(["done"])
    };
    StateGraph::new().add_node_with("slow", node, options).add_edge(START, "slow").compile().expect("no mistakes")
}

async fn run(app: &CompiledStateGraph<Notes>) -> (Duration, Result<Vec<String>, Error>) {
    let start = Instant::now();
    let result = app.invoke(Notes::update().topic("t")).await.map(|out| out.state.log);
    (start.elapsed(), result)
}

#[tokio::test(start_paused = true)]
async fn a_node_may_take_as_long_as_its_limit() {
    let (took, log) = run(&slow(NodeOptions::new().timeout(6 * SECOND), |_| {})).await;
    assert_eq!((took, log.unwrap()), (5 * SECOND, vec!["done".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_takes_longer_fails_with_its_name_and_limit() {
    let (took, result) = run(&slow(NodeOptions::new().timeout(3 * SECOND), Context::heartbeat)).await;
    let error = result.unwrap_err();
    assert_eq!((took, error.kind(), error.node()), (3 * SECOND, ErrorKind::Timeout, Some("slow")));
    assert_eq!(error.to_string(), "node `slow` exceeded its run timeout of 3s in step 1");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_sign_of_life_is_idle() {
    let policy = TimeoutPolicy::idle_only(2 * SECOND);
    let (took, result) = run(&slow(NodeOptions::new().timeout(policy), |_| {})).await;
    assert_eq!(
        (took, result.unwrap_err().to_string().as_str()),
        (2 * SECOND, "node `slow` exceeded its idle timeout of 2s in step 1")
    );
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_is_a_sign_of_life() {
    let policy = TimeoutPolicy::idle_only(2 * SECOND).on_heartbeat_only();
    assert!(run(&slow(NodeOptions::new().timeout(policy), Context::heartbeat)).await.1.is_ok());
}

#[tokio::test(start_paused = true)]
async fn idle_and_run_limits_both_count() {
    let policy = TimeoutPolicy::run(4 * SECOND).idle(2 * SECOND);
    assert_eq!(run(&slow(NodeOptions::new().timeout(policy), |_| {})).await.0, 2 * SECOND);
    assert_eq!(run(&slow(NodeOptions::new().timeout(policy), Context::heartbeat)).await.0, 4 * SECOND);
}

/// One node that takes three seconds and sends an event every second.
fn talkative(policy: TimeoutPolicy) -> CompiledStateGraph<Notes> {
    let node = |_: Notes, writer: StreamWriter| async move {
        for n in 0..3 {
            sleep(SECOND).await;
            writer.send(n).await;
        }
    };
    let options = NodeOptions::new().timeout(policy);
    StateGraph::new().add_node_with("talks", node, options).add_edge(START, "talks").compile().expect("no mistakes")
}

#[tokio::test(start_paused = true)]
async fn an_event_is_a_sign_of_life_unless_only_heartbeats_count() {
    let idle = TimeoutPolicy::idle_only(Duration::from_millis(1500));
    assert!(run(&talkative(idle)).await.1.is_ok());
    let error = run(&talkative(idle.on_heartbeat_only())).await.1.unwrap_err();
    assert!(error.is_timeout(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_per_attempt_and_can_be_retried() {
    let runs = Count::default();
    let counter = runs.clone();
    let node = move |_: Notes| {
        let first = counter.up() == 0;
        async move {
            sleep(if first { 60 * SECOND } else { SECOND }).await;
            Notes::update().log(["done"])
        }
    };
    let retry = RetryPolicy::new().jitter(false).initial_interval(SECOND);
    let options = NodeOptions::new().timeout(2 * SECOND).retry(retry);
    let app = StateGraph::new().add_node_with("n", node, options).add_edge(START, "n").compile().unwrap();
    let (took, log) = run(&app).await;
    assert_eq!((took, log.unwrap(), runs.get()), (4 * SECOND, vec!["done".to_owned()], 2));
}

#[tokio::test(start_paused = true)]
async fn default_timeout_is_for_nodes_without_their_own() {
    let node = |_: Notes| async { sleep(5 * SECOND).await };
    let graph = |options| {
        let defaults = NodeDefaults::new().timeout(SECOND);
        StateGraph::new()
            .set_node_defaults(defaults)
            .add_node_with("n", node, options)
            .add_edge(START, "n")
            .compile()
            .unwrap()
    };
    assert_eq!(run(&graph(NodeOptions::new())).await.0, SECOND);
    assert!(run(&graph(NodeOptions::new().timeout(6 * SECOND))).await.1.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_send_may_bring_its_own_timeout() {
    let graph = |send: fn() -> Send| {
        let work = |Sent(seconds): Sent<u64>| async move { sleep(seconds as u32 * SECOND).await };
        StateGraph::<Notes>::new()
            .add_node_with("work", work, NodeOptions::new().timeout(2 * SECOND))
            .add_conditional_edges(START, move |_: &Notes| send())
            .compile()
            .unwrap()
    };
    assert_eq!(run(&graph(|| Send::new("work", 3u64))).await.0, 2 * SECOND);
    assert!(run(&graph(|| Send::new("work", 3u64).timeout(4 * SECOND))).await.1.is_ok());
    assert_eq!(run(&graph(|| Send::new("work", 3u64).timeout(SECOND))).await.0, SECOND);
}

/// Sends work of a second to a node with a limit of half of one; the send may say otherwise, and the run stops in between.
async fn restarted(send: fn() -> Send) -> Result<Vec<String>, Error> {
    let graph = |saver: MemorySaver| {
        let work = |Sent(seconds): Sent<u64>| async move {
            sleep(seconds as u32 * SECOND).await;
            Notes::update().log(["worked"])
        };
        StateGraph::<Notes>::new()
            .add_node("sends", says("sends"))
            .add_node_with("work", work, NodeOptions::new().timeout(SECOND / 2))
            .add_edge(START, "sends")
            .add_conditional_edges("sends", move |_: &Notes| send())
            .interrupt_after(["sends"])
            .checkpointer(saver)
            .compile()
            .unwrap()
    };
    let saver = MemorySaver::new();
    graph(saver.clone()).invoke(Notes::update().topic("t")).thread("t").await?;
    graph(saver).invoke(GoOn).thread("t").await.map(|out| out.state.log)
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_send_is_kept_over_a_restart() {
    assert!(restarted(|| Send::new("work", 1u64)).await.unwrap_err().is_timeout());
    assert_eq!(restarted(|| Send::new("work", 1u64).timeout(2 * SECOND)).await.unwrap(), ["sends", "worked"]);
    assert_eq!(restarted(|| Send::new("work", 1u64).timeout(Duration::MAX)).await.unwrap(), ["sends", "worked"]);
    let idle = || Send::new("work", 1u64).timeout(TimeoutPolicy::idle_only(SECOND / 4));
    assert_eq!(
        restarted(idle).await.unwrap_err().to_string(),
        "node `work` exceeded its idle timeout of 250ms in step 2"
    );
    // A limit of less than a millisecond is still a limit of some time.
    let short = || Send::new("work", 1u64).timeout(Duration::from_micros(10));
    assert_eq!(
        restarted(short).await.unwrap_err().to_string(),
        "node `work` exceeded its run timeout of 1ms in step 2"
    );
}

#[tokio::test(start_paused = true)]
async fn a_send_with_a_limit_of_no_time_is_the_senders_error() {
    let ran = Count::default();
    let counter = ran.clone();
    let work = move |Sent(_): Sent<u64>| {
        counter.up();
        async {}
    };
    let zero = || Send::new("work", 1u64).timeout(Duration::ZERO);
    let words = "a send to `work` has a limit of no time: a timeout must be greater than zero";
    let by_edge = StateGraph::<Notes>::new()
        .add_node("a", says("a"))
        .add_node("work", work.clone())
        .add_edge(START, "a")
        .add_conditional_edges("a", move |_: &Notes| zero())
        .compile()
        .unwrap();
    let error = run(&by_edge).await.1.unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Invalid, Some("a")));
    assert_eq!(error.to_string(), format!("a conditional edge of `a` in step 1: {words}"));

    let idle_zero = move || zero().timeout(TimeoutPolicy::idle_only(Duration::ZERO));
    let commands = move |_: Notes| async move { Command::<Notes>::new().goto(idle_zero()) };
    let by_command = StateGraph::<Notes>::new()
        .add_node("a", commands)
        .add_node("work", work)
        .add_edge(START, "a")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let error = by_command.invoke(Notes::update().topic("t")).thread("t").await.unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Invalid, Some("a")));
    assert_eq!(error.to_string(), format!("node `a` in step 1: {words}"));

    let thread = by_command.thread("u");
    let error = by_command.invoke(Command::<Notes>::new().goto(zero())).thread("u").await.unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Invalid, format!("the command: {words}")));
    let error = thread.update(Command::<Notes>::new().goto(zero())).as_node("a").await.unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Invalid, format!("node `a`: {words}")));
    assert!(thread.history().await.unwrap().is_empty());
    assert_eq!(ran.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_step_may_take_as_long_as_the_graph_says() {
    let graph = |limit: Duration| {
        let node = |seconds: u32| move |_: Notes| async move { sleep(seconds * SECOND).await };
        let mut graph = StateGraph::new();
        graph.add_node("quick", node(1)).add_node("slow", node(3)).add_edge(START, "quick").add_edge(START, "slow");
        graph.step_timeout(limit).compile().unwrap()
    };
    let (took, result) = run(&graph(2 * SECOND)).await;
    let error = result.unwrap_err();
    assert_eq!(
        (took, error.kind(), error.to_string().as_str()),
        (2 * SECOND, ErrorKind::Timeout, "step 1 exceeded its timeout of 2s")
    );
    assert!(run(&graph(4 * SECOND)).await.1.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_a_node_does_after_its_timeout_does_not_count() {
    let late = Count::default();
    let counter = late.clone();
    let node = move |_: Notes| {
        let counter = counter.clone();
        async move {
            sleep(5 * SECOND).await;
            counter.up();
            Ok::<_, BoxError>(Notes::update().log(["late"]))
        }
    };
    let options = NodeOptions::new().timeout(SECOND).error_handler(says("handled"));
    let app = StateGraph::new().add_node_with("n", node, options).add_edge(START, "n").compile().unwrap();
    assert_eq!(run(&app).await.1.unwrap(), ["handled"]);
    sleep(60 * SECOND).await;
    assert_eq!(late.get(), 0, "the attempt was stopped, not only forgotten");
}

#[test]
fn a_blocking_node_has_no_timeout_or_keeps_to_it() {
    // A computation on the blocking pool cannot be stopped: the graph says so, or the wait for it ends.
    let node = |_: Notes| async { std::future::pending::<()>().await };
    let options = NodeOptions::new().blocking().timeout(Duration::from_millis(50));
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node_with("heavy", node, options).add_edge(START, "heavy");
    let Ok(app) = graph.compile() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let guard = runtime.block_on(async {
        tokio::time::timeout(5 * SECOND, app.invoke(Notes::update().topic("t")).into_future()).await
    });
    runtime.shutdown_background();
    let error = guard.expect("the run ends within its timeout").unwrap_err();
    assert!(error.is_timeout(), "{error}");
}

#[tokio::test]
async fn a_send_with_a_timeout_to_blocking_work_is_refused() {
    let ran = Count::default();
    let counts = ran.clone();
    let work = move |_: Sent<i64>| {
        counts.up();
        async { Notes::update().log(["done"]) }
    };
    let app = StateGraph::<Notes>::new()
        .add_node_with("work", work, NodeOptions::new().blocking().retry(RetryPolicy::new()))
        .add_conditional_edges(START, |_: &Notes| Send::new("work", 1i64).timeout(SECOND))
        .compile()
        .unwrap();
    let error = run(&app).await.1.unwrap_err();
    assert_eq!((error.kind(), error.node(), ran.get()), (ErrorKind::Invalid, Some("work"), 0));
    assert!(error.to_string().contains("a send to `work` has a timeout, but work on the blocking pool"), "{error}");
}
