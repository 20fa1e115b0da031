//! Bad input: one clear error that names the place, the thread as it was, nothing lost.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::{
    Blob, BoxError, CheckpointId, CheckpointRecord, Command, CompiledStateGraph, END, Entrypoint, Error, ErrorKind,
    GoOn, JsonInput, JsonState, MappedGraph, MemorySaver, Runtime, START, SavedCheckpoint, SavedField, Send, Sent,
    State, StateGraph, Superstep,
};

use crate::support::hooked::{Hook, Hooked};
use crate::support::{Notes, NotesUpdate, a_b_c, saved, says, trace};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

fn unknown() -> CheckpointId {
    "1f0b2c3d-0000-6000-8000-000000000001".parse().expect("it is an id")
}

#[track_caller]
fn check(error: &Error, kind: ErrorKind, words: &str) {
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, words));
}

/// A thread that ran once, and what it was like.
async fn ran() -> (CompiledStateGraph<Notes>, String) {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("t").await.unwrap();
    let before = trace(&app.thread("t")).await.unwrap();
    (app, before)
}

/// `main` returns errors as `{:?}`: each cause is told, and told once.
#[tokio::test]
async fn an_error_is_shown_with_all_its_causes_where_main_returns_it() {
    #[derive(Debug, thiserror::Error)]
    #[error("the kettle is broken")]
    struct Broken(#[source] std::io::Error);
    let fail = async |_: Notes| Err::<(), _>(Broken(std::io::Error::other("no power")));
    let app = StateGraph::<Notes>::new().add_node("fail", fail).add_edge(START, "fail").compile().unwrap();
    let error = app.invoke(input()).await.unwrap_err();
    assert_eq!(format!("{error:?}"), "node `fail` failed in step 1: the kettle is broken\n  caused by: no power");
    assert_eq!(error.to_string(), "node `fail` failed in step 1: the kettle is broken");
}

#[tokio::test]
async fn a_run_needs_a_thread_if_it_is_saved() {
    let error = saved(&mut a_b_c()).invoke(input()).await.unwrap_err();
    check(&error, ErrorKind::Invalid, "the graph has a checkpointer, so a run needs a thread: `.thread(\"..\")`");
}

#[tokio::test]
async fn nothing_to_start_with_is_an_error() {
    let app = saved(&mut a_b_c());
    let error = app.invoke(GoOn).thread("t").await.unwrap_err();
    check(&error, ErrorKind::EmptyInput, "there is no input, and no saved work to resume");
    assert!(app.thread("t").history().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_unknown_checkpoint_is_an_error_and_changes_nothing() {
    let (app, before) = ran().await;
    let words = format!("thread `t` has no checkpoint {}", unknown());
    check(&app.invoke(GoOn).thread("t").checkpoint(unknown()).await.unwrap_err(), ErrorKind::Invalid, &words);
    check(&app.thread("t").at(unknown()).state().await.unwrap_err(), ErrorKind::Invalid, &words);
    check(&app.thread("t").at(unknown()).update(input()).await.unwrap_err(), ErrorKind::Invalid, &words);
    check(&app.thread("t").at(unknown()).resume().await.unwrap_err(), ErrorKind::Invalid, &words);
    assert_eq!(trace(&app.thread("t")).await.unwrap(), before);
    let error = a_b_c().compile().unwrap().invoke(input()).checkpoint(unknown()).await.unwrap_err();
    check(&error, ErrorKind::Invalid, "a checkpoint was named, but the graph has no checkpointer");
}

#[tokio::test]
async fn unknown_names_in_options_are_errors_and_change_nothing() {
    let (app, before) = ran().await;
    let run = || app.invoke(input()).thread("t");
    check(
        &run().interrupt_before(["x"]).await.unwrap_err(),
        ErrorKind::Invalid,
        "`interrupt_before` names unknown node `x`",
    );
    check(
        &run().interrupt_after(["x"]).await.unwrap_err(),
        ErrorKind::Invalid,
        "`interrupt_after` names unknown node `x`",
    );
    check(&run().output_keys(["x"]).await.unwrap_err(), ErrorKind::Invalid, "`output_keys` names unknown field `x`");
    assert_eq!(trace(&app.thread("t")).await.unwrap(), before);
}

#[tokio::test]
async fn updates_as_unknown_or_reserved_nodes_are_errors_and_change_nothing() {
    let (app, before) = ran().await;
    let error = app.thread("t").update(input()).as_node("x").await.unwrap_err();
    check(&error, ErrorKind::InvalidUpdate, "there is no node `x` to update as");
    let error = app.thread("t").update(input()).as_node(END).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUpdate);
    assert!(
        error.to_string().starts_with("`END` makes no updates; use `clear_tasks` to drop what is left to do"),
        "{error}"
    );
    assert!(!error.to_string().contains("Update)"), "the words are for people: {error}");
    let error = app.thread("t").update_as_input(GoOn).await.unwrap_err();
    check(&error, ErrorKind::InvalidUpdate, "there is no input to put in");
    let error = app.thread("t").bulk_update([Superstep::updates([(input(), "x")])]).await.unwrap_err();
    check(&error, ErrorKind::InvalidUpdate, "there is no node `x` to update as");
    assert_eq!(trace(&app.thread("t")).await.unwrap(), before);
}

#[tokio::test]
async fn a_thread_needs_a_checkpointer() {
    let app = a_b_c().compile().unwrap();
    let words = "the graph has no checkpointer; give it one with `.checkpointer(..)`";
    check(&app.thread("t").state().await.unwrap_err(), ErrorKind::Invalid, words);
    check(&app.thread("t").history().await.unwrap_err(), ErrorKind::Invalid, words);
    check(&app.thread("t").update(input()).await.unwrap_err(), ErrorKind::Invalid, words);
    check(&app.thread("t").delete().await.unwrap_err(), ErrorKind::Invalid, words);
}

#[tokio::test]
async fn a_persistent_graph_cannot_be_a_root() {
    let error = a_b_c().persistent().compile().unwrap().invoke(input()).thread("t").await.unwrap_err();
    check(
        &error,
        ErrorKind::Invalid,
        "a `persistent` graph keeps its history in a parent's checkpointer; run it inside one",
    );
}

/// What became of a graph whose only node does this, on a thread that ran well before.
async fn after<M>(node: impl superstep::IntoNode<JsonState, M>) -> Error {
    let fields = JsonState::schema().append("log").last_value("x");
    let saver = MemorySaver::new();
    let good = StateGraph::dynamic(fields.clone())
        .add_node("n", async |_: JsonInput| json!({ "log": ["good"] }))
        .add_edge(START, "n")
        .checkpointer(saver.clone())
        .compile()
        .unwrap();
    good.invoke(json!({ "x": 1 })).thread("t").await.unwrap();
    let bad =
        StateGraph::dynamic(fields).add_node("n", node).add_edge(START, "n").checkpointer(saver).compile().unwrap();
    let error = bad.invoke(json!({ "x": 2 })).thread("t").await.unwrap_err();
    let seen = bad.thread("t").state().await.unwrap();
    assert_eq!(
        (seen.values(), seen.next.clone()),
        (json!({ "log": ["good"], "x": 2 }), vec!["n".to_owned()]),
        "at the last good step"
    );
    assert!(seen.tasks[0].error.is_some(), "the failure is kept");
    let out = good.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!(out.to_json(), json!({ "log": ["good", "good"], "x": 2 }), "and once it is mended it goes on");
    error
}

#[tokio::test]
async fn what_is_no_update_is_refused_with_the_nodes_name() {
    let error = after(async |_: JsonInput| json!([1, 2])).await;
    assert_eq!((error.kind(), error.node()), (ErrorKind::InvalidUpdate, Some("n")));
    assert_eq!(
        error.to_string(),
        "node `n` returned an update in step 4 that does not fit: expected an object, got [1,2]"
    );
}

#[tokio::test]
async fn a_panic_is_an_error_with_the_nodes_name() {
    let error = after(async |input: JsonInput| {
        let list = input["log"].as_array().cloned().unwrap_or_default();
        json!({ "log": [list[99]] })
    })
    .await;
    assert_eq!((error.kind(), error.node()), (ErrorKind::Panic, Some("n")));
    assert!(error.to_string().starts_with("node `n` panicked in step 4: index out of bounds"), "{error}");
}

#[tokio::test]
async fn an_error_keeps_its_type() {
    let error = after(async |_: JsonInput| Err::<(), _>(std::io::Error::other("no disk"))).await;
    assert_eq!(error.downcast_ref::<std::io::Error>().unwrap().to_string(), "no disk");
}

#[tokio::test]
async fn a_value_that_a_reducer_cannot_merge_is_an_error_that_names_the_field() {
    let app = StateGraph::dynamic(JsonState::schema().append("log").sum("total"))
        .add_node("n", async |_: JsonInput| json!({ "total": "three" }))
        .add_edge(START, "n")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let error = app.invoke(json!({ "log": ["x"] })).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("field `total`"), "{error}");
    let seen = app.thread("t").history().await.unwrap();
    assert_eq!(seen[0].values(), json!({ "log": ["x"], "total": 0 }));
}

#[tokio::test]
async fn two_writers_of_one_value_are_an_error_that_names_the_field() {
    let write = |topic: &'static str| move |_: Notes| async move { Notes::update().topic(topic) };
    let mut graph = StateGraph::new();
    graph.add_node("x", write("x")).add_node("y", write("y"));
    let app = saved(graph.add_edge(START, "x").add_edge(START, "y"));
    let error = app.invoke(input()).thread("t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUpdate);
    assert!(error.to_string().contains("field `topic`: can receive only one value per step"), "{error}");
    assert_eq!(app.thread("t").history().await.unwrap()[0].values()["topic"], "t");
    app.thread("t").update(Notes::update().topic("mended")).as_node("x").await.unwrap();
    assert_eq!(app.thread("t").state().await.unwrap().state.topic.as_deref(), Some("mended"));
}

#[tokio::test]
async fn a_payload_of_another_type_is_an_error_that_names_the_node() {
    let work = |Sent(n): Sent<i64>| async move { Notes::update().total(n) };
    let sends = |what: Send| {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node("work", work).add_node("takes", says("x"));
        graph
            .add_conditional_edges(START, move |_: &Notes| what.clone())
            .compile()
            .unwrap()
            .invoke(input())
            .into_future()
    };
    let error = sends(Send::new("work", "seven")).await.unwrap_err();
    let words = "node `work` failed in step 1: it takes `i64`, but what it was sent is something else: \
                 invalid type: string \"seven\", expected i64";
    assert!(error.to_string().contains(words), "{error}");
    let error = sends(Send::new("takes", 7)).await.unwrap_err();
    assert!(
        error.to_string().contains("node `takes` failed in step 1: it takes the state but was sent a payload"),
        "{error}"
    );
    let app = StateGraph::<Notes>::new().add_node("work", work).add_edge(START, "work").compile().unwrap();
    let error = app.invoke(input()).await.unwrap_err();
    assert!(
        error.to_string().contains("node `work` failed in step 1: it takes a payload but was reached by an edge"),
        "{error}"
    );
}

#[tokio::test]
async fn a_conditional_edge_that_leads_nowhere_known_is_an_error() {
    let led = |to: &'static str| {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node("a", says("a")).add_node("b", says("b")).add_edge(START, "a");
        graph.add_conditional_edges_with_map("a", move |_: &Notes| to, [("on", "b"), ("off", END)]).compile().unwrap()
    };
    let error = led("up").invoke(input()).await.unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Invalid, Some("a")));
    assert!(
        error.to_string().contains(r#"returned `up` in step 1, which its map does not have; it has ["on", "off"]"#),
        "{error}"
    );
    assert_eq!(led("on").invoke(input()).await.unwrap().state.log, ["a", "b"]);

    let open = |path: fn(&Notes) -> superstep::Goto| {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node("a", says("a")).add_edge(START, "a");
        graph.add_conditional_edges("a", path).compile().unwrap().invoke(input()).into_future()
    };
    check(
        &open(|_| START.into()).await.unwrap_err(),
        ErrorKind::Invalid,
        "a conditional edge of `a` led to `START` in step 1",
    );
    let error = open(|_| Send::new(END, 1).into()).await.unwrap_err();
    check(
        &error,
        ErrorKind::InvalidUpdate,
        "a conditional edge of `a` sent to `END` in step 1; `END` runs nothing, send to a node",
    );
    let error = open(|_| "nobody".into()).await.unwrap_err();
    assert!(error.to_string().starts_with("a conditional edge of `a` led to `nobody` in step 1, but"), "{error}");
}

