//! Questions of paths, and their answers.

use std::sync::Arc;
use std::sync::Mutex;

use serde_json::json;
use superstep::{
    BoxError, Context, Durability, END, ErrorKind, GoOn, Interrupted, Mode, NamedPath, NodeOptions, Resume, START,
    StateGraph, Task,
};

use super::{behind_a, counted, input, led_by};
use crate::support::{Count, Notes, events, saved, says};

type Answered = Result<String, Interrupted>;

async fn asks(_: Notes, cx: Context) -> Answered {
    cx.interrupt("where?")
}

#[tokio::test]
async fn a_question_of_a_path_pauses_the_run_and_its_answer_leads_on() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let (runs, asked) = (Count::default(), Count::default());
        let path = {
            let asked = asked.clone();
            move |_: Notes, cx: Context| {
                asked.up();
                async move { cx.interrupt::<String>("where?") }
            }
        };
        let app = saved(&mut behind_a(&runs, NodeOptions::new(), path));
        let out = app.invoke(input()).thread("t").durability(durability).await.unwrap();
        assert_eq!(out.interrupts[0].value, json!("where?"));
        assert_eq!(out.state.log, ["a"], "what the node wrote is shown at the pause");
        let seen = app.thread("t").state().await.unwrap();
        assert_eq!((&seen.next, &seen.interrupts), (&vec!["a".to_owned()], &out.interrupts));
        assert_eq!(seen.state.log, [""; 0], "and it is not saved: the node runs again");
        let out = app.invoke(Resume::value("z")).thread("t").durability(durability).await.unwrap();
        assert_eq!((out.state.log, out.interrupts.len()), (vec!["a".to_owned(), "z".to_owned()], 0), "{durability:?}");
        assert_eq!((runs.get(), asked.get()), (2, 2), "the node and then its path, each time from the first line");
    }
}

#[tokio::test]
async fn questions_of_a_node_and_of_its_paths_are_answered_in_turn() {
    let node = async |_: Notes, cx: Context| -> Result<_, Interrupted> {
        Ok(Notes::update().log([cx.interrupt::<String>("node?")?]))
    };
    let mut graph = StateGraph::new();
    graph.add_node("a", node).add_node("y", says("y")).add_node("z", says("z")).add_edge(START, "a");
    graph.add_conditional_edges(
        "a",
        NamedPath::new("one", async |_: Notes, cx: Context| -> Answered {
            let first: String = cx.interrupt("first?")?;
            cx.interrupt(format!("after {first}?"))
        }),
    );
    graph.add_conditional_edges("a", NamedPath::new("two", asks));
    let app = saved(&mut graph);
    let mut run = app.invoke(input()).thread("t").await.unwrap();
    let mut ids = Vec::new();
    for (question, answer) in [("node?", "node"), ("first?", "one"), ("after one?", "y"), ("where?", "z")] {
        assert_eq!(run.interrupts[0].value, json!(question));
        ids.push(run.interrupts[0].id.clone());
        run = app.invoke(Resume::value(answer)).thread("t").await.unwrap();
    }
    assert_eq!(run.state.log, ["node", "y", "z"]);
    ids.dedup();
    assert_eq!(ids.len(), 4, "each question has an id of its own");
}

#[tokio::test]
async fn answers_by_id_reach_the_paths_of_parallel_nodes() {
    let mut graph = StateGraph::new();
    for name in ["a", "b", "y", "z"] {
        graph.add_node(name, says(name));
    }
    graph.add_edge(START, "a").add_edge(START, "b").add_conditional_edges("a", asks).add_conditional_edges("b", asks);
    let app = saved(&mut graph);
    let out = app.invoke(input()).thread("t").await.unwrap();
    assert_eq!(out.interrupts.len(), 2);
    let one = app.invoke(Resume::value("y")).thread("t").await.unwrap_err();
    assert_eq!(one.kind(), ErrorKind::AmbiguousResume);
    let out = app.invoke(Resume::by_id([(out.interrupts[1].id.clone(), json!("z"))])).thread("t").await.unwrap();
    assert_eq!(out.interrupts.len(), 1, "the first still waits");
    let out = app.invoke(Resume::by_id([(out.interrupts[0].id.clone(), json!("y"))])).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["a", "b", "y", "z"]);
}

