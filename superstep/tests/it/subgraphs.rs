//! Graphs inside graphs.

use std::time::Duration;

use serde_json::json;
use superstep::{
    BoxError, CachePolicy, CompiledStateGraph, Context, GoOn, Interrupted, MappedGraph, MemoryCache, MemorySaver,
    Message, MessageGraph, Mode, NodeOptions, Resume, START, Send, StateGraph,
};

use crate::support::{Count, Notes, NotesUpdate, says};

fn one_node(name: &'static str) -> CompiledStateGraph<Notes> {
    StateGraph::new().add_node(name, says(name)).add_edge(START, name).compile().expect("no mistakes")
}

fn inside(child: CompiledStateGraph<Notes>) -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("child", child).add_edge(START, "child");
    graph
}

#[tokio::test]
async fn a_field_that_was_never_written_is_not_written_by_a_subgraph() {
    let mut child = StateGraph::new();
    child.add_node("a", says("a")).add_edge(START, "a");
    for child in [child.compile(), child.stateless().compile(), child.persistent().compile()] {
        let app = inside(child.unwrap()).checkpointer(MemorySaver::new()).compile().unwrap();
        let out = app.invoke(Notes::update().total(1)).thread("t").await.unwrap();
        // The reducers of the parent apply to what the child gives back, inherited items included.
        assert_eq!(out.to_json(), json!({ "log": ["a"], "total": 2 }), "`topic` has no value");
    }
}