#[tokio::test]
async fn a_node_cannot_answer_questions() {
    let node = |_: Notes| async { Command::<Notes>::new().resume("yes") };
    let app = StateGraph::new().add_node("n", node).add_edge(START, "n").compile().unwrap();
    let error = app.invoke(input()).await.unwrap_err();
    assert!(error.to_string().contains("a node cannot answer questions"), "{error}");
}

type Hand = Box<dyn Fn(SavedCheckpoint) -> SavedCheckpoint + std::marker::Send>;

/// Gives back checkpoints that were tampered with.
#[derive(Clone, Default)]
struct Tampering(Arc<Mutex<Option<Hand>>>);

impl Hook for Tampering {
    fn read(&self, saved: SavedCheckpoint) -> SavedCheckpoint {
        match &*self.0.lock().expect("nobody panics with it") {
            Some(tamper) => tamper(saved),
            None => saved,
        }
    }
}

/// The errors of a state and of a run over a checkpoint that was tampered with.
async fn tampered(tamper: impl Fn(SavedCheckpoint) -> SavedCheckpoint + std::marker::Send + 'static) -> String {
    let Tampering(hand) = Tampering::default();
    let saver = Hooked::new(Tampering(hand.clone()));
    let app = a_b_c().interrupt_before(["c"]).checkpointer(saver).compile().unwrap();
    app.invoke(input()).thread("t").await.unwrap();
    let before = trace(&app.thread("t")).await.unwrap();
    *hand.lock().unwrap() = Some(Box::new(tamper));
    let seen = app.thread("t").state().await.unwrap_err();
    let run = app.invoke(GoOn).thread("t").await.unwrap_err();
    assert_eq!((seen.kind(), run.kind()), (ErrorKind::Checkpoint, ErrorKind::Checkpoint));
    assert_eq!(seen.to_string(), run.to_string());
    assert!(!run.is_retryable(), "it is no better the next time");
    *hand.lock().unwrap() = None;
    assert_eq!(trace(&app.thread("t")).await.unwrap(), before, "nothing was lost");
    assert_eq!(app.invoke(GoOn).thread("t").await.unwrap().state.log, ["a", "b", "c"]);
    // The id differs from run to run.
    let id = app.thread("t").history().await.unwrap()[1].checkpoint.clone().unwrap().id.to_string();
    run.to_string().replace(&id, "<id>")
}

