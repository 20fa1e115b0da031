//! What can be said about a whole graph, and about one node of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use superstep::{
    Cache, CacheError, CacheKey, CachePolicy, Command, CompiledStateGraph, Context, JsonInput, JsonState, MemoryCache,
    MemorySaver, MemoryStore, Mode, NodeDefaults, NodeError, NodeOptions, START, Send, Sent, StateGraph, Store,
    StoreHandle,
};

use crate::support::{Count, Notes, NotesUpdate, a_b_c, events, saved, says};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

#[test]
fn a_graph_has_the_name_it_was_given() {
    assert_eq!(a_b_c().name("letters").compile().unwrap().name(), "letters");
    assert_eq!(a_b_c().compile().unwrap().name(), "graph");
}

#[tokio::test]
async fn input_is_limited_to_the_input_fields_and_output_to_the_output_fields() {
    let app = saved(a_b_c().input(["topic"]).output(["topic", "log"]));
    let out = app.invoke(input().total(7).log(["x"])).thread("t").await.unwrap();
    assert_eq!(out.to_json(), json!({ "topic": "t", "log": ["a", "b", "c"] }));
    assert_eq!(out.state.total, 0);
}

#[tokio::test]
async fn a_private_field_is_for_nodes_that_ask_for_it_only() {
    let app = StateGraph::dynamic(JsonState::schema().last_value("open").last_value("secret").append("log"))
        .add_node("writes", async |_: JsonInput| json!({ "secret": 7 }))
        .add_node("plain", async |input: JsonInput| json!({ "log": [input.get("secret").is_some()] }))
        .add_node_with(
            "asks",
            async |input: JsonInput| json!({ "log": [input["secret"]] }),
            NodeOptions::new().fields(["secret"]),
        )
        .add_sequence(["writes", "plain", "asks"])
        .private(["secret"])
        .compile()
        .unwrap();
    let out = app.invoke(json!({ "open": 1, "secret": 9 })).await.unwrap();
    assert_eq!(out.to_json(), json!({ "open": 1, "log": [false, 7] }));
}

#[tokio::test]
async fn a_node_sees_the_fields_it_asks_for() {
    let node = async |input: JsonInput| json!({ "log": [input.0.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(",")] });
    let app = StateGraph::dynamic(JsonState::schema().last_value("x").last_value("y").append("log"))
        .add_node_with("n", node, NodeOptions::new().fields(["y"]))
        .add_edge(START, "n")
        .compile()
        .unwrap();
    assert_eq!(app.invoke(json!({ "x": 1, "y": 2 })).await.unwrap().to_json()["log"], json!(["y"]));
}

#[tokio::test]
async fn nodes_use_the_store_of_the_graph() {
    let node = |_: Notes, store: StoreHandle| async move {
        store.put(["facts"], "k", json!("v")).await?;
        Ok::<_, superstep::BoxError>(Notes::update().log([store.get(["facts"], "k").await?.unwrap().value.to_string()]))
    };
    let graph = || {
        let mut graph = StateGraph::new();
        graph.add_node("n", node).add_edge(START, "n");
        graph
    };
    let out = graph().store(MemoryStore::new()).compile().unwrap().invoke(input()).await.unwrap();
    assert_eq!(out.state.log, ["\"v\""]);
    let error = graph().compile().unwrap().invoke(input()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "node `n` failed in step 1: it asks for a store; give the graph one with `.store(..)`"
    );
}

/// One node whose runs are counted.
fn counted(options: NodeOptions<Notes>, defaults: NodeDefaults<Notes>) -> (CompiledStateGraph<Notes>, Count) {
    let runs = Count::default();
    let counter = runs.clone();
    let node = move |notes: Notes| {
        counter.up();
        async move { Notes::update().log([format!("{:?}", notes.topic)]) }
    };
    let mut graph = StateGraph::new();
    graph.set_node_defaults(defaults).add_node_with("n", node, options).add_edge(START, "n");
    (graph.cache(MemoryCache::new()).compile().unwrap(), runs)
}

#[tokio::test]
async fn a_cached_node_runs_once_for_each_input() {
    let (app, runs) = counted(NodeOptions::new().cache(CachePolicy::new()), NodeDefaults::new());
    for topic in ["x", "y", "x", "y"] {
        let out = app.invoke(Notes::update().topic(topic)).await.unwrap();
        assert_eq!(out.state.log, [format!("Some({topic:?})")]);
    }
    assert_eq!(runs.get(), 2);
}

