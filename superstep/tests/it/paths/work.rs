//! What a path is given, and what it may do.

use std::sync::Arc;

use serde_json::json;
use superstep::{
    BoxError, CachePolicy, Command, Context, EventData, Goto, MemoryCache, MemorySaver, MemoryStore, Message,
    MessageChunk, Mode, NodeOptions, RemainingSteps, RunConfig, Runtime, START, StateGraph, Store, StoreHandle,
    StreamWriter, current,
};

use super::{behind_a, input, led_by};
use crate::support::{Count, Notes, events, saved, says};

struct Deps {
    home: &'static str,
}

#[tokio::test]
async fn a_path_takes_what_a_node_takes() {
    async fn path(
        state: Arc<Notes>,
        cx: Context,
        deps: Runtime<Deps>,
        store: StoreHandle,
        config: RunConfig,
        writer: StreamWriter,
        left: RemainingSteps,
    ) -> Result<&'static str, BoxError> {
        assert_eq!((state.log.join(" "), state.topic.as_deref()), ("a".to_owned(), Some("t")));
        assert_eq!((cx.node(), cx.step(), cx.thread()), ("a", 1, Some("t")));
        assert_eq!((config.thread.as_deref(), config.metadata["who"].as_str()), (Some("t"), Some("ada")));
        assert_eq!(left.0, 9);
        store.put(["homes"], "a", json!(deps.home)).await?;
        writer.send("on the way").await;
        Ok(deps.home)
    }
    let store = Arc::new(MemoryStore::new());
    let mut graph = behind_a(&Count::default(), NodeOptions::new(), path);
    let app = graph.store(store.clone()).checkpointer(MemorySaver::new()).compile().unwrap();
    let run = app.stream(input()).thread("t").context(Deps { home: "z" }).metadata("who", "ada").recursion_limit(10);
    let seen = events(run.modes([Mode::Custom, Mode::Updates]).start()).await;
    assert_eq!(seen[0], json!({ "mode": "Custom", "path": [], "data": "on the way" }), "before the node's own end");
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(app.thread("t").state().await.unwrap().state.log, ["a", "z"]);
    assert_eq!(store.get(["homes"], "a").await.unwrap().unwrap().value, json!("z"));
}

#[tokio::test]
async fn a_path_that_asks_for_what_is_not_there_fails_with_the_way_out() {
    let app = led_by(async |_: Notes, _: StoreHandle| "z");
    let error = app.invoke(input()).thread("t").await.unwrap_err();
    assert_eq!(error.node(), Some("a"));
    let words = format!("{error}: {}", std::error::Error::source(&error).expect("it says why"));
    assert!(words.starts_with("a conditional edge of `a` failed in step 1"), "{words}");
    assert!(words.contains("asks for a store; give the graph one with `.store(..)`"), "{words}");
}

#[tokio::test]
async fn a_path_of_the_start_takes_what_a_node_takes() {
    async fn path(_: Notes, cx: Context, deps: Runtime<Deps>) -> &'static str {
        cx.emit("begun").await;
        deps.home
    }
    let app = StateGraph::new().add_node("z", says("z")).set_conditional_entry_point(path).compile().unwrap();
    let seen =
        events(app.stream(input()).context(Deps { home: "z" }).modes([Mode::Custom, Mode::Updates]).start()).await;
    assert_eq!((seen.len(), &seen[0]["data"]), (2, &json!("begun")));
}

/// A model knows of no context: it finds that of the task that it is asked in.
#[tokio::test]
async fn what_a_model_says_in_a_path_is_in_the_messages_stream() {
    async fn path(_: Notes) -> &'static str {
        assert!(current::wants_messages());
        current::emit_chunk(MessageChunk::text("m1", "to z")).await;
        current::emit_message(Message::assistant("then").with_id("m2")).await;
        "z"
    }
    for beside in [false, true] {
        let mut graph = behind_a(&Count::default(), NodeOptions::new(), path);
        if beside {
            graph.add_node("b", says("b")).add_edge(START, "b");
        }
        let app = graph.compile().unwrap();
        let mut stream = app.stream(input()).mode(Mode::Messages).start();
        let mut heard = Vec::new();
        while let Some(event) = stream.next().await {
            if let EventData::Message(said) = event.unwrap().data {
                heard.push(format!("{} in step {}: {}", said.node, said.step, said.message.text()));
            }
        }
        assert_eq!(heard, ["a in step 1: to z", "a in step 1: then"]);
    }
}

#[tokio::test]
async fn what_a_model_says_in_a_path_of_the_start_is_in_the_messages_stream() {
    let mut graph = StateGraph::new();
    graph.add_node("z", says("z")).set_conditional_entry_point(async |_: Notes| {
        current::emit_chunk(MessageChunk::text("m1", "to z")).await;
        "z"
    });
    let seen = events(graph.compile().unwrap().stream(input()).mode(Mode::Messages).start()).await;
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[tokio::test]
async fn an_error_of_a_path_of_the_start_says_so() {
    let mut graph = StateGraph::new();
    graph.add_node("z", says("z"));
    graph.set_conditional_entry_point(async |_: Notes| Err::<&str, BoxError>("no way".into()));
    let error = graph.compile().unwrap().invoke(input()).await.unwrap_err();
    assert!(error.to_string().starts_with("a conditional edge of `START` failed in step 0"), "{error}");
}

#[tokio::test]
async fn a_cached_result_leads_where_its_path_led() {
    let (runs, routes) = (Count::default(), Count::default());
    let counting = routes.clone();
    let path = move |_: Notes, _: Context| {
        counting.up();
        async { "z" }
    };
    let mut graph = behind_a(&runs, NodeOptions::new().cache(CachePolicy::new()), path);
    let app = graph.cache(MemoryCache::new()).compile().unwrap();
    for _ in 0..2 {
        assert_eq!(app.invoke(input()).await.unwrap().state.log, ["a", "z"]);
    }
    assert_eq!((runs.get(), routes.get()), (1, 1));
}

/// LangGraph writes such a command once more through the node's writers, the path among them, and fails there.
#[tokio::test]
async fn a_command_of_a_graph_that_a_path_calls_is_refused() {
    let commands =
        async |_: Notes| Command::to_parent::<Notes>(Notes::update().log(["from inside"]), [Goto::from("y")]);
    let inner = StateGraph::<Notes>::new().add_node("in", commands).add_edge(START, "in").compile().unwrap();
    let app = led_by(move |state: Notes, cx: Context| {
        let inner = inner.clone();
        async move {
            cx.invoke(&inner, state).await?;
            Ok::<_, BoxError>("z")
        }
    });
    let error = app.invoke(input()).thread("t").await.unwrap_err();
    assert_eq!(error.node(), Some("a"));
    assert!(error.to_string().contains("a path only leads; call that graph in the node"), "{error}");
}

#[tokio::test]
async fn a_path_runs_on_the_state_with_its_own_nodes_writes_alone() {
    let path = async |state: Notes, _: Context| {
        assert_eq!(state.log, ["a"]);
        "z"
    };
    let mut graph = behind_a(&Count::default(), NodeOptions::new(), path);
    let app = saved(graph.add_node("0", says("0")).add_edge(START, "0"));
    assert_eq!(app.invoke(input()).thread("t").await.unwrap().state.log, ["0", "a", "z"]);
}
