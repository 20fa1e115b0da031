//! What bounds a node bounds its paths: retries, limits of time, cancellation, error handlers, walls around panics.

use std::future::pending;
use std::time::Duration;

use superstep::{
    Attempt, BoxError, Context, Error, ErrorKind, GoOn, NodeError, NodeOptions, RetryPolicy, START, TimeoutPolicy,
};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{behind_a, input};
use crate::support::{Count, Notes, NotesUpdate, saved, says};

const SECOND: Duration = Duration::from_secs(1);

/// A node that takes a second, and a path that takes two, telling that it is alive each second in some way.
async fn run_slowly(options: NodeOptions<Notes>, alive: fn(&Context)) -> (Duration, Result<Vec<String>, Error>) {
    let mut graph = superstep::StateGraph::new();
    let node = async |_: Notes| {
        sleep(SECOND).await;
        Notes::update().log(["a"])
    };
    graph.add_node_with("a", node, options).add_node("z", says("z")).add_edge(START, "a");
    graph.add_conditional_edges("a", move |_: Notes, cx: Context| async move {
        for _ in 0..2 {
            sleep(SECOND).await;
            alive(&cx);
        }
        "z"
    });
    let start = Instant::now();
    let result = graph.compile().unwrap().invoke(input()).await.map(|out| out.state.log);
    (start.elapsed(), result)
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_time_is_for_a_node_and_its_paths_together() {
    let (took, log) = run_slowly(NodeOptions::new().timeout(4 * SECOND), |_| {}).await;
    assert_eq!((took, log.unwrap().join(" ")), (3 * SECOND, "a z".to_owned()));
    let (took, log) = run_slowly(NodeOptions::new().timeout(2 * SECOND), Context::heartbeat).await;
    let error = log.unwrap_err();
    assert_eq!((took, error.kind(), error.node()), (2 * SECOND, ErrorKind::Timeout, Some("a")));
    assert_eq!(error.to_string(), "node `a` exceeded its run timeout of 2s in step 1");
}

#[tokio::test(start_paused = true)]
async fn a_path_without_a_sign_of_life_is_idle() {
    let idle = |limit| NodeOptions::new().timeout(TimeoutPolicy::idle_only(limit));
    let (took, log) = run_slowly(idle(SECOND * 3 / 2), |_| {}).await;
    assert_eq!((took, log.unwrap_err().kind()), (SECOND * 5 / 2, ErrorKind::Timeout), "the end of the node was a sign");
    let (took, log) = run_slowly(idle(SECOND * 3 / 2), Context::heartbeat).await;
    assert_eq!((took, log.unwrap().join(" ")), (3 * SECOND, "a z".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_path_that_waits_is_cancelled_with_its_run() {
    for (beside, options) in
        [(false, NodeOptions::new()), (true, NodeOptions::new()), (false, NodeOptions::new().blocking())]
    {
        let (token, runs) = (CancellationToken::new(), Count::default());
        let cancel = token.clone();
        let path = move |_: Notes| {
            let cancel = cancel.clone();
            async move {
                cancel.cancel();
                pending::<&str>().await
            }
        };
        let mut graph = behind_a(&runs, options, path);
        if beside {
            graph.add_node("b", says("b")).add_edge(START, "b");
        }
        let app = graph.compile().unwrap();
        let ended = timeout(SECOND, app.invoke(input()).cancellation(token).run_to_its_end()).await;
        assert_eq!(ended.expect("it ends at once").unwrap_err().kind(), ErrorKind::Cancelled, "beside: {beside}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_of_the_start_that_waits_is_cancelled_with_its_run() {
    let token = CancellationToken::new();
    let cancel = token.clone();
    let mut graph = superstep::StateGraph::new();
    graph.add_node("z", says("z")).set_conditional_entry_point(move |_: Notes| {
        let cancel = cancel.clone();
        async move {
            cancel.cancel();
            pending::<&str>().await
        }
    });
    let app = graph.compile().unwrap();
    let ended = timeout(SECOND, app.invoke(input()).cancellation(token).run_to_its_end()).await;
    assert_eq!(ended.expect("it ends at once").unwrap_err().kind(), ErrorKind::Cancelled);
}

/// A run as a plain future, for `timeout`.
trait ToTheEnd {
    async fn run_to_its_end(self) -> Result<superstep::Output<Notes>, Error>;
}

impl ToTheEnd for superstep::Invoke<Notes> {
    async fn run_to_its_end(self) -> Result<superstep::Output<Notes>, Error> {
        self.await
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_knows_which_attempt_it_is_part_of() {
    let runs = Count::default();
    let path = async |_: Notes, Attempt(attempt): Attempt| -> Result<&str, BoxError> {
        if attempt < 3 { Err(format!("attempt {attempt}").into()) } else { Ok("z") }
    };
    let app = behind_a(&runs, NodeOptions::new().retry(RetryPolicy::new().max_attempts(3)), path).compile().unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().state.log, ["a", "z"]);
    assert_eq!(runs.get(), 3, "the node runs again with its path");
}

/// LangGraph keeps what the node had written before its path failed; the handler's writes come to it.
#[tokio::test]
async fn the_error_handler_of_a_node_gets_the_failures_of_its_paths() {
    async fn handle(_: Notes, error: NodeError) -> NotesUpdate {
        Notes::update().log([format!("handled {}", error.message())]).topic("handled")
    }
    let path = async |_: Notes, _: Context| Err::<&str, BoxError>("no way".into());
    let app = saved(&mut behind_a(&Count::default(), NodeOptions::new().error_handler(handle), path));
    let out = app.invoke(input()).thread("t").await.unwrap();
    assert_eq!(out.state.log.len(), 2, "{:?}", out.state.log);
    assert!(out.state.log[0] == "a" && out.state.log[1].contains("no way"), "{:?}", out.state.log);
}

#[tokio::test]
async fn a_panic_of_a_path_is_an_error_that_names_its_node() {
    fn at_once(_: Notes, _: Context) -> std::future::Ready<&'static str> {
        panic!("at once")
    }
    async fn later(_: Notes, _: Context) -> &'static str {
        tokio::task::yield_now().await;
        panic!("later")
    }
    let check = |error: Error, text: &str| {
        assert_eq!((error.kind(), error.node()), (ErrorKind::Panic, Some("a")));
        assert_eq!(error.to_string(), format!("a conditional edge of `a` panicked in step 1: {text}"));
    };
    let runs = Count::default();
    for beside in [false, true] {
        let mut graphs = [behind_a(&runs, NodeOptions::new(), at_once), behind_a(&runs, NodeOptions::new(), later)];
        for (graph, text) in graphs.iter_mut().zip(["at once", "later"]) {
            if beside {
                graph.add_node("b", says("b")).add_edge(START, "b");
            }
            check(graph.compile().unwrap().invoke(input()).await.unwrap_err(), text);
        }
    }
}

/// LangGraph keeps what the node of a path wrote that it cut off, counts the node as done, and never runs the path again: the
/// run then ends without its route. Here node and path run again.
#[tokio::test(start_paused = true)]
async fn a_path_that_is_cut_off_by_a_siblings_failure_runs_again() {
    let (runs, failed) = (Count::default(), Count::default());
    let path = async |_: Notes| {
        sleep(2 * SECOND).await;
        "z"
    };
    let mut graph = behind_a(&runs, NodeOptions::new(), path);
    graph.add_node("b", move |_: Notes| {
        let fails = failed.up() == 0;
        async move {
            sleep(SECOND).await;
            if fails { Err::<_, BoxError>("b fails".into()) } else { Ok(Notes::update().log(["b"])) }
        }
    });
    let app = saved(graph.add_edge(START, "b"));
    app.invoke(input()).thread("t").await.unwrap_err();
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!((out.state.log.join(" "), runs.get()), ("a b z".to_owned(), 2));
}
