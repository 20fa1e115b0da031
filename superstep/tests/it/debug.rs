//! What types look like where they are shown; that each of them can be is seen to by a lint.

use std::time::Duration;

use superstep::{MemorySaver, Mode, NodeOptions, RetryPolicy, START, StateGraph, Task, TimeoutPolicy, Update};

use crate::support::{Notes, says};

fn graph() -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_edge(START, "a").name("notes");
    graph
}

#[test]
fn an_update_shows_what_it_writes() {
    assert_eq!(format!("{:?}", Notes::update().log(["x"])), r#"NotesUpdate { log: ["x"], .. }"#);
    assert_eq!(format!("{:?}", Notes::update().clear_topic()), "NotesUpdate { topic: None, .. }");
    let update = Update::<Notes>::new().set(Notes::TOTAL, 3).overwrite(Notes::LOG, vec!["y".to_owned()]);
    let text = format!("{update:?}");
    assert!(text.contains("total(3)") && text.contains(r#"log(["y"])"#) && !text.contains("topic"), "{text}");
}

#[test]
fn graphs_and_runs_are_shown_by_their_names() {
    let shown = format!("{:?}", graph());
    assert_eq!(shown, r#"StateGraph { name: "notes", nodes: {"a": 0}, edges: [("__start__", "a")], .. }"#);
    let app = graph().checkpointer(MemorySaver::new()).compile().unwrap();
    let run = format!("{:?}", app.invoke(()).thread("t"));
    assert!(run.contains(r#""notes""#) && run.contains(r#""t""#), "{run}");
    let task = Task::new("fetch", async |url: String| Ok::<_, superstep::BoxError>(url.len()));
    assert_eq!(format!("{task:?}"), r#"Task { name: "fetch", .. }"#);
}

#[test]
fn options_show_what_was_said() {
    let options =
        NodeOptions::<Notes>::new().timeout(TimeoutPolicy::run(Duration::from_secs(3))).retry(RetryPolicy::new());
    let text = format!("{:?}", options.defer());
    assert!(text.contains("3s") && text.contains("max_attempts: 3") && text.contains("defer: true"), "{text}");
}

#[tokio::test]
async fn events_are_shown_as_json() {
    let app = graph().checkpointer(MemorySaver::new()).compile().unwrap();
    let mut stream = app.stream(()).thread("t").modes([Mode::Updates]).start();
    let event = stream.next().await.unwrap().unwrap();
    let superstep::EventData::Updates(update) = &event.data else { panic!("{event:?}") };
    assert_eq!(format!("{update:?}"), r#"{"a":{"log":["a"]}}"#);
}

#[test]
fn a_password_is_not_shown() {
    let text = format!("{:?}", superstep_postgres::PostgresDatabase::builder("postgres://ada:secret@localhost/db"));
    assert!(!text.contains("secret") && text.contains("pool_size"), "{text}");
}