fn with_record(saved: SavedCheckpoint, change: impl FnOnce(CheckpointRecord) -> CheckpointRecord) -> SavedCheckpoint {
    let (record, fields, writes) = saved.into_parts();
    SavedCheckpoint::new(change(record), fields, writes)
}

fn with_control(saved: SavedCheckpoint, control: Vec<u8>) -> SavedCheckpoint {
    with_record(saved, |record| record.with_control(control.into()))
}

#[tokio::test]
async fn a_checkpoint_of_a_newer_format_is_refused_by_name() {
    let words = tampered(|saved| with_record(saved, |record| record.with_format(200))).await;
    assert!(
        words.contains("thread `t`, checkpoint <id> has format 200, this release reads up to 1; update superstep"),
        "{words}"
    );
}

#[tokio::test]
async fn a_field_that_does_not_decode_is_refused_by_name() {
    let words = tampered(|saved| {
        let (record, mut fields, writes) = saved.into_parts();
        let field = fields.iter_mut().find(|field| field.name() == "topic").expect("it was saved");
        *field = SavedField::new("topic", Some(Blob::from(b"\xc1 not msgpack".as_slice())), Vec::new());
        SavedCheckpoint::new(record, fields, writes)
    })
    .await;
    assert!(words.contains("thread `t`, checkpoint <id>, field `topic`"), "{words}");
}

