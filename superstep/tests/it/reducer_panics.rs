//! A reducer that panics fails the run by name, and leaves the thread where it was.

use serde::{Deserialize, Serialize};
use superstep::{Durability, END, Error, ErrorKind, MemorySaver, NodeOptions, RetryPolicy, START, State, StateGraph};

fn keep_positive(total: &mut i64, new: i64) {
    assert!(new >= 0, "{new} is negative");
    *total += new;
}

#[derive(State, Clone, Default, Debug, Serialize, Deserialize)]
struct Sums {
    #[state(append)]
    log: Vec<String>,
    #[state(reduce = keep_positive)]
    total: i64,
    next: i64,
}

/// Adds what `next` says.
async fn add(sums: Sums) -> SumsUpdate {
    Sums::update().log(["added"]).total(sums.next)
}

fn graph() -> StateGraph<Sums> {
    let mut graph = StateGraph::new();
    graph.add_node("first", async |_: Sums| Sums::update().log(["first"])).add_node("add", add);
    graph
}

fn check(error: &Error, node: Option<&str>, words: &str) {
    assert_eq!((error.kind(), error.node(), error.to_string().as_str()), (ErrorKind::Panic, node, words));
}

fn words(step: i64) -> String {
    format!("field `total`: its reducer panicked: -1 is negative (in what `add` wrote in step {step})")
}

#[tokio::test]
async fn it_is_an_error_that_names_node_and_field_with_every_durability() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let app = graph().add_sequence(["first", "add"]).checkpointer(MemorySaver::new()).compile().unwrap();
        let thread = app.thread("t");
        thread.invoke(Sums::update().next(1)).await.unwrap();
        let error = thread.invoke(Sums::update().next(-1)).durability(durability).await.unwrap_err();
        check(&error, Some("add"), &words(6));
        let seen = &thread.history().await.unwrap()[0];
        let lines = if durability == Durability::Exit { 2 } else { 3 };
        assert_eq!((seen.state.log.len(), seen.state.total), (lines, 1), "{durability:?}");
        assert_eq!(thread.invoke(Sums::update().next(2)).await.unwrap().state.total, 3, "{durability:?}");
    }
}

#[tokio::test]
async fn it_is_an_error_without_a_checkpointer_too() {
    let app = graph().add_sequence(["first", "add"]).compile().unwrap();
    check(&app.invoke(Sums::update().next(-1)).await.unwrap_err(), Some("add"), &words(2));
}

#[tokio::test]
async fn it_names_the_nodes_of_the_step_if_there_were_several() {
    let app = graph().add_edge(START, "first").add_edge(START, "add").compile().unwrap();
    let both = "field `total`: its reducer panicked: -1 is negative (in what `add`, `first` wrote in step 1)";
    check(&app.invoke(Sums::update().next(-1)).await.unwrap_err(), None, both);
}

#[tokio::test]
async fn it_is_caught_where_conditional_edges_read_the_state() {
    let wait = async |sums: Sums| {
        tokio::task::yield_now().await;
        add(sums).await
    };
    let route = |sums: &Sums| if sums.total > 100 { "first" } else { END };
    let mut ahead = graph();
    ahead.add_edge(START, "add").add_conditional_edges("add", route);
    let mut beside = graph();
    beside.add_edge(START, "first").add_edge(START, "add").add_conditional_edges("add", route);
    let mut spawned = StateGraph::new();
    spawned
        .add_node_with("add", wait, NodeOptions::new().retry(RetryPolicy::new().max_attempts(1)))
        .add_node("first", async |_: Sums| ())
        .add_edge(START, "first")
        .add_edge(START, "add")
        .add_conditional_edges("add", route);
    for graph in [ahead, beside, spawned] {
        let error = graph.compile().unwrap().invoke(Sums::update().next(-1)).await.unwrap_err();
        check(&error, Some("add"), &words(1));
    }
}

#[tokio::test]
async fn an_update_by_hand_and_an_input_are_refused_like_it() {
    let app = graph().add_sequence(["first", "add"]).checkpointer(MemorySaver::new()).compile().unwrap();
    let thread = app.thread("t");
    thread.invoke(Sums::update().next(1)).await.unwrap();
    let error = thread.update(Sums::update().total(-1)).as_node("first").await.unwrap_err();
    check(&error, None, "field `total`: its reducer panicked: -1 is negative");
    let error = thread.invoke(Sums::update().total(-1)).await.unwrap_err();
    check(&error, Some(START), "field `total`: its reducer panicked: -1 is negative (in the input)");
    assert_eq!(thread.state().await.unwrap().state.total, 1);
}