#[tokio::test]
async fn subgraphs_side_by_side_do_not_clash_over_a_field_that_nobody_wrote() {
    let mut graph = StateGraph::new();
    graph.add_node("x", one_node("a")).add_node("y", one_node("b"));
    let app = graph.add_edge(START, "x").add_edge(START, "y").compile().unwrap();
    let out = app.invoke(Notes::update().total(1)).await.unwrap();
    assert_eq!(out.state.log, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_task_at_once_does_not_keep_a_subgraph_from_running() {
    let app = inside(one_node("a")).compile().unwrap();
    let run = app.invoke(Notes::update().total(1)).max_concurrency(1).into_future();
    let out =
        tokio::time::timeout(Duration::from_mins(1), run).await.expect("the run does not wait for itself").unwrap();
    assert_eq!(out.state.log, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_task_at_once_does_not_keep_a_called_graph_from_running() {
    let child = one_node("a");
    let node = move |notes: Notes, cx: Context| {
        let child = child.clone();
        async move {
            let out = cx.invoke(&child, Notes::update().total(notes.total)).await?;
            Ok::<_, BoxError>(Notes::update().log(out.state.log))
        }
    };
    let app = StateGraph::new().add_node("calls", node).add_edge(START, "calls").compile().unwrap();
    let run = app.invoke(Notes::update().total(1)).max_concurrency(1).into_future();
    let out =
        tokio::time::timeout(Duration::from_mins(1), run).await.expect("the run does not wait for itself").unwrap();
    assert_eq!(out.state.log, ["a"]);
}

/// A child whose first node counts its runs and whose second asks.
fn asking(runs: &Count) -> StateGraph<Notes> {
    let counter = runs.clone();
    let first = move |_: Notes| {
        counter.up();
        async { Notes::update().log(["first"]) }
    };
    let ask = |_: Notes, cx: Context| async move {
        let answer: String = cx.interrupt("what?")?;
        Ok::<_, Interrupted>(Notes::update().log([answer]))
    };
    let mut graph = StateGraph::new();
    graph.add_node("first", first).add_node("ask", ask).add_sequence(["first", "ask"]);
    graph
}

#[tokio::test]
async fn a_question_inside_is_asked_outside_and_finished_nodes_inside_do_not_run_again() {
    let runs = Count::default();
    let app = inside(asking(&runs).compile().unwrap()).checkpointer(MemorySaver::new()).compile().unwrap();
    let out = app.invoke(Notes::update().total(1)).thread("t").await.unwrap();
    assert_eq!(out.interrupts[0].value, "what?");
    let seen = app.thread("t").state_with_subgraphs().await.unwrap();
    let child = seen.tasks[0].subgraph.as_ref().unwrap();
    assert_eq!((child.next.clone(), child.values()["log"].clone()), (vec!["ask".to_owned()], json!(["first"])));
    let out = app.invoke(Resume::value("this")).thread("t").await.unwrap();
    assert_eq!((out.state.log.clone(), runs.get()), (vec!["first".to_owned(), "this".to_owned()], 1));
}

/// The question of the graph that asked last used to hide those of the others.
#[tokio::test]
async fn questions_of_graphs_that_a_node_runs_at_once_are_all_open() {
    let runs = Count::default();
    let child = asking(&runs).compile().unwrap();
    let node = move |_: Notes, cx: Context| {
        let child = child.clone();
        async move {
            let ask = || cx.invoke(&child, Notes::update().total(1));
            let (one, other) = tokio::join!(ask(), ask());
            Ok::<_, BoxError>(Notes::update().log([&one?, &other?].map(|out| out.state.log[1].clone())))
        }
    };
    let mut graph = StateGraph::new();
    graph.add_node("calls", node).add_edge(START, "calls");
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    let out = app.invoke(Notes::update().total(1)).thread("t").await.unwrap();
    let ids: Vec<_> = out.interrupts.iter().map(|question| question.id.clone()).collect();
    assert_eq!(ids.len(), 2);
    let answers = ids.into_iter().zip(["this", "that"]);
    let out = app.invoke(Resume::by_id(answers)).thread("t").await.unwrap();
    assert_eq!((out.state.log.clone(), runs.get()), (vec!["this".to_owned(), "that".to_owned()], 2));
}

#[tokio::test]
async fn a_stateless_subgraph_runs_again_from_its_start() {
    let runs = Count::default();
    let app = inside(asking(&runs).stateless().compile().unwrap()).checkpointer(MemorySaver::new()).compile().unwrap();
    app.invoke(Notes::update().total(1)).thread("t").await.unwrap();
    app.invoke(Resume::value("this")).thread("t").await.unwrap();
    assert_eq!(runs.get(), 2);
}

#[tokio::test]
async fn a_persistent_subgraph_keeps_one_history_for_all_calls() {
    let logs = |persistent: bool| async move {
        let mut child = StateGraph::<Notes>::new();
        child.add_node("n", says("n")).add_edge(START, "n").input(["total"]);
        if persistent {
            child.persistent();
        }
        let map = MappedGraph::new(
            child.compile().unwrap(),
            |_: &Notes| Notes::update().total(1),
            |child: &Notes| Notes::update().log([format!("{} of {}", child.log.len(), child.total)]),
        );
        let app = StateGraph::new()
            .add_node("child", map)
            .add_edge(START, "child")
            .checkpointer(MemorySaver::new())
            .compile()
            .unwrap();
        app.invoke(Notes::update().total(0)).thread("t").await.unwrap();
        app.invoke(Notes::update().total(0)).thread("t").await.unwrap().state.log
    };
    assert_eq!(logs(true).await, ["1 of 1", "2 of 2"]);
    assert_eq!(logs(false).await, ["1 of 1", "1 of 1"]);
}

#[tokio::test]
async fn events_of_subgraphs_are_shown_only_if_asked_for() {
    let paths = |deep: bool| async move {
        let app = inside(one_node("a")).checkpointer(MemorySaver::new()).compile().unwrap();
        let stream = app.stream(Notes::update().total(1)).thread("t").mode(Mode::Updates);
        let mut events = if deep { stream.subgraphs() } else { stream }.start();
        let mut paths = Vec::new();
        while let Some(event) = events.next().await {
            paths.push(event.unwrap().path().join("/"));
        }
        paths
    };
    assert_eq!(paths(true).await, ["child", ""]);
    assert_eq!(paths(false).await, [""]);
}

#[tokio::test]
async fn a_failure_inside_is_gone_on_with_inside() {
    let (runs, failures) = (Count::default(), Count::default());
    let (counter, fails) = (runs.clone(), failures.clone());
    let first = move |_: Notes| {
        counter.up();
        async { Notes::update().log(["first"]) }
    };
    let second = move |_: Notes| {
        let failed = fails.up() == 0;
        async move {
            if failed { Err::<NotesUpdate, BoxError>("not yet".into()) } else { Ok(Notes::update().log(["second"])) }
        }
    };
    let mut child = StateGraph::new();
    child.add_node("first", first).add_node("second", second).add_sequence(["first", "second"]);
    let app = inside(child.compile().unwrap()).checkpointer(MemorySaver::new()).compile().unwrap();
    let error = app.invoke(Notes::update().total(1)).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("not yet"), "{error}");
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!((out.state.log.clone(), runs.get()), (vec!["first".to_owned(), "second".to_owned()], 1));
}

/// A child whose only node is cached and counted.
fn cached(runs: &Count) -> StateGraph<Notes> {
    let runs = runs.clone();
    let node = move |_: Notes| {
        runs.up();
        async { Notes::update().log(["n"]) }
    };
    let options = NodeOptions::new().cache(CachePolicy::new());
    let mut graph = StateGraph::new();
    graph.add_node_with("n", node, options).add_edge(START, "n").name("child");
    graph
}

#[tokio::test]
async fn a_subgraph_uses_the_cache_of_its_run_or_else_its_own() {
    let (own, outer) = (MemoryCache::new(), MemoryCache::new());
    let runs = Count::default();
    let app = inside(cached(&runs).cache(own.clone()).compile().unwrap()).compile().unwrap();
    for _ in 0..2 {
        assert_eq!(app.invoke(Notes::update().total(1)).await.unwrap().state.log, ["n"]);
    }
    assert_eq!((runs.get(), own.len()), (1, 1));
    let app = inside(cached(&runs).cache(own.clone()).compile().unwrap()).cache(outer.clone()).compile().unwrap();
    app.invoke(Notes::update().total(1)).await.unwrap();
    assert_eq!((runs.get(), own.len(), outer.len()), (2, 1, 1));
}

#[tokio::test]
async fn a_subgraph_is_given_the_fields_that_its_node_reads() {
    let tells = |notes: Notes| async move { Notes::update().log([format!("{:?} {}", notes.topic, notes.total)]) };
    let child = || {
        let mut graph = StateGraph::new();
        graph.add_node("tells", tells).add_edge(START, "tells");
        graph.output(["log"]).compile().unwrap()
    };
    let log = |options: NodeOptions<Notes>| async move {
        let mut app = StateGraph::new();
        app.add_node_with("child", child(), options).add_edge(START, "child");
        app.compile().unwrap().invoke(Notes::update().topic("t").total(3)).await.unwrap().state.log.join(" ")
    };
    assert_eq!(log(NodeOptions::new()).await, "Some(\"t\") 3");
    assert_eq!(log(NodeOptions::new().fields(["total"])).await, "None 3");
}

#[tokio::test]
async fn a_subgraph_stops_where_it_was_compiled_to_and_the_run_with_it() {
    let runs = Count::default();
    let mut app = inside(asking(&runs).interrupt_before(["ask"]).compile().unwrap());
    let app = app.checkpointer(MemorySaver::new()).compile().unwrap();
    let out = app.invoke(Notes::update().total(1)).thread("t").await.unwrap();
    assert!(out.interrupts.is_empty(), "nobody has asked yet");
    assert_eq!(app.thread("t").state().await.unwrap().next, ["child"]);
    assert_eq!(app.invoke(GoOn).thread("t").await.unwrap().interrupts[0].value, "what?");
    assert_eq!(app.invoke(Resume::value("this")).thread("t").await.unwrap().state.log, ["first", "this"]);
    assert_eq!(runs.get(), 1);
}

#[tokio::test]
async fn the_state_of_a_subgraph_says_where_it_is() {
    let app = inside(asking(&Count::default()).compile().unwrap()).checkpointer(MemorySaver::new()).compile().unwrap();
    app.invoke(Notes::update().total(1)).thread("t").await.unwrap();
    let seen = app.thread("t").state().await.unwrap();
    let task = &seen.tasks[0];
    assert_eq!(task.namespace, Some(format!("child:{}", task.id)));
    assert!(task.subgraph.is_none(), "it was not asked for");
}

#[tokio::test]
async fn a_drawing_shows_as_many_levels_as_asked_for() {
    let bottom = one_node("bottom");
    let middle = StateGraph::new().add_node("middle", bottom).add_edge(START, "middle").compile().unwrap();
    let app = inside(middle).compile().unwrap();
    let ids = |depth: usize| {
        let drawing = app.draw_expanded(depth);
        let inner = drawing.nodes.iter().map(|n| n.id.clone()).filter(|id| !id.starts_with("__"));
        inner.collect::<Vec<_>>()
    };
    assert_eq!(ids(0), ["child"]);
    assert_eq!(ids(1), ["child:middle"]);
    assert_eq!(ids(2), ["child:middle:bottom"]);
    assert_eq!(ids(usize::MAX), ids(2));
    assert_eq!(app.draw().nodes.len(), app.draw_expanded(0).nodes.len());
}

/// Sends what `payload` makes of each line of the topic to a graph that logs the topic it was given.
fn sends_to_a_graph<T: serde::Serialize + std::marker::Send + Sync + 'static>(
    payload: fn(&str) -> T,
) -> StateGraph<Notes> {
    let logs = async |notes: Notes| Notes::update().log([format!("{:?} {}", notes.topic, notes.total)]);
    let mut child = StateGraph::<Notes>::new();
    child.add_node("logs", logs).add_edge(START, "logs").output(["log"]);
    let fan_out = move |notes: &Notes| -> Vec<Send> {
        notes.topic.iter().flat_map(|t| t.split(' ')).map(|word| Send::new("child", payload(word))).collect()
    };
    let mut graph = StateGraph::new();
    graph.add_node("child", child.compile().unwrap()).add_conditional_edges(START, fan_out);
    graph
}

#[tokio::test]
async fn a_typed_graph_runs_on_the_fields_it_was_sent() {
    let app = sends_to_a_graph(|word| json!({ "topic": word, "unknown": 1 })).compile().unwrap();
    let out = app.invoke(Notes::update().topic("x y").total(5)).await.unwrap();
    assert_eq!(out.state.log, [r#"Some("x") 0"#, r#"Some("y") 0"#]);

    let whole = |word: &str| Notes { topic: Some(word.to_owned()), total: 2, ..Notes::default() };
    let saver = MemorySaver::new();
    let app = || sends_to_a_graph(whole).checkpointer(saver.clone()).compile().unwrap();
    app().invoke(Notes::update().topic("x y")).thread("t").interrupt_before(["child"]).await.unwrap();
    let out = app().invoke(GoOn).thread("t").await.unwrap();
    assert_eq!(out.state.log, [r#"Some("x") 2"#, r#"Some("y") 2"#], "also from what a checkpoint kept");
}

#[tokio::test]
async fn a_typed_graph_refuses_what_has_nothing_of_its_state() {
    let refusal = |why: &str| {
        format!(
            "node `child` failed in step 1: the graph in node `child` cannot run on what it was sent: {why}; send some of its state's fields"
        )
    };
    let app = sends_to_a_graph(|_| json!({ "other": 1 })).compile().unwrap();
    let error = app.invoke(Notes::update().topic("x")).await.unwrap_err();
    assert_eq!(error.to_string(), refusal("it has no field of the graph's state"));
    let app = sends_to_a_graph(|_| json!({ "total": "many" })).compile().unwrap();
    let error = app.invoke(Notes::update().topic("x")).await.unwrap_err();
    assert!(error.to_string().contains("cannot run on what it was sent: field `total`"), "{error}");
}

#[tokio::test]
async fn a_graph_over_messages_runs_on_messages_it_was_sent() {
    let echo = async |messages: Vec<Message>| Message::assistant(messages[0].text()).with_id("echo");
    let child = MessageGraph::new().add_node("echo", echo).add_edge(START, "echo").compile().unwrap();
    let app = MessageGraph::new()
        .add_node("child", child)
        .add_conditional_edges(START, |_: &Vec<Message>| Send::new("child", vec![Message::user("sent")]))
        .compile()
        .unwrap();
    let out = app.invoke(Message::user("hi").with_id("1")).await.unwrap();
    assert_eq!(out.state.iter().map(Message::text).collect::<Vec<_>>(), ["hi", "sent", "sent"]);
}