/// LangGraph shows such a question in the state of the thread alone: neither the result nor a stream tells that the run waits.
#[tokio::test]
async fn a_path_of_the_start_asks_and_is_shown_to_ask() {
    let mut graph = StateGraph::new();
    graph.add_node("y", says("y")).add_node("z", says("z")).set_conditional_entry_point(asks);
    let app = saved(&mut graph);
    let out = app.invoke(input()).thread("t").await.unwrap();
    assert_eq!((out.interrupts.len(), out.state.topic.as_deref()), (1, Some("t")));
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!((&seen.next, &seen.interrupts), (&vec![START.to_owned()], &out.interrupts));
    let again = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!(again.interrupts, out.interrupts, "asked again under the same id");
    let out = app.invoke(Resume::value("z")).thread("t").await.unwrap();
    assert_eq!((out.state.log, out.state.topic), (vec!["z".to_owned()], Some("t".to_owned())));
    let streamed = events(app.stream(input()).thread("u").mode(Mode::Updates).start()).await;
    assert_eq!(
        streamed,
        [json!({ "mode": "Updates", "path": [], "data": { "__interrupt__": [{ "value": "where?" }] } })]
    );
}

#[tokio::test]
async fn named_mapped_and_meeting_paths_ask() {
    let mut graph = StateGraph::new();
    for name in ["a", "b", "y", "then"] {
        graph.add_node(name, says(name));
    }
    graph.add_edge(START, "a");
    graph.add_conditional_edges_with_map("a", NamedPath::new("mapped", asks), [("on", "b"), ("off", END)]);
    graph.add_conditional_edges_then("b", asks, [("left", "y")], "then");
    let app = saved(&mut graph);
    app.invoke(input()).thread("t").await.unwrap();
    app.invoke(Resume::value("on")).thread("t").await.unwrap();
    let out = app.invoke(Resume::value("left")).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["a", "b", "y", "then"]);
    app.invoke(input()).thread("u").await.unwrap();
    let error = app.invoke(Resume::value("up")).thread("u").await.unwrap_err().to_string();
    assert!(error.contains("the conditional edge `mapped` of `a`") && error.contains("`up`"), "{error}");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_leaves_the_question_of_a_path_open() {
    let app = led_by(asks);
    app.invoke(input()).thread("t").await.unwrap();
    let error = app.invoke(Resume::value(7)).thread("t").await.unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Invalid, Some("a")));
    assert!(error.to_string().starts_with("a conditional edge of `a` in step 1: "), "{error}");
    assert_eq!(app.thread("t").state().await.unwrap().interrupts.len(), 1);
    assert_eq!(app.invoke(Resume::value("y")).thread("t").await.unwrap().state.log, ["a", "y"]);
}

#[tokio::test]
async fn a_question_that_a_path_swallows_pauses_the_run_all_the_same() {
    let app = led_by(async |_: Notes, cx: Context| cx.interrupt("where?").unwrap_or_else(|_| "y".to_owned()));
    let out = app.invoke(input()).thread("t").await.unwrap();
    assert_eq!((out.interrupts.len(), out.state.log), (1, vec!["a".to_owned()]));
    assert_eq!(app.invoke(Resume::value("z")).thread("t").await.unwrap().state.log, ["a", "z"]);
}

#[tokio::test]
async fn without_a_checkpointer_a_question_of_a_path_ends_the_run() {
    let app = behind_a(&Count::default(), NodeOptions::new(), asks).compile().unwrap();
    let out = app.invoke(input()).await.unwrap();
    assert_eq!((out.interrupts.len(), out.state.log), (1, vec!["a".to_owned()]));
}

#[tokio::test]
async fn what_a_path_calls_before_it_asks_is_kept() {
    let (calls, runs) = (Count::default(), Count::default());
    let counting = calls.clone();
    let find = Task::new("find", move |n: i64| {
        counting.up();
        async move { Ok::<_, BoxError>(n + 1) }
    });
    let path = move |_: Notes, cx: Context| {
        let find = find.clone();
        async move {
            let found = find.call(&cx, 1).await?;
            let where_to: String = cx.interrupt(format!("{found}: where?"))?;
            Ok::<_, BoxError>(where_to)
        }
    };
    let app = saved(&mut behind_a(&runs, NodeOptions::new(), path));
    assert_eq!(app.invoke(input()).thread("t").await.unwrap().interrupts[0].value, json!("2: where?"));
    assert_eq!(app.invoke(Resume::value("z")).thread("t").await.unwrap().state.log, ["a", "z"]);
    assert_eq!((runs.get(), calls.get()), (2, 1), "the path ran twice, its call once");
}

