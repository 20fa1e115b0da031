//! When and how often a failed node runs again.

use std::time::Duration;

use superstep::{
    Attempt, BoxError, CompiledStateGraph, Error, ErrorKind, NodeDefaults, NodeOptions, RetryPolicy, START, StateGraph,
    Terminal,
};
use tokio::time::Instant;

use crate::support::{Count, Notes, NotesUpdate, says};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Flaky(&'static str);

/// One node that fails with these errors, one after another, and then succeeds.
fn failing(errors: &'static [&'static str], options: NodeOptions<Notes>) -> (CompiledStateGraph<Notes>, Count) {
    let runs = Count::default();
    let counter = runs.clone();
    let node = move |_: Notes, Attempt(attempt): Attempt| {
        let failure = errors.get(counter.up()).map(|e| Flaky(e));
        async move { failure.map_or(Ok(Notes::update().log([format!("attempt {attempt}")])), Err) }
    };
    let mut graph = StateGraph::new();
    graph.add_node_with("flaky", node, options).add_edge(START, "flaky");
    (graph.compile().expect("the graph has no mistakes"), runs)
}

fn every(pause: Duration) -> RetryPolicy {
    RetryPolicy::new().initial_interval(pause).backoff_factor(1.0).jitter(false)
}

fn is(text: &'static str) -> impl Fn(&Error) -> bool + Send + Sync {
    move |error| error.downcast_ref::<Flaky>().is_some_and(|f| f.0 == text)
}