/// Keeps only the first byte of what it is given first.
struct Spoiling(MemoryCache, Count);

#[async_trait::async_trait]
impl Cache for Spoiling {
    async fn get(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>, CacheError> {
        self.0.get(keys).await
    }

    async fn set(&self, mut entries: Vec<(CacheKey, Bytes, Option<Duration>)>) -> Result<(), CacheError> {
        if self.1.up() == 0 {
            entries.iter_mut().for_each(|(_, value, _)| value.truncate(1));
        }
        self.0.set(entries).await
    }

    async fn clear(&self, namespaces: Option<&[Vec<String>]>) -> Result<(), CacheError> {
        self.0.clear(namespaces).await
    }
}

/// A cache outlives the program that filled it: a result of an earlier release may not fit the state of now.
#[tokio::test]
async fn a_cached_result_that_does_not_decode_is_computed_again() {
    let runs = Count::default();
    let counter = runs.clone();
    let node = move |_: Notes| {
        counter.up();
        async { Notes::update().log(["computed"]) }
    };
    let mut graph = StateGraph::new();
    graph.add_node_with("n", node, NodeOptions::new().cache(CachePolicy::new()));
    let cache = Spoiling(MemoryCache::new(), Count::default());
    let app = graph.add_edge(START, "n").cache(cache).compile().unwrap();
    for run in [1, 2, 2] {
        assert_eq!(app.invoke(input()).await.unwrap().state.log.last().unwrap(), "computed");
        assert_eq!(runs.get(), run);
    }
}

#[tokio::test]
async fn a_cache_key_decides_what_is_the_same() {
    let by_length = CachePolicy::by(|notes: &Notes| notes.topic.as_ref().map(String::len));
    let (app, runs) = counted(NodeOptions::new().cache(by_length), NodeDefaults::new());
    for topic in ["x", "y", "long"] {
        app.invoke(Notes::update().topic(topic)).await.unwrap();
    }
    assert_eq!(runs.get(), 2);
}

#[tokio::test]
async fn a_cache_key_is_made_of_what_was_sent_too() {
    let runs = Count::default();
    let counter = runs.clone();
    let work = move |Sent(word): Sent<String>| {
        counter.up();
        async move { Notes::update().log([word]) }
    };
    let by_first_letter = CachePolicy::by(|Sent(word): &Sent<String>| word.chars().next());
    let app = StateGraph::<Notes>::new()
        .add_node_with("work", work, NodeOptions::new().cache(by_first_letter))
        .add_conditional_edges(START, |notes: &Notes| Send::new("work", notes.topic.clone().unwrap_or_default()))
        .cache(MemoryCache::new())
        .compile()
        .unwrap();
    for (topic, known) in [("tea", "tea"), ("toast", "tea"), ("milk", "milk")] {
        assert_eq!(app.invoke(Notes::update().topic(topic)).await.unwrap().state.log, [known]);
    }
    assert_eq!(runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cached_result_is_kept_for_as_long_as_it_is_said() {
    let policy = CachePolicy::new().ttl(Duration::from_millis(40));
    let (app, runs) = counted(NodeOptions::new().cache(policy), NodeDefaults::new());
    app.invoke(input()).await.unwrap();
    app.invoke(input()).await.unwrap();
    assert_eq!(runs.get(), 1);
    tokio::time::sleep(Duration::from_millis(60)).await;
    app.invoke(input()).await.unwrap();
    assert_eq!(runs.get(), 2);
}

#[tokio::test]
async fn a_default_cache_policy_is_for_nodes_without_their_own() {
    let (app, runs) = counted(NodeOptions::new(), NodeDefaults::new().cache(CachePolicy::new()));
    app.invoke(input()).await.unwrap();
    app.invoke(input()).await.unwrap();
    assert_eq!(runs.get(), 1);
}

#[tokio::test]
async fn a_cached_update_is_marked_as_such() {
    let (app, _) = counted(NodeOptions::new().cache(CachePolicy::new()), NodeDefaults::new());
    app.invoke(input()).await.unwrap();
    let all = events(app.stream(input()).start()).await;
    assert_eq!(all[0]["data"], json!({ "n": { "log": ["Some(\"t\")"] }, "__metadata__": { "cached": true } }));
}

#[tokio::test]
async fn a_deferred_node_runs_when_nothing_else_is_left() {
    let graph = |options| {
        let mut graph = StateGraph::new();
        graph
            .add_node("a", says("a"))
            .add_node("b", says("b"))
            .add_node("c", says("c"))
            .add_node_with("last", says("last"), options)
            .add_sequence(["a", "b", "c"])
            .add_edge("a", "last");
        graph
    };
    let out = graph(NodeOptions::new().defer()).compile().unwrap().invoke(input()).await.unwrap();
    assert_eq!(out.state.log, ["a", "b", "c", "last"]);
    let out = graph(NodeOptions::new()).compile().unwrap().invoke(input()).await.unwrap();
    assert_eq!(out.state.log, ["a", "b", "last", "c"]);
}

#[tokio::test]
async fn an_error_handler_runs_in_the_same_step_and_instead_of_the_edges() {
    let fails = |_: Notes| async { Err::<(), _>("broken") };
    let handler = |_: Notes, error: NodeError| async move {
        Command::<Notes>::new().update(Notes::update().log([error.to_text()])).goto("rescue")
    };
    let app = saved(
        StateGraph::new()
            .add_node_with("risky", fails, NodeOptions::new().error_handler(handler))
            .add_node("next", says("next"))
            .add_node("rescue", says("rescue"))
            .add_sequence(["risky", "next"]),
    );
    let out = app.invoke(input()).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["risky: broken", "rescue"]);
    assert_eq!(app.thread("t").state().await.unwrap().step, Some(2));
}

trait ToText {
    fn to_text(&self) -> String;
}

impl ToText for NodeError {
    fn to_text(&self) -> String {
        format!("{}: {}", self.node(), self.message())
    }
}

#[tokio::test]
async fn a_default_error_handler_is_for_nodes_without_their_own() {
    let fails = |_: Notes| async { Err::<(), _>("broken") };
    let handler =
        |_: Notes, error: NodeError| async move { Notes::update().log([format!("default {}", error.node())]) };
    let app = StateGraph::new()
        .set_node_defaults(NodeDefaults::new().error_handler(handler))
        .add_node("x", fails)
        .add_node_with("y", fails, NodeOptions::new().error_handler(says("own")))
        .add_edge(START, "x")
        .add_edge(START, "y")
        .compile()
        .unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().state.log, ["default x", "own"]);
}

#[tokio::test]
async fn a_panic_goes_to_the_error_handler_too() {
    let panics = |notes: Notes| async move { assert!(notes.total > 0, "there is nothing to count") };
    let options = NodeOptions::new()
        .error_handler(|_: Notes, error: NodeError| async move { Notes::update().log([error.to_text()]) });
    let app = StateGraph::new().add_node_with("n", panics, options).add_edge(START, "n").compile().unwrap();
    let log = app.invoke(input()).await.unwrap().state.log;
    assert_eq!(log, ["n: node `n` panicked in step 1: there is nothing to count"]);
}

#[tokio::test]
async fn metadata_of_a_node_is_given_to_the_tasks_stream_and_drawn() {
    let options = NodeOptions::new().metadata("owner", "ada");
    let app = StateGraph::new().add_node_with("n", says("n"), options).add_edge(START, "n").compile().unwrap();
    let all = events(app.stream(input()).mode(Mode::Tasks).start()).await;
    assert_eq!(all[0]["data"]["metadata"], json!({ "owner": "ada" }));
    assert!(app.draw().to_mermaid().contains("owner = ada"), "{}", app.draw().to_mermaid());
}

#[tokio::test]
async fn destinations_are_drawn() {
    let options = || NodeOptions::new().destinations(["b"]).destination("c", "else");
    let graph = |options| a_b_c_apart(options).compile().unwrap().draw().to_mermaid();
    assert!(graph(options()).contains("a -.-> b"), "{}", graph(options()));
    assert!(graph(options()).contains("else"), "{}", graph(options()));
    assert!(!graph(NodeOptions::new()).contains("a -.-> b"));
}

fn a_b_c_apart(options: NodeOptions<Notes>) -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node_with("a", says("a"), options).add_node("b", says("b")).add_node("c", says("c")).add_edge(START, "a");
    graph
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_blocking_node_does_not_hold_up_the_others() {
    // With one worker, a node that holds its thread can only be let go by another if it is not on the worker.
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let (sender, receiver) = (Mutex::new(sender), Arc::new(Mutex::new(receiver)));
    let heavy = move |_: Notes| {
        let receiver = receiver.clone();
        async move {
            receiver.lock().unwrap().recv_timeout(Duration::from_secs(20)).map_err(|e| e.to_string())?;
            Ok::<_, superstep::BoxError>(Notes::update().log(["heavy"]))
        }
    };
    let light = move |_: Notes| {
        let sender = sender.lock().unwrap().clone();
        async move {
            tokio::task::yield_now().await;
            sender.send(()).map_err(|e| e.to_string())?;
            Ok::<_, superstep::BoxError>(Notes::update().log(["light"]))
        }
    };
    let mut graph = StateGraph::new();
    graph.add_node_with("heavy", heavy, NodeOptions::new().blocking()).add_node("light", light);
    let app = graph.add_edge(START, "heavy").add_edge(START, "light").compile().unwrap();
    let run = tokio::spawn(app.invoke(input()).into_future());
    assert_eq!(run.await.unwrap().unwrap().state.log, ["heavy", "light"]);
}

/// Counts the events at `info` level that a graph makes.
struct Listener(Count);

impl tracing::Subscriber for Listener {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        if *event.metadata().level() == tracing::Level::INFO {
            self.0.up();
        }
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_graph_in_debug_logs_every_step_and_task() {
    let logged = |debug: bool| async move {
        let lines = Count::default();
        let _listening = tracing::subscriber::set_default(Listener(lines.clone()));
        a_b_c().debug(debug).compile().unwrap().invoke(input()).await.unwrap();
        lines.get()
    };
    assert_eq!(logged(false).await, 0);
    assert!(logged(true).await >= 6, "three steps and three tasks are logged");
}

/// Keeps what warnings say.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl tracing::field::Visit for Warnings {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push(format!("{field}={value:?}"));
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_write_that_is_passed_over_is_named_in_a_warning() {
    let warnings = Warnings::default();
    let _listening = tracing::subscriber::set_default(warnings.clone());
    let mut graph = StateGraph::dynamic(JsonState::schema().append("log"));
    let node = async |_: JsonInput| json!({ "log": ["x"], "lgo": ["y"] });
    let app = graph.add_node("n", node).add_edge(START, "n").compile().unwrap();
    app.invoke(json!({ "log": [] })).await.unwrap();
    let said = warnings.0.lock().unwrap().join(" ");
    assert!(said.contains("field=\"lgo\"") && said.contains("node=\"n\""), "{said}");
}

#[tokio::test]
async fn a_graph_stops_before_and_after_nodes_and_goes_on() {
    let next = async |graph: &mut StateGraph<Notes>| {
        let app = saved(graph);
        let mut stops = Vec::new();
        let mut out = app.invoke(input()).thread("t").await.unwrap();
        for _ in 0..5 {
            assert!(out.interrupts.is_empty(), "a stop asks nothing");
            let state = app.thread("t").state().await.unwrap();
            if state.next.is_empty() {
                break;
            }
            stops.push(state.next.join(","));
            out = app.invoke(superstep::GoOn).thread("t").await.unwrap();
        }
        assert_eq!(out.state.log, ["a", "b", "c"]);
        stops
    };
    assert_eq!(next(&mut a_b_c()).await, Vec::<String>::new());
    assert_eq!(next(a_b_c().interrupt_before(["b"])).await, ["b"]);
    assert_eq!(next(a_b_c().interrupt_after(["b"])).await, ["c"]);
    assert_eq!(next(a_b_c().interrupt_before(["*"])).await, ["a", "b", "c"]);
    assert_eq!(next(a_b_c().interrupt_after(["*"])).await, ["b", "c"]);
}

#[tokio::test]
async fn sends_carry_what_they_were_given_and_never_collapse() {
    let work = |Sent(n): Sent<i64>, cx: Context| async move {
        Notes::update().total(n).log([format!("{n} in step {}", cx.step())])
    };
    let app = StateGraph::<Notes>::new()
        .add_node("work", work)
        .add_conditional_edges(START, |_: &Notes| {
            vec![Send::new("work", 2), Send::new("work", 2), Send::new("work", 1)]
        })
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let out = app.invoke(input()).thread("t").await.unwrap();
    assert_eq!(
        (out.state.total, out.state.log.clone()),
        (5, vec!["2 in step 1".to_owned(), "2 in step 1".into(), "1 in step 1".into()])
    );
    let _: Value = out.to_json();
}

async fn loud(notes: Notes) -> NotesUpdate {
    Notes::update().log([notes.topic.unwrap_or_default().to_uppercase()])
}

async fn quiet(notes: Notes) -> NotesUpdate {
    Notes::update().log([notes.topic.unwrap_or_default().to_lowercase()])
}

#[tokio::test]
async fn two_graphs_without_names_share_a_cache_and_keep_their_own_results() {
    let cache = MemoryCache::new();
    let options = || NodeOptions::new().cache(CachePolicy::new());
    let mut upper = StateGraph::new();
    upper.add_node_with("say", loud, options()).add_edge(START, "say");
    let mut lower = StateGraph::new();
    lower.add_node_with("say", quiet, options()).add_edge(START, "say");
    for (mut graph, word) in [(upper, "TEA"), (lower, "tea")] {
        let app = graph.cache(cache.clone()).compile().unwrap();
        for _ in 0..2 {
            assert_eq!(app.invoke(Notes::update().topic("Tea")).await.unwrap().state.log, [word]);
        }
    }
}

/// A graph inside could not reach the store that it was given, if the graph around it had none.
#[tokio::test]
async fn a_graph_inside_uses_its_own_store_if_none_is_around_it() {
    let node = |_: Notes, cx: Context| async move {
        let Some(store) = cx.store() else { return Ok::<_, superstep::BoxError>(Notes::update().log(["no store"])) };
        let found = store.get(["facts"], "whose").await?.map(|item| item.value.to_string());
        Ok(Notes::update().log([found.unwrap_or_default()]))
    };
    let store_of = async |owner: &str| {
        let store = MemoryStore::new();
        store.put(["facts"], "whose", json!(owner)).await.unwrap();
        store
    };
    let inner = |store: Option<MemoryStore>| {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node("in", node).add_edge(START, "in");
        if let Some(store) = store {
            graph.store(store);
        }
        graph.compile().unwrap()
    };
    let around = |inside| {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node("sub", inside).add_edge(START, "sub");
        graph
    };
    let (own, other) = (store_of("own").await, store_of("around").await);
    let log = async |graph: &StateGraph<Notes>| {
        graph.compile().unwrap().invoke(Notes::update().topic("t")).await.unwrap().state.log.clone()
    };
    assert_eq!(log(&around(inner(Some(own.clone())))).await, [r#""own""#]);
    let middle = around(inner(None)).store(own.clone()).compile().unwrap();
    assert_eq!(log(&around(middle)).await, [r#""own""#], "what is further inside uses it too");
    assert_eq!(log(around(inner(Some(own))).store(other)).await, [r#""around""#]);
    assert_eq!(log(&around(inner(None))).await, ["no store"]);
}

#[test]
fn options_that_can_have_no_effect_are_refused() {
    let of = |options: NodeOptions<Notes>| {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node_with("n", async |_: Notes| {}, options).add_edge(START, "n");
        graph.compile().unwrap_err().to_string()
    };
    let lone = superstep::TimeoutPolicy::run(std::time::Duration::from_secs(1)).on_heartbeat_only();
    assert_eq!(
        of(NodeOptions::new().timeout(lone)),
        "node `n`: `on_heartbeat_only` is about an idle limit, and there is none; add one with `.idle(..)`"
    );
    assert_eq!(
        of(NodeOptions::new().cache(CachePolicy::new().ttl(std::time::Duration::ZERO))),
        "node `n`: results that are kept for no time are never found; give the cache a longer `ttl`, or none"
    );
}

#[tokio::test]
async fn a_place_in_a_graph_inside_is_refused_without_a_checkpointer() {
    let app = a_b_c().compile().unwrap();
    let saved = saved(&mut a_b_c());
    saved.invoke(input()).thread("t").await.unwrap();
    let mut at = saved.get_state("t").await.unwrap().checkpoint.unwrap();
    at.namespace = "b".to_owned();
    let error = app.invoke(superstep::GoOn).at(&at).await.unwrap_err();
    assert_eq!(error.to_string(), "a checkpoint was named, but the graph has no checkpointer");
}