#[tokio::test]
async fn triggers_that_do_not_decode_are_refused() {
    let words = tampered(|saved| with_control(saved, b"\xff\xff\xff".to_vec())).await;
    assert!(words.contains("thread `t`, checkpoint <id>, triggers"), "{words}");
}

/// The words about a checkpoint whose newest version is another.
async fn with_newest(version: &'static [u8]) -> String {
    tampered(|saved| {
        // The first number is the newest version; its last byte is below 128.
        let rest = saved.record().control().iter().skip_while(|byte| **byte >= 0x80).skip(1).copied();
        let control = version.iter().copied().chain(rest).collect();
        with_control(saved, control)
    })
    .await
}

#[tokio::test]
async fn numbers_that_no_thread_comes_to_are_refused_by_name() {
    let words = tampered(|saved| with_record(saved, |record| record.with_step(i64::MAX))).await;
    assert!(words.contains("thread `t`, checkpoint <id>, step: 9223372036854775807 is no number"), "{words}");
    let words = with_newest(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").await;
    assert!(words.contains("checkpoint <id>, triggers: the newest version, 18446744073709551615, is more"), "{words}");
    let words = with_newest(b"\x01").await;
    assert!(words.contains("checkpoint <id>, triggers: a trigger has version 4, and the newest is 1"), "{words}");
}

#[tokio::test]
async fn json_that_is_no_object_is_refused_as_an_update_wherever_it_is_given() {
    let inner = StateGraph::dynamic(JsonState::schema().append("log"))
        .add_node("n", async |_: JsonInput| json!({ "log": ["n"] }))
        .add_edge(START, "n")
        .compile()
        .unwrap();
    let wrong = json!([1, 2]);
    let app = StateGraph::dynamic(JsonState::schema().append("log"))
        .add_node("n", MappedGraph::new(inner, |_: &JsonState| json!({ "log": [] }), |_: &JsonState| json!("text")))
        .add_edge(START, "n")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let words = "expected an object, got [1,2]";
    check(&app.invoke(wrong.clone()).thread("t").await.unwrap_err(), ErrorKind::InvalidUpdate, words);
    check(&app.thread("t").update_as_input(wrong.clone()).await.unwrap_err(), ErrorKind::InvalidUpdate, words);
    check(&app.thread("t").update(wrong.clone()).await.unwrap_err(), ErrorKind::InvalidUpdate, words);
    let command = Command::new().update(json!({ "log": ["x"] })).update(wrong);
    check(&app.invoke(command).thread("t").await.unwrap_err(), ErrorKind::InvalidUpdate, words);
    assert!(app.thread("t").history().await.unwrap().is_empty());
    let error = app.invoke(json!({})).thread("t").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "node `n` returned an update in step 1 that does not fit: expected an object, got \"text\""
    );
}

