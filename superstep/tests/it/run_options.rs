//! What can be said about one run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use superstep::{
    CancellationToken, Context, Durability, ErrorKind, GoOn, MemorySaver, Mode, RunConfig, RunControl, Runtime, START,
    Send, Sent, StateGraph,
};

use crate::support::{Notes, NotesUpdate, a_b_c, events, saved, says, trace};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

#[tokio::test]
async fn threads_do_not_share_state() {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("x").await.unwrap();
    assert_eq!(app.invoke(input()).thread("x").await.unwrap().state.log.len(), 6);
    assert_eq!(app.invoke(input()).thread("y").await.unwrap().state.log.len(), 3);
}

#[tokio::test]
async fn a_run_from_an_older_checkpoint_makes_a_new_branch() {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("t").await.unwrap();
    let history = app.thread("t").history().await.unwrap();
    let before_b = history.iter().find(|s| s.next == ["b"]).unwrap().checkpoint.clone().unwrap();
    let out = app.invoke(GoOn).thread("t").checkpoint(before_b.id).await.unwrap();
    assert_eq!(out.state.log, ["a", "b", "c"]);
    expect_test::expect![[r#"
        -1 input  {"log":[],"total":0} -> __start__
         0 loop   {"log":[],"topic":"t","total":0} -> a
         1 loop   {"log":["a"],"topic":"t","total":0} -> b
         2 loop   {"log":["a","b"],"topic":"t","total":0} -> c
         3 loop   {"log":["a","b","c"],"topic":"t","total":0} -> 
         2 fork   {"log":["a"],"topic":"t","total":0} -> b
         3 loop   {"log":["a","b"],"topic":"t","total":0} -> c
         4 loop   {"log":["a","b","c"],"topic":"t","total":0} -> "#]]
    .assert_eq(&trace(&app.thread("t")).await.unwrap());
}

/// `n` steps of nodes need a limit of `n + 1`: the limit is asked before it is known that nothing is left.
#[tokio::test]
async fn a_run_takes_no_more_steps_than_its_limit() {
    for (limit, ends) in [(4, true), (3, false), (2, false), (1, false)] {
        let app = saved(&mut a_b_c());
        let result = app.invoke(input()).thread("t").recursion_limit(limit).await;
        assert_eq!(result.is_ok(), ends, "limit {limit}");
        if let Err(error) = result {
            assert_eq!((error.kind(), error.is_recursion_limit()), (ErrorKind::RecursionLimit, true));
            assert!(
                error.to_string().contains(&format!("took {limit} step{} without", if limit == 1 { "" } else { "s" })),
                "{error}"
            );
        }
        // What was done is saved, and a later run resumes there.
        let out = app.invoke(GoOn).thread("t").await.unwrap();
        assert_eq!(out.state.log, ["a", "b", "c"], "limit {limit}");
    }
}

#[tokio::test]
async fn a_limit_of_zero_is_refused() {
    let app = saved(&mut a_b_c());
    let error = app.invoke(input()).thread("t").recursion_limit(0).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Invalid, "a recursion limit must be at least 1")
    );
    let error = app.invoke(input()).thread("t").max_concurrency(0).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Invalid, "`max_concurrency` must be at least 1")
    );
    assert!(app.thread("t").state().await.unwrap().checkpoint.is_none(), "nothing was saved");
}

/// How many checkpoints each node saw when it ran.
async fn saved_while_running(durability: Durability) -> (Vec<String>, usize) {
    let saver = MemorySaver::new();
    let look = saver.clone();
    let node = move |_: Notes, cx: Context| {
        let look = look.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let found = superstep::Checkpointer::list(&look, "t", "", &superstep::ListQuery::new()).await?.len();
            Ok::<_, superstep::BoxError>(Notes::update().log([format!("{} saw {found}", cx.node())]))
        }
    };
    let mut graph = StateGraph::new();
    graph.add_node("a", node.clone()).add_node("b", node).add_sequence(["a", "b"]);
    let app = graph.checkpointer(saver).compile().unwrap();
    let log = app.invoke(input()).thread("t").durability(durability).await.unwrap().state.log;
    (log, app.thread("t").history().await.unwrap().len())
}