async fn time_of(app: &CompiledStateGraph<Notes>) -> (Duration, Result<Vec<String>, Error>) {
    let start = Instant::now();
    let result = app.invoke(Notes::update().topic("t")).await.map(|out| out.state.log);
    (start.elapsed(), result)
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_a_node_fails_at_once() {
    let (app, runs) = failing(&["one"], NodeOptions::new());
    let error = time_of(&app).await.1.unwrap_err();
    assert_eq!((error.kind(), error.node(), runs.get()), (ErrorKind::Node, Some("flaky"), 1));
    assert_eq!(error.to_string(), "node `flaky` failed in step 1: one");
}

#[tokio::test(start_paused = true)]
async fn a_node_runs_again_until_it_succeeds_and_is_told_which_attempt_it_is() {
    let (app, runs) = failing(&["one", "two"], NodeOptions::new().retry(every(SECOND)));
    let (took, log) = time_of(&app).await;
    assert_eq!((took, log.unwrap(), runs.get()), (2 * SECOND, vec!["attempt 3".to_owned()], 3));
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_with_the_first_one() {
    let (app, runs) = failing(&["one", "two", "three"], NodeOptions::new().retry(every(SECOND).max_attempts(2)));
    let error = time_of(&app).await.1.unwrap_err();
    assert_eq!((error.to_string().as_str(), runs.get()), ("node `flaky` failed in step 1: two", 2));
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_by_the_factor_up_to_the_longest() {
    let policy = every(SECOND).backoff_factor(3.0).max_interval(5 * SECOND).max_attempts(5);
    let (app, _) = failing(&["1", "2", "3", "4"], NodeOptions::new().retry(policy));
    let (took, log) = time_of(&app).await;
    assert_eq!((took, log.unwrap().len()), ((1 + 3 + 5 + 5) * SECOND, 1));
}

#[tokio::test(start_paused = true)]
async fn the_defaults_are_three_attempts_half_a_second_apart_and_doubling() {
    let (app, runs) = failing(&["1", "2", "3"], NodeOptions::new().retry(RetryPolicy::new().jitter(false)));
    let (took, result) = time_of(&app).await;
    assert_eq!((took, result.is_err(), runs.get()), (Duration::from_millis(500 + 1000), true, 3));
}

#[tokio::test(start_paused = true)]
async fn jitter_adds_less_than_a_second_to_each_pause() {
    let mut extra = Duration::ZERO;
    for _ in 0..20 {
        let (app, _) = failing(&["1"], NodeOptions::new().retry(every(SECOND).jitter(true)));
        let took = time_of(&app).await.0;
        assert!((SECOND..2 * SECOND).contains(&took), "{took:?}");
        extra += took.saturating_sub(SECOND);
    }
    assert!(extra > Duration::ZERO, "of twenty pauses at least one was longer");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_the_policy_is_not_for_is_not_retried() {
    let (app, runs) = failing(&["network", "input"], NodeOptions::new().retry(every(SECOND).retry_on(is("network"))));
    let error = time_of(&app).await.1.unwrap_err();
    assert_eq!((error.to_string().as_str(), runs.get()), ("node `flaky` failed in step 1: input", 2));
}

#[tokio::test(start_paused = true)]
async fn of_several_policies_the_first_that_is_for_the_error_counts() {
    let slow = every(10 * SECOND).retry_on(is("network")).max_attempts(3);
    let quick = every(SECOND).max_attempts(4);
    let (app, runs) =
        failing(&["network", "other", "other"], NodeOptions::new().retry(slow.clone()).retry(quick.clone()));
    assert_eq!((time_of(&app).await.0, runs.get()), (12 * SECOND, 4));
    // In the other order the first policy is for everything, and the second is never asked.
    let (app, _) = failing(&["network", "other", "other"], NodeOptions::new().retry(quick).retry(slow));
    assert_eq!(time_of(&app).await.0, 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_across_policies() {
    let twice = every(SECOND).retry_on(is("network")).max_attempts(2);
    let often = every(SECOND).max_attempts(9);
    let (app, runs) = failing(&["other", "network"], NodeOptions::new().retry(twice).retry(often));
    let error = time_of(&app).await.1.unwrap_err();
    assert_eq!((error.to_string().as_str(), runs.get()), ("node `flaky` failed in step 1: network", 2));
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_not_retried_by_default() {
    let runs = Count::default();
    let counter = runs.clone();
    let node = move |_: Notes| {
        counter.up();
        async { Err::<(), _>(Terminal::new("no card")) }
    };
    let options = NodeOptions::new().retry(every(SECOND));
    let app = StateGraph::new().add_node_with("pay", node, options).add_edge(START, "pay").compile().unwrap();
    let error = app.invoke(Notes::update().topic("t")).await.unwrap_err();
    assert_eq!((error.is_retryable(), runs.get()), (false, 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_attempt_wrote_is_dropped() {
    let (app, _) = failing(&["one"], NodeOptions::new().retry(every(SECOND)));
    assert_eq!(time_of(&app).await.1.unwrap(), ["attempt 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_conditional_edge_that_fails_fails_its_node_and_is_retried_with_it() {
    let (runs, asked) = (Count::default(), Count::default());
    let counter = runs.clone();
    let node = move |_: Notes| {
        counter.up();
        async { Notes::update().total(1) }
    };
    let path = move |_: &Notes| if asked.up() == 0 { Err::<&str, BoxError>("not now".into()) } else { Ok("b") };
    let app = StateGraph::new()
        .add_node_with("a", node, NodeOptions::new().retry(every(SECOND)))
        .add_node("b", says("b"))
        .add_edge(START, "a")
        .add_conditional_edges("a", path)
        .compile()
        .unwrap();
    let out = app.invoke(Notes::update().topic("t")).await.unwrap();
    assert_eq!((out.state.total, out.state.log.clone(), runs.get()), (1, vec!["b".to_owned()], 2));
}

#[tokio::test(start_paused = true)]
async fn default_retry_is_for_nodes_without_their_own_and_for_handlers() {
    let (runs, handled) = (Count::default(), Count::default());
    let (counter, handler_counter) = (runs.clone(), handled.clone());
    let fails = move |_: Notes| {
        counter.up();
        async { Err::<(), _>(Flaky("always")) }
    };
    let rescue = move |_: Notes| {
        let failure = (handler_counter.up() == 0).then_some(Flaky("handler"));
        async move { failure.map_or(Ok(Notes::update().log(["handled"])), Err::<NotesUpdate, _>) }
    };
    let app = StateGraph::new()
        .set_node_defaults(NodeDefaults::new().retry(every(SECOND).max_attempts(4)))
        .add_node_with("own", fails, NodeOptions::new().retry(every(SECOND).max_attempts(2)).error_handler(rescue))
        .add_edge(START, "own")
        .compile()
        .unwrap();
    let out = app.invoke(Notes::update().topic("t")).await.unwrap();
    assert_eq!((out.state.log.clone(), runs.get(), handled.get()), (vec!["handled".to_owned()], 2, 2));

    let runs = Count::default();
    let counter = runs.clone();
    let fails = move |_: Notes| {
        counter.up();
        async { Err::<(), _>(Flaky("always")) }
    };
    let defaults = NodeDefaults::new().retry(every(SECOND).max_attempts(4));
    let app =
        StateGraph::new().set_node_defaults(defaults).add_node("n", fails).add_edge(START, "n").compile().unwrap();
    assert!(app.invoke(Notes::update().topic("t")).await.is_err());
    assert_eq!(runs.get(), 4);
}

#[tokio::test(start_paused = true)]
async fn pauses_beyond_all_numbers_are_the_longest_and_no_pause_stays_none() {
    let fails = |times: usize, policy: RetryPolicy| {
        let runs = Count::default();
        let node = move |_: Notes| {
            let failed = runs.up() < times;
            async move { if failed { Err(Flaky("not yet")) } else { Ok(Notes::update().log(["done"])) } }
        };
        let options = NodeOptions::new().retry(policy);
        StateGraph::new().add_node_with("n", node, options).add_edge(START, "n").compile().unwrap()
    };
    // Two to the power of 1100 is more than any number.
    let none = every(Duration::ZERO).backoff_factor(2.0).max_attempts(2000);
    assert_eq!(time_of(&fails(1100, none)).await.0, Duration::ZERO);
    let steep = every(SECOND).backoff_factor(1e300).max_attempts(9);
    let (took, log) = time_of(&fails(3, steep.max_interval(5 * SECOND))).await;
    assert_eq!((took, log.unwrap().len()), ((1 + 5 + 5) * SECOND, 1));
    let odd = every(SECOND).backoff_factor(f64::NAN);
    assert!(time_of(&fails(2, odd)).await.1.is_ok(), "a factor that is no number does not stop the run");
}

#[tokio::test(start_paused = true)]
async fn a_subgraph_that_is_tried_again_starts_anew_in_every_attempt() {
    let kinds: [fn(&mut StateGraph<Notes>) -> &mut StateGraph<Notes>; 3] =
        [|g| g, StateGraph::persistent, StateGraph::stateless];
    for kind in kinds {
        let (one, two) = (Count::default(), Count::default());
        let (first, second) = (one.clone(), two.clone());
        let first = move |_: Notes| {
            first.up();
            async { Notes::update().log(["one"]) }
        };
        let second = move |_: Notes| {
            let failed = second.up() == 0;
            async move { if failed { Err(Flaky("not yet")) } else { Ok(Notes::update().log(["two"])) } }
        };
        let mut child = StateGraph::new();
        child.add_node("one", first).add_node("two", second).add_sequence(["one", "two"]);
        let options = NodeOptions::new().retry(every(SECOND));
        let app = StateGraph::new()
            .add_node_with("child", kind(&mut child).compile().unwrap(), options)
            .add_edge(START, "child")
            .checkpointer(superstep::MemorySaver::new())
            .compile()
            .unwrap();
        let out = app.invoke(Notes::update().topic("t")).thread("t").await.unwrap();
        assert_eq!((out.state.log.join(" ").as_str(), one.get(), two.get()), ("one two", 2, 2));
    }
}