#[tokio::test]
async fn names_and_sizes_of_nothing_are_refused() {
    let app = saved(&mut a_b_c());
    let error = app.invoke(input()).thread("").await.unwrap_err();
    check(&error, ErrorKind::Invalid, "a thread needs a name: `.thread(\"..\")` with at least one character");
    let error = app.stream(input()).thread("t").buffer(0).start().next().await.unwrap().unwrap_err();
    check(&error, ErrorKind::Invalid, "`buffer` must be at least 1");
    let nameless = Entrypoint::new("", async |n: i64| Ok::<_, BoxError>(n)).compile();
    let error = nameless.invoke(1).await.unwrap_err();
    let words = "entrypoint ``: its name is empty; results are kept by name, so give it one";
    check(&error, ErrorKind::Invalid, words);
}

#[tokio::test]
async fn a_command_to_an_unknown_node_says_so() {
    let error = saved(&mut a_b_c()).invoke(Command::new().goto("ghost")).thread("t").await.unwrap_err();
    let words = "the command that the run begins with goes to `ghost`, but the graph has no such node; add it with \
                 `add_node(\"ghost\", ..)`, or let the graph ignore such names with `ignore_unknown_targets(true)`";
    check(&error, ErrorKind::Invalid, words);
    let error = saved(a_b_c().ignore_unknown_targets(true)).invoke(Command::new().goto("ghost")).thread("t");
    let words = "the command is empty: there is no node `ghost` to go to";
    check(&error.await.unwrap_err(), ErrorKind::EmptyInput, words);
}

/// Both were told as if the node had done it.
#[tokio::test]
async fn mistakes_of_a_conditional_edge_are_told_as_its_own() {
    let edge = |path: fn(&Notes) -> &'static str| {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node("n", says("n")).add_edge(START, "n");
        graph.add_conditional_edges_with_map("n", path, [("end", END)]).compile().unwrap().invoke(input()).into_future()
    };
    let error = edge(|_| panic!("no way")).await.unwrap_err();
    check(&error, ErrorKind::Panic, "a conditional edge of `n` panicked in step 1: no way");
    let error = edge(|_| "other").await.unwrap_err();
    let words = "a conditional edge of `n` returned `other` in step 1, which its map does not have; it has [\"end\"]";
    check(&error, ErrorKind::Invalid, words);
}

/// A value that refuses to be written down.
#[derive(Clone, Default, Debug, serde::Deserialize)]
struct Stubborn;

impl serde::Serialize for Stubborn {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it will not be written"))
    }
}

#[derive(superstep::State, Clone, Default, Debug)]
struct Kept {
    value: Stubborn,
}

#[tokio::test]
async fn a_field_that_cannot_be_saved_is_named_once() {
    let node = async |_: Kept| Kept::update().value(Stubborn);
    let mut graph = StateGraph::<Kept>::new();
    graph.add_node("n", node).add_edge(START, "n");
    let error = graph.checkpointer(MemorySaver::new()).compile().unwrap().invoke(()).thread("t").await.unwrap_err();
    assert_eq!(error.to_string().matches("field `value`").count(), 1, "{error}");
    assert!(error.to_string().ends_with("it will not be written"), "{error}");
}