#[tokio::test(start_paused = true)]
async fn durability_says_when_steps_are_saved() {
    assert_eq!(saved_while_running(Durability::Sync).await, (vec!["a saw 2".into(), "b saw 3".into()], 4));
    assert_eq!(saved_while_running(Durability::Async).await, (vec!["a saw 2".into(), "b saw 3".into()], 4));
    assert_eq!(saved_while_running(Durability::Exit).await, (vec!["a saw 0".into(), "b saw 0".into()], 1));
}

#[tokio::test]
async fn with_durability_exit_a_failure_saves_what_was_done() {
    let fails = |_: Notes| async { Err::<(), _>("no") };
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_node("x", says("x")).add_node("fails", fails);
    let app = saved(graph.add_edge(START, "a").add_edge("a", "x").add_edge("a", "fails"));
    app.invoke(input()).thread("t").durability(Durability::Exit).await.unwrap_err();
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(
        (seen.next.clone(), seen.state.log.clone()),
        (vec!["fails".to_owned()], vec!["a".to_owned(), "x".to_owned()])
    );
    assert_eq!(seen.tasks.iter().filter_map(|t| Some(t.error.as_ref()?.message.clone())).collect::<Vec<_>>(), ["no"]);
}

#[tokio::test]
async fn a_run_may_stop_elsewhere_than_its_graph_says() {
    let next = |set: fn(superstep::Invoke<Notes>) -> superstep::Invoke<Notes>| async move {
        let app = saved(a_b_c().interrupt_before(["b"]));
        set(app.invoke(input()).thread("t")).await.unwrap();
        app.thread("t").state().await.unwrap().next
    };
    assert_eq!(next(|run| run).await, ["b"]);
    assert_eq!(next(|run| run.interrupt_before(["c"])).await, ["c"]);
    assert_eq!(next(|run| run.interrupt_before(["*"])).await, ["a"]);
    assert_eq!(next(|run| run.interrupt_before(Vec::<String>::new()).interrupt_after(["b"])).await, ["c"]);
    assert_eq!(next(|run| run.interrupt_before(Vec::<String>::new())).await, Vec::<String>::new());
}

#[tokio::test]
async fn output_keys_choose_what_is_shown() {
    let app = saved(&mut a_b_c());
    let out = app.invoke(input()).thread("t").output_keys(["topic"]).await.unwrap();
    assert_eq!(out.to_json(), json!({ "topic": "t" }));
    let all =
        events(app.stream(input()).thread("u").output_keys(["topic"]).modes([Mode::Values, Mode::Updates]).start())
            .await;
    let shown: Vec<_> = all.iter().map(|e| e["data"].clone()).collect();
    assert_eq!(shown, [json!({ "topic": "t" }), json!({ "a": null }), json!({ "b": null }), json!({ "c": null })]);
}

#[tokio::test]
async fn a_run_tells_its_nodes_what_its_caller_said() {
    let node = |_: Notes, config: RunConfig, number: Runtime<u32>, word: Runtime<&'static str>| async move {
        let thread = config.thread.as_deref().unwrap_or("none");
        Notes::update().log([format!(
            "{thread} {} {} {} {} {}",
            config.run_id, config.recursion_limit, config.metadata["who"], *number, *word
        )])
    };
    let app = saved(StateGraph::new().add_node("n", node).add_edge(START, "n"));
    let run = app
        .invoke(input())
        .thread("t")
        .run_id("r1")
        .recursion_limit(9)
        .metadata("who", "ada")
        .context(7u32)
        .context("seven");
    assert_eq!(run.await.unwrap().state.log, ["t r1 9 \"ada\" 7 seven"]);
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(seen.metadata["who"], json!("ada"), "metadata is kept in the checkpoints");
    let error = app.invoke(input()).thread("t").metadata("who", "ada").await.unwrap_err();
    assert!(error.to_string().contains("asks for a context of type `u32`"), "{error}");
}

