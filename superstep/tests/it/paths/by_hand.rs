//! Paths that are run because a thread is changed by hand, and stops of a run at nodes of graphs inside.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use superstep::{
    CompiledStateGraph, Context, ErrorKind, Interrupted, MappedGraph, MemorySaver, MemoryStore, NodeOptions, Runtime,
    START, StateGraph, Store, StoreHandle,
};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{behind_a, input, led_by};
use crate::support::{Count, Notes, saved, says};

/// LangGraph fails with a `KeyError` here.
#[tokio::test]
async fn a_path_cannot_ask_while_its_thread_is_changed_by_hand() {
    let path = async |_: Notes, cx: Context| -> Result<String, Interrupted> { cx.interrupt("where?") };
    let app = led_by(path);
    let update = || app.thread("t").update(Notes::update().log(["by hand"])).as_node("a");
    let error = update().await.unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Invalid, Some("a")));
    assert!(error.to_string().contains("nobody can answer it while a thread is changed by hand"), "{error}");
    assert!(app.thread("t").state().await.unwrap().checkpoint.is_none(), "nothing is saved");
    app.invoke(input()).thread("t").await.unwrap();
    update().await.unwrap_err();
    assert_eq!(app.thread("t").state().await.unwrap().interrupts.len(), 1, "the open question stays");
}

#[tokio::test]
async fn a_path_has_the_store_while_its_thread_is_changed_by_hand() {
    let path = async |state: Notes, cx: Context, store: StoreHandle| -> Result<String, superstep::BoxError> {
        cx.emit("nobody hears it").await;
        assert_eq!((cx.thread(), cx.node(), state.log.join(" ")), (Some("t"), "a", "by hand".to_owned()));
        Ok(store.get(["homes"], "a").await?.map(|item| item.value.as_str().unwrap().to_owned()).unwrap_or_default())
    };
    let store = Arc::new(MemoryStore::new());
    store.put(["homes"], "a", json!("z")).await.unwrap();
    let mut graph = behind_a(&Count::default(), NodeOptions::new(), path);
    let app = graph.store(store).checkpointer(MemorySaver::new()).compile().unwrap();
    app.thread("t").update(Notes::update().log(["by hand"])).as_node("a").await.unwrap();
    assert_eq!(app.thread("t").state().await.unwrap().next, ["z"]);
}

#[tokio::test]
async fn a_path_has_no_context_of_a_run_while_its_thread_is_changed_by_hand() {
    let app = led_by(async |_: Notes, _: Runtime<u8>| "z");
    let error = app.thread("t").update(Notes::update().log(["by hand"])).as_node("a").await.unwrap_err();
    assert_eq!(error.node(), Some("a"));
}

/// `a`, then a graph of `x` and `y`, then `z`.
fn around(inner: CompiledStateGraph<Notes>) -> CompiledStateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_node("inside", inner).add_node("z", says("z"));
    saved(graph.add_sequence(["a", "inside", "z"]))
}

fn x_y() -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.output(["log"]).add_node("x", says("x")).add_node("y", says("y")).add_sequence(["x", "y"]);
    graph
}

/// LangGraph does not look at names of nodes that a run is to stop at; those of graphs inside stop nothing there either.
#[tokio::test]
async fn a_stop_of_a_run_at_a_node_inside_is_ignored() {
    let mapped = MappedGraph::new(x_y().compile().unwrap(), Notes::clone, |_: &Notes| Notes::update().log(["mapped"]));
    let deeper =
        StateGraph::<Notes>::new().add_node("deeper", x_y().compile().unwrap()).add_edge(START, "deeper").compile();
    let apps = [
        around(x_y().compile().unwrap()),
        around(x_y().stateless().compile().unwrap()),
        around(x_y().persistent().compile().unwrap()),
        around(deeper.unwrap()),
        saved(StateGraph::new().add_node("inside", mapped).add_node("z", says("z")).add_sequence(["inside", "z"])),
    ];
    for app in apps {
        app.invoke(input()).thread("t").interrupt_before(["y"]).interrupt_after(["x"]).await.unwrap();
        assert_eq!(app.thread("t").state().await.unwrap().next, [""; 0]);
        app.invoke(input()).thread("u").interrupt_before(["y", "z"]).await.unwrap();
        assert_eq!(app.thread("u").state().await.unwrap().next, ["z"], "of the run's own graph the name counts");
    }
}

#[tokio::test]
async fn a_graph_inside_stops_where_it_says_whatever_the_run_says() {
    let app = around(x_y().interrupt_before(["y"]).compile().unwrap());
    app.invoke(input()).thread("t").interrupt_before(["x"]).await.unwrap();
    assert_eq!(app.thread("t").state().await.unwrap().next, ["inside"]);
}

#[tokio::test]
async fn a_stop_of_a_run_at_a_node_that_is_nowhere_is_an_error() {
    let app = around(x_y().compile().unwrap());
    let error = app.invoke(input()).thread("t").interrupt_before(["y", "nowhere"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.to_string(), "`interrupt_before` names unknown node `nowhere`");
    let error = app.invoke(input()).thread("t").interrupt_after(["nowhere"]).await.unwrap_err();
    assert_eq!(error.to_string(), "`interrupt_after` names unknown node `nowhere`");
}

/// It ran before the others began, which waited for it: what it waited for from them never came.
#[tokio::test(start_paused = true)]
async fn a_path_of_the_start_runs_beside_what_waited_when_an_input_was_put_in_by_hand() {
    let (began, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, tells) = (began.clone(), go_on.clone());
    let path = move |_: Notes, _: Context| {
        let (began, go_on) = (began.clone(), go_on.clone());
        async move {
            began.notify_one();
            go_on.notified().await;
            "b"
        }
    };
    let waits = move |_: Notes| {
        let (told, tells) = (told.clone(), tells.clone());
        async move {
            told.notified().await;
            tells.notify_one();
            Notes::update().log(["waits"])
        }
    };
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_node("b", says("b")).add_node("waits", waits).add_edge("a", "waits");
    let app = saved(graph.add_conditional_edges(START, path));
    let thread = app.thread("t");
    thread.update(Notes::update().log(["a"])).as_node("a").await.unwrap();
    thread.update_as_input(Notes::update().log(["by hand"])).await.unwrap();
    let run = timeout(Duration::from_hours(1), thread.resume().into_future()).await.expect("nobody waits for ever");
    assert_eq!(run.unwrap().state.log, ["a", "by hand", "waits", "b"]);
}
