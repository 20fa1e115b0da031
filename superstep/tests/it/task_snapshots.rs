//! What a snapshot tells of the tasks that are next: what woke them, their place and their input, as the stream of
//! tasks tells it when they start.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use expect_test::expect;
use serde_json::{Value, json};
use superstep::{
    Checkpointer, CompiledStateGraph, EventData, GoOn, MemorySaver, Mode, START, Send, Sent, StateGraph, StateSnapshot,
};

use crate::support::{Count, Notes, NotesUpdate, a_b_c, events, says};

type Saver = Arc<dyn Checkpointer>;

/// Checkpointers that nobody has used.
async fn savers(name: &str) -> Vec<Saver> {
    Vec::from([
        Arc::new(MemorySaver::new()) as Saver,
        Arc::new(superstep_sqlite::SqliteSaver::memory().unwrap()),
        in_postgres(name).await,
    ])
}

async fn in_postgres(name: &str) -> Saver {
    let schema = format!("tasks_{}_{name}", std::process::id());
    let database = superstep_postgres::PostgresDatabase::builder(crate::support::postgres::address()).schema(schema);
    Arc::new(superstep_postgres::PostgresSaver::new(&database.connect().await.unwrap()))
}

fn input() -> NotesUpdate {
    Notes::update().topic("tea")
}

fn saved_in(saver: &Saver, graph: &mut StateGraph<Notes>) -> CompiledStateGraph<Notes> {
    graph.checkpointer(saver.clone()).compile().unwrap()
}

/// What a snapshot tells of its tasks, a line for each.
fn told<S>(snapshot: &StateSnapshot<S>) -> String {
    let mut lines = Vec::new();
    for (task, shown) in snapshot.tasks.iter().zip(snapshot.to_json()["tasks"].as_array().unwrap()) {
        let of_json = [&shown["triggers"], &shown["path"], &shown["input"]];
        assert_eq!(of_json, [&json!(task.triggers), &json!(task.path), &task.input()], "the JSON tells the same");
        let error = task.error.as_ref().map(|error| format!(" failed: {error}")).unwrap_or_default();
        lines.push(format!("{} of {:?} at {}: {}{error}", task.name, task.triggers, task.path, task.input()));
    }
    lines.join("\n")
}

/// What the tasks of a snapshot are woken by and given.
fn expected(snapshot: &StateSnapshot<Notes>) -> Vec<(String, Vec<String>, Value)> {
    snapshot.tasks.iter().map(|task| (task.name.clone(), task.triggers.clone(), task.input())).collect()
}

/// What the first tasks of a run that goes on tell when they start.
async fn started(app: &CompiledStateGraph<Notes>, how_many: usize) -> Vec<(String, Vec<String>, Value)> {
    let mut stream = app.stream(GoOn).thread("t").mode(Mode::Tasks).start();
    let mut starts = Vec::new();
    while starts.len() < how_many {
        if let EventData::TaskStart(task) = stream.next().await.unwrap().unwrap().data {
            starts.push((task.name.clone(), task.triggers.clone(), task.input()));
        }
    }
    starts
}