#[tokio::test]
async fn a_drained_run_ends_its_step_and_starts_no_other() {
    let control = RunControl::new();
    let asks = control.clone();
    let b = move |_: Notes| {
        asks.request_drain("deploy");
        async { Notes::update().log(["b"]) }
    };
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_node("b", b).add_node("c", says("c")).add_sequence(["a", "b", "c"]);
    let app = saved(&mut graph);
    let error = app.invoke(input()).thread("t").control(control).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Drained, "the run was asked to stop: deploy"));
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(
        (seen.next.clone(), seen.state.log.clone()),
        (vec!["c".to_owned()], vec!["a".to_owned(), "b".to_owned()])
    );
    assert_eq!(app.invoke(GoOn).thread("t").await.unwrap().state.log, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_drain_asked_for_in_the_last_step_changes_nothing() {
    let node = |_: Notes, cx: Context| async move {
        cx.control().request_drain("late");
        Notes::update().log(["n"])
    };
    let app = saved(StateGraph::new().add_node("n", node).add_edge(START, "n"));
    assert_eq!(app.invoke(input()).thread("t").await.unwrap().state.log, ["n"]);
}

#[tokio::test(start_paused = true)]
async fn no_more_tasks_run_at_once_than_allowed() {
    let most = |limit: Option<usize>| async move {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (running, high) = (now, most.clone());
        let work = move |Sent(_): Sent<i64>| {
            let (running, high) = (running.clone(), high.clone());
            async move {
                high.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                running.fetch_sub(1, Ordering::SeqCst);
            }
        };
        let sends = |_: &Notes| (0..10).map(|n| Send::new("work", n)).collect::<Vec<_>>();
        let app =
            StateGraph::<Notes>::new().add_node("work", work).add_conditional_edges(START, sends).compile().unwrap();
        let run = app.invoke(input());
        match limit {
            Some(limit) => run.max_concurrency(limit).await,
            None => run.await,
        }
        .unwrap();
        most.load(Ordering::SeqCst)
    };
    assert_eq!(most(None).await, 10);
    assert_eq!(most(Some(3)).await, 3);
    assert_eq!(most(Some(1)).await, 1);
}

#[tokio::test]
async fn a_node_may_watch_its_runs_cancellation() {
    let token = CancellationToken::new();
    let outer = token.clone();
    let node = move |_: Notes, token: CancellationToken| {
        let outer = outer.clone();
        async move {
            let before = token.is_cancelled();
            outer.cancel();
            Notes::update().log([format!("{before} {}", token.is_cancelled())])
        }
    };
    let app = StateGraph::new()
        .add_node("n", node)
        .add_edge(START, "n")
        .add_node("next", says("next"))
        .add_edge("n", "next")
        .compile()
        .unwrap();
    let error = app.invoke(input()).cancellation(token).await.unwrap_err();
    assert!(error.is_cancelled(), "{error}");
}

#[test]
fn blocking_runs_need_no_runtime() {
    let app = saved(&mut a_b_c());
    assert_eq!(app.invoke(input()).thread("t").blocking().unwrap().state.log, ["a", "b", "c"]);
    let mut updates = Vec::new();
    app.stream(input()).thread("u").blocking(|event| updates.push(event.to_json())).unwrap();
    assert_eq!(updates.len(), 3);
}

#[tokio::test]
async fn a_blocking_run_inside_a_runtime_is_refused() {
    let error = saved(&mut a_b_c()).invoke(input()).thread("t").blocking().unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (
            ErrorKind::Invalid,
            "`blocking` was called inside an async runtime; await the run there, or call it in `tokio::task::spawn_blocking`"
        )
    );
}

#[tokio::test]
async fn a_blocking_run_is_fine_where_a_runtime_lets_threads_block() {
    let app = saved(&mut a_b_c());
    let run = move || app.invoke(input()).thread("t").blocking().unwrap().state.log;
    assert_eq!(tokio::task::spawn_blocking(run).await.unwrap(), ["a", "b", "c"]);
}

#[tokio::test]
async fn the_greatest_recursion_limits_are_no_limit() {
    let app = saved(&mut a_b_c());
    for limit in [usize::MAX, usize::MAX / 2, i64::MAX as usize - 1] {
        let thread = limit.to_string();
        let run = app.invoke(input()).thread(thread.clone()).recursion_limit(limit).interrupt_before(["c"]);
        assert_eq!(run.await.unwrap().state.log, ["a", "b"]);
        let run = app.invoke(GoOn).thread(thread).recursion_limit(limit);
        assert_eq!(run.await.unwrap().state.log, ["a", "b", "c"]);
    }
}