#[tokio::test]
async fn a_graph_that_a_path_calls_asks() {
    let inner = StateGraph::<Notes>::new().add_node("in", asks_inside).add_edge(START, "in").compile().unwrap();
    let path = move |state: Notes, cx: Context| {
        let inner = inner.clone();
        async move { Ok::<_, BoxError>(cx.invoke(&inner, state).await?.state.log.pop().unwrap_or_default()) }
    };
    let app = led_by(path);
    assert_eq!(app.invoke(input()).thread("t").await.unwrap().interrupts[0].value, json!("inside?"));
    assert_eq!(app.invoke(Resume::value("z")).thread("t").await.unwrap().state.log, ["a", "z"]);
}

async fn asks_inside(_: Notes, cx: Context) -> Result<crate::support::NotesUpdate, Interrupted> {
    Ok(Notes::update().log([cx.interrupt::<String>("inside?")?]))
}

#[tokio::test]
async fn the_path_of_a_blocking_node_asks_and_runs_where_the_node_does() {
    let threads = Arc::new(Mutex::new(Vec::new()));
    let (of_node, of_path) = (threads.clone(), threads.clone());
    let mut graph = StateGraph::new();
    let node = move |_: &Notes| {
        of_node.lock().unwrap().push(std::thread::current().id());
        Notes::update().log(["a"])
    };
    graph.add_node_with("a", node, NodeOptions::new().blocking()).add_node("z", says("z")).add_edge(START, "a");
    graph.add_conditional_edges("a", move |_: Notes, cx: Context| {
        let threads = of_path.clone();
        async move {
            threads.lock().unwrap().push(std::thread::current().id());
            cx.interrupt::<String>("where?")
        }
    });
    let app = saved(&mut graph);
    assert_eq!(app.invoke(input()).thread("t").await.unwrap().interrupts.len(), 1);
    assert_eq!(app.invoke(Resume::value("z")).thread("t").await.unwrap().state.log, ["a", "z"]);
    let threads = threads.lock().unwrap();
    let here = std::thread::current().id();
    assert!(threads.len() == 4 && threads.iter().all(|thread| *thread != here), "none on the runtime's: {threads:?}");
}

/// A node that was done and whose path asked was counted as done in LangGraph if a sibling failed at that moment: the path
/// never ran again, and the run ended without its route. Here the question stays, and the path leads on when it is answered.
#[tokio::test]
async fn the_question_of_a_path_outlives_the_failure_of_a_sibling() {
    let (runs, failed) = (Count::default(), Count::default());
    let mut graph = behind_a(&runs, NodeOptions::new(), asks);
    graph.add_node("b", move |_: Notes| {
        let fails = failed.up() == 0;
        async move { if fails { Err::<_, BoxError>("b fails".into()) } else { Ok(Notes::update().log(["b"])) } }
    });
    let app = saved(graph.add_edge(START, "b"));
    app.invoke(input()).thread("t").await.unwrap_err();
    assert_eq!(app.thread("t").state().await.unwrap().interrupts.len(), 1);
    app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!(app.invoke(Resume::value("z")).thread("t").await.unwrap().state.log, ["a", "b", "z"]);
}

#[tokio::test]
async fn a_retry_gives_a_path_the_answers_that_it_had() {
    let (runs, tried) = (Count::default(), Count::default());
    let attempts = tried.clone();
    let path = move |_: Notes, cx: Context| {
        let fails = attempts.up() == 1;
        async move {
            let answer: String = cx.interrupt("where?")?;
            if fails { Err::<_, BoxError>("once".into()) } else { Ok(answer) }
        }
    };
    let options = NodeOptions::new().retry(superstep::RetryPolicy::new().jitter(false));
    let app = saved(&mut behind_a(&runs, options, path));
    app.invoke(input()).thread("t").await.unwrap();
    let out = app.invoke(Resume::value("z")).thread("t").await.unwrap();
    assert_eq!((out.state.log, runs.get(), tried.get()), (vec!["a".to_owned(), "z".to_owned()], 3, 3));
}

#[tokio::test]
async fn a_path_in_a_graph_inside_asks() {
    let runs = Count::default();
    let mut inner = StateGraph::new();
    inner.add_node("in", counted("in", &runs)).add_node("z", says("z")).add_edge(START, "in");
    let inner = inner.add_conditional_edges("in", asks).compile().unwrap();
    let app = saved(StateGraph::new().add_node("child", inner).add_edge(START, "child"));
    let out = app.invoke(input()).thread("t").await.unwrap();
    assert_eq!(out.interrupts[0].value, json!("where?"));
    assert_eq!(app.invoke(Resume::value("z")).thread("t").await.unwrap().state.log, ["in", "z"]);
    assert_eq!(runs.get(), 2);
}