#[tokio::test]
async fn a_task_before_which_a_run_stopped_tells_its_input() {
    for saver in savers("stopped").await {
        let app = saved_in(&saver, &mut a_b_c());
        app.invoke(input()).thread("t").interrupt_before(["b"]).await.unwrap();
        let snapshot = app.thread("t").state().await.unwrap();
        expect![[r#"b of ["branch:to:b"] at ~__pregel_pull, b: {"log":["a"],"topic":"tea","total":0}"#]]
            .assert_eq(&told(&snapshot));
        assert_eq!(started(&app, 1).await, expected(&snapshot));
    }
}

#[tokio::test]
async fn sends_that_wait_tell_what_was_sent() {
    for saver in savers("sends").await {
        let work = |Sent(word): Sent<String>| async move { Notes::update().log([word]) };
        let sends = |_: &Notes| {
            vec![superstep::Goto::from(Send::new("work", "tea")), Send::new("work", "milk").into(), "z".into()]
        };
        let mut graph = a_b_c();
        graph.add_node("work", work).add_node("z", says("z")).add_conditional_edges("a", sends);
        let app = saved_in(&saver, &mut graph);
        app.invoke(input()).thread("t").interrupt_before(["work"]).await.unwrap();
        let snapshot = app.thread("t").state().await.unwrap();
        expect![[r#"
            work of ["__pregel_push"] at ~__pregel_push, 0000000000, 0000000000: "tea"
            work of ["__pregel_push"] at ~__pregel_push, 0000000001, 0000000000: "milk"
            b of ["branch:to:b"] at ~__pregel_pull, b: {"log":["a"],"topic":"tea","total":0}
            z of ["branch:to:z"] at ~__pregel_pull, z: {"log":["a"],"topic":"tea","total":0}"#]]
        .assert_eq(&told(&snapshot));
        assert_eq!(started(&app, 4).await, expected(&snapshot));
    }
}

#[tokio::test]
async fn a_task_that_failed_tells_what_it_was_given() {
    for saver in savers("failed").await {
        let fails = |_: Notes| async { Err::<(), _>("no luck") };
        let mut graph = a_b_c();
        graph.add_node("fails", fails).add_edge("a", "fails");
        let app = saved_in(&saver, &mut graph);
        app.invoke(input()).thread("t").await.unwrap_err();
        let snapshot = app.thread("t").state().await.unwrap();
        // What `b` wrote is in the values; the tasks of the step have not seen it.
        assert_eq!(snapshot.state.log, ["a", "b"]);
        expect![[r#"
            b of ["branch:to:b"] at ~__pregel_pull, b: {"log":["a"],"topic":"tea","total":0}
            fails of ["branch:to:fails"] at ~__pregel_pull, fails: {"log":["a"],"topic":"tea","total":0} failed: no luck"#]]
        .assert_eq(&told(&snapshot));
        assert_eq!(started(&app, 2).await, expected(&snapshot));
    }
}

#[tokio::test]
async fn a_task_inside_a_subgraph_tells_what_it_is_given_there() {
    for saver in savers("inside").await {
        let mut inner = a_b_c();
        let inner = inner.interrupt_before(["b"]).compile().unwrap();
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node("first", says("first")).add_node("sub", inner).add_sequence(["first", "sub"]);
        let app = saved_in(&saver, &mut graph);
        app.invoke(input()).thread("t").await.unwrap();
        let snapshot = app.thread("t").state_with_subgraphs().await.unwrap();
        expect![[r#"sub of ["branch:to:sub"] at ~__pregel_pull, sub: {"log":["first"],"topic":"tea","total":0}"#]]
            .assert_eq(&told(&snapshot));
        let inside = snapshot.tasks[0].subgraph.as_ref().unwrap();
        expect![[r#"b of ["branch:to:b"] at ~__pregel_pull, b: {"log":["first","a"],"topic":"tea","total":0}"#]]
            .assert_eq(&told(inside));
        let shown = &snapshot.to_json()["tasks"][0]["state"]["tasks"][0];
        assert_eq!(shown["input"], json!({ "log": ["first", "a"], "topic": "tea", "total": 0 }));
    }
}

#[tokio::test]
async fn the_start_tells_the_input_of_the_run() {
    for saver in savers("start").await {
        let app = saved_in(&saver, &mut a_b_c());
        app.invoke(input()).thread("t").await.unwrap();
        app.invoke(Notes::update().log(["more"])).thread("t").await.unwrap();
        let starts = |at: &StateSnapshot<Notes>| (at.next == [START]).then(|| told(at));
        let history = app.thread("t").history().await.unwrap();
        expect![[r#"
            __start__ of ["__start__"] at ~__pregel_pull, __start__: {"log":["more"]}
            __start__ of ["__start__"] at ~__pregel_pull, __start__: {"topic":"tea"}"#]]
        .assert_eq(&history.iter().filter_map(starts).collect::<Vec<_>>().join("\n"));
    }
}

#[tokio::test]
async fn a_task_sees_what_a_command_wrote_before_it_was_cut_off() {
    for saver in savers("command").await {
        let first = Count::default();
        let runs = first.clone();
        let fails_once = move |_: Notes| {
            let fails = runs.up() < 2;
            async move { if fails { Err("no luck") } else { Ok(()) } }
        };
        let mut graph = a_b_c();
        graph.add_node("d", fails_once).add_edge("c", "d");
        let app = saved_in(&saver, &mut graph);
        app.invoke(input()).thread("t").await.unwrap_err();
        let command = superstep::Command::new().update(Notes::update().topic("milk"));
        app.invoke(command).thread("t").await.unwrap_err();
        let snapshot = app.thread("t").state().await.unwrap();
        assert_eq!(snapshot.tasks[0].input()["topic"], "milk");
        assert_eq!(started(&app, 1).await, expected(&snapshot));
    }
}

#[tokio::test]
async fn a_snapshot_as_json_says_when_it_was_made() {
    for saver in savers("times").await {
        let app = saved_in(&saver, &mut a_b_c());
        let before = SystemTime::now();
        app.invoke(input()).thread("t").await.unwrap();
        let snapshot = app.thread("t").state().await.unwrap();
        let text = snapshot.to_json()["created_at"].as_str().unwrap().to_owned();
        let form: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(form, "0000-00-00T00:00:00.000000+00:00");
        let made = snapshot.created_at.unwrap();
        assert!(made + Duration::from_secs(1) > before && made < SystemTime::now() + Duration::from_secs(1));
        let made = made.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(text[20..26], format!("{:06}", made.subsec_micros()), "{text}");
        let texts: Vec<String> =
            app.thread("t").history().await.unwrap().iter().map(|at| at.to_json()["created_at"].to_string()).collect();
        assert!(texts.is_sorted_by(|newer, older| newer >= older), "{texts:?}");
    }
    let app = a_b_c().checkpointer(MemorySaver::new()).compile().unwrap();
    assert_eq!(app.thread("new").state().await.unwrap().to_json()["created_at"], Value::Null);
}

#[tokio::test]
async fn checkpoints_in_a_stream_tell_the_same_of_their_tasks() {
    let app = a_b_c().checkpointer(MemorySaver::new()).compile().unwrap();
    let streamed = events(app.stream(input()).thread("t").mode(Mode::Checkpoints).start()).await;
    let mut history = app.thread("t").history().await.unwrap();
    history.reverse();
    assert_eq!(streamed.len(), history.len());
    for (event, saved) in streamed.iter().zip(&history) {
        for (task, saved) in event["data"]["tasks"].as_array().unwrap().iter().zip(&saved.tasks) {
            assert_eq!(task["input"], saved.input());
            assert_eq!((&task["path"], &task["triggers"]), (&json!(saved.path), &json!(saved.triggers)));
        }
    }
    let mut stream = app.stream(input()).thread("u").mode(Mode::Checkpoints).start();
    let mut times = Vec::new();
    while let Some(event) = stream.next().await {
        times.push(event.unwrap().to_json()["created_at"].take());
    }
    let history = app.thread("u").history().await.unwrap();
    let saved: Vec<Value> = history.iter().rev().map(|at| at.to_json()["created_at"].take()).collect();
    assert_eq!(times, saved);
}
