//! An input that is put in by hand, and not run, while a thread waits.

use serde_json::json;
use superstep::{
    BoxError, CompiledStateGraph, Context, Entrypoint, ErrorKind, GoOn, MemorySaver, Resume, Returned, START,
    StateGraph, Superstep, Thread,
};

use crate::support::{Count, Notes, NotesUpdate, events, saved, says, trace};

fn hand() -> NotesUpdate {
    Notes::update().log(["by hand"]).topic("changed")
}

/// Why a thread waits.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Waits {
    Asked,
    Failed,
    StoppedBefore,
    StoppedAfter,
    AtLimit,
}

const ALL: [Waits; 5] = [Waits::Asked, Waits::Failed, Waits::StoppedBefore, Waits::StoppedAfter, Waits::AtLimit];

/// `first`, then `then`, beside which `beside` finishes: it is where the thread waits.
fn graph(why: Waits) -> StateGraph<Notes> {
    let tries = Count::default();
    let then = move |notes: Notes, cx: Context| {
        let failed = why == Waits::Failed && tries.up() == 0;
        async move {
            if why == Waits::Asked {
                cx.interrupt::<String>("go?")?;
            }
            if failed {
                return Err("not yet".into());
            }
            Ok::<_, BoxError>(Notes::update().log([format!("then saw {}", notes.topic.unwrap_or_default())]))
        }
    };
    let mut graph = StateGraph::new();
    graph.add_node("first", says("first")).add_node("then", then).add_node("beside", says("beside"));
    graph.add_edge(START, "first").add_edge("first", "then").add_edge("first", "beside");
    match why {
        Waits::StoppedBefore => graph.interrupt_before(["then"]),
        Waits::StoppedAfter => graph.interrupt_after(["first"]),
        _ => &mut graph,
    };
    graph
}

/// Runs it until it waits.
async fn wait(app: &CompiledStateGraph<Notes>, why: Waits) {
    let run = app.invoke(Notes::update().topic("given")).thread("t");
    let run = if why == Waits::AtLimit { run.recursion_limit(1) } else { run };
    let error = run.await.err().map(|error| error.kind());
    let expected = match why {
        Waits::Failed => Some(ErrorKind::Node),
        Waits::AtLimit => Some(ErrorKind::RecursionLimit),
        _ => None,
    };
    assert_eq!(error, expected, "{why:?}");
}

/// Goes on until nothing is left to do.
async fn finish(app: &CompiledStateGraph<Notes>, why: Waits) {
    for _ in 0..4 {
        let run = match why {
            Waits::Asked => app.invoke(Resume::value("yes")),
            _ => app.invoke(GoOn),
        };
        run.thread("t").await.unwrap();
        if app.thread("t").state().await.unwrap().is_done() {
            return;
        }
    }
    panic!("{why:?}: it never ends");
}

/// The start node had tasks beside it, and was run as if it had nothing to write.
#[tokio::test]
async fn an_input_by_hand_is_merged_beside_what_a_thread_waits_for() {
    for why in ALL {
        let app = saved(&mut graph(why));
        wait(&app, why).await;
        app.thread("t").update_as_input(hand()).await.unwrap();
        finish(&app, why).await;
        let state = app.thread("t").state().await.unwrap().state;
        let times = state.log.iter().filter(|line| *line == "by hand").count();
        assert_eq!((times, state.topic.as_deref()), (1, Some("changed")), "{why:?}: {:?}", state.log);
        assert!(state.log.contains(&"then saw changed".to_owned()), "{why:?}: the input wakes the graph anew");
    }
}