/// Fields that are added up.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    #[state(sum)]
    small: u8,
    #[state(sum)]
    real: f64,
}

#[tokio::test]
async fn a_sum_that_does_not_fit_is_refused_in_every_build() {
    let mut graph = StateGraph::<Sums>::new();
    graph.add_node("a", async |_: Sums| Sums::update().small(1).real(0.5));
    let app = graph.add_edge(START, "a").compile().unwrap();
    let out = app.invoke(Sums { small: 254, real: 1.0 }).await.unwrap();
    assert_eq!(out.state, Sums { small: 255, real: 1.5 });
    let error = app.invoke(Sums { small: 255, real: 1.0 }).await.err().unwrap();
    assert_eq!(error.to_string(), "field `small`: the sum of 255 and 1 is out of range (in what `a` wrote in step 1)");
    let sums = JsonState::schema().sum("n");
    let mut graph = StateGraph::dynamic(sums);
    graph.add_node("a", async |_: JsonInput| json!({ "n": 1 }));
    let app = graph.add_edge(START, "a").compile().unwrap();
    let out = app.invoke(json!({ "n": i64::MAX })).await.unwrap();
    assert_eq!(out.to_json(), json!({ "n": 9_223_372_036_854_775_808_u64 }));
    let error = app.invoke(json!({ "n": u64::MAX })).await.err().unwrap();
    assert!(error.to_string().contains("the sum of 18446744073709551615 and 1 is out of range"), "{error}");
}

#[tokio::test]
async fn null_is_no_input_and_goes_on() {
    let note = |name: &'static str| move |_: JsonInput| async move { json!({ "log": [name] }) };
    let mut graph = StateGraph::dynamic(JsonState::schema().append("log"));
    graph.add_node("x", note("x")).add_node("y", note("y")).add_sequence(["x", "y"]);
    let app = graph.interrupt_before(["y"]).checkpointer(MemorySaver::new()).compile().unwrap();
    let nothing = app.invoke(json!(null)).thread("t").await.err().unwrap();
    assert_eq!(nothing.kind(), ErrorKind::EmptyInput);
    app.invoke(json!({ "log": ["in"] })).thread("t").await.unwrap();
    let out = app.invoke(json!(null)).thread("t").await.unwrap();
    assert_eq!(out.to_json(), json!({ "log": ["in", "x", "y"] }));
}

#[tokio::test]
async fn an_error_of_a_conditional_edge_or_of_the_input_says_so() {
    let broken = |_: &Sums| -> Result<&'static str, BoxError> { Err("no way".into()) };
    let mut graph = StateGraph::<Sums>::new();
    graph.add_node("a", async |_: Sums| ()).add_edge(START, "a");
    let app = graph.add_conditional_edges("a", broken).compile().unwrap();
    let error = app.invoke(Sums::default()).await.err().unwrap();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Node, Some("a")));
    assert_eq!(format!("{error:?}"), "a conditional edge of `a` failed in step 1: no way");
    let app = saved_text();
    let error = app.invoke(json!({ "log": 7 })).thread("t").await.err().unwrap();
    assert!(error.to_string().ends_with("(in the input)"), "{error}");
}

fn saved_text() -> CompiledStateGraph<JsonState> {
    let mut graph = StateGraph::dynamic(JsonState::schema().append("log"));
    graph
        .add_node("x", async |_: JsonInput| json!({}))
        .add_edge(START, "x")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap()
}

#[tokio::test]
async fn what_no_retry_can_mend_is_not_retryable() {
    let asks = async |_: Sums, _: Runtime<u8>| ();
    let app = StateGraph::<Sums>::new().add_node("a", asks).add_edge(START, "a").compile().unwrap();
    assert!(!app.invoke(Sums::default()).await.err().unwrap().is_retryable());
}

#[tokio::test]
async fn a_thread_is_not_copied_onto_itself() {
    let app = saved_text();
    app.invoke(json!({ "log": ["in"] })).thread("t").await.unwrap();
    let error = app.thread("t").copy_to("t").await.err().unwrap();
    assert_eq!(error.to_string(), "the copy of thread `t` needs another name than its own");
    app.thread("t").copy_to("u").await.unwrap();
    let error = app.thread("t").copy_to("u").await.err().unwrap();
    assert_eq!(format!("{error:?}"), "the checkpointer refuses it: there is a thread `u` already; delete it first");
}