#[tokio::test]
async fn an_input_by_hand_is_merged_in_a_subgraph_that_waits() {
    for why in ALL {
        let mut outer = StateGraph::new();
        outer.add_node("child", graph(why).compile().unwrap()).add_edge(START, "child");
        let app = saved(&mut outer);
        wait(&app, why).await;
        let seen = app.thread("t").state().await.unwrap();
        let at = seen.tasks[0].namespace.as_ref().unwrap();
        let child: Thread<Notes> = app.thread("t").subgraph(at).unwrap();
        child.update_as_input(hand()).await.unwrap();
        finish(&app, why).await;
        let state = app.thread("t").state().await.unwrap().state;
        assert!(state.log.contains(&"by hand".to_owned()), "{why:?}: {:?}", state.log);
    }
}

/// Only `invoke(input)` drops what is left to do.
#[tokio::test]
async fn a_question_stays_open_beside_an_input_by_hand() {
    let app = saved(&mut graph(Waits::Asked));
    wait(&app, Waits::Asked).await;
    app.thread("t").update_as_input(hand()).await.unwrap();
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!((out.interrupts.len(), out.interrupts[0].value.clone()), (1, json!("go?")));
    assert_eq!(
        trace(&app.thread("t")).await.unwrap(),
        [
            r#"-1 input  {"log":[],"total":0} -> __start__"#,
            r#" 0 loop   {"log":[],"topic":"given","total":0} -> first"#,
            r#" 1 loop   {"log":["first"],"topic":"given","total":0} -> then, beside"#,
            r#" 2 input  {"log":["first"],"topic":"given","total":0} -> __start__, then, beside"#,
        ]
        .join("\n")
    );
    // What the start node and `beside` wrote is saved, and they do not run again.
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!((seen.next.as_slice(), seen.state.log.len()), (&["then".to_owned()][..], 3));
}

#[tokio::test]
async fn an_input_by_hand_is_shown_as_values_and_not_as_a_node() {
    let app = saved(&mut graph(Waits::Failed));
    wait(&app, Waits::Failed).await;
    app.thread("t").update_as_input(hand()).await.unwrap();
    let shown = events(app.stream(GoOn).thread("t").modes([superstep::Mode::Updates]).start()).await;
    let nodes: Vec<_> = shown.iter().flat_map(|event| event["data"].as_object().unwrap().keys().cloned()).collect();
    assert_eq!(nodes, ["then", "beside", "first", "beside", "then"], "{shown:?}");
}

/// Adds what it is given to what an answer says.
fn adding() -> superstep::CompiledEntrypoint<i64> {
    let add = async |n: i64, cx: Context| {
        let more: i64 = cx.interrupt(format!("how much more than {n}?"))?;
        Ok::<_, BoxError>(n + more)
    };
    Entrypoint::new("add", add).checkpointer(MemorySaver::new()).compile()
}

async fn added(thread: &Thread<Returned>) -> i64 {
    thread.invoke(Resume::value(5)).await.unwrap().get().unwrap()
}

/// It took updates of what the entrypoint returned, which are no input, and gave the entrypoint nothing.
#[tokio::test]
async fn an_entrypoint_takes_an_input_by_hand() {
    let app = adding();
    let (empty, asked) = (app.thread("empty"), app.thread("asked"));
    asked.invoke(1).await.unwrap();
    for thread in [empty, asked] {
        thread.update_as_input(10).await.unwrap();
        let out = thread.resume().await.unwrap();
        assert_eq!(out.interrupts[0].value, "how much more than 10?");
        assert_eq!(added(&thread).await, 15);
        // A thread that has finished takes one too.
        thread.bulk_update([Superstep::input(20)]).await.unwrap();
        thread.resume().await.unwrap();
        assert_eq!(added(&thread).await, 25);
    }
}

#[tokio::test]
async fn an_entrypoint_does_not_run_on_an_update_of_what_it_returned() {
    let (app, update) = (adding(), || Returned { value: Some(json!(1)), saved: None });
    let errors = [
        app.thread("t").update_as_input(update()).await.unwrap_err(),
        app.thread("t").invoke(update()).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.to_string(), "an entrypoint runs on a value; give it one, not an update of what it returned");
    }
    assert!(app.thread("t").state().await.unwrap().checkpoint.is_none(), "nothing was saved");
}
