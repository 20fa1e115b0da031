//! What nodes of a `Pregel` graph may ask for beside their value.

use serde_json::{Value, json};
use superstep::{
    BoxError, Command, CompilationError, CompiledStateGraph, Context, EventData, JsonState, LastValue, MemorySaver,
    MemoryStore, Mode, NodeBuilder, Pregel, PregelBuilder, Resume, Runtime, Send, Store, StoreHandle, Task,
};

use crate::support::Count;

/// A graph that takes `in`, runs this node on it, and gives `out`.
fn graph(node: NodeBuilder) -> PregelBuilder {
    let node = node.write_to("out");
    let builder = Pregel::builder().channel("in", LastValue::default()).channel("out", LastValue::default());
    builder.node("node", node).input(["in"]).output(["out"])
}

fn on_input() -> NodeBuilder {
    NodeBuilder::new().subscribe_only("in")
}

async fn out_of(app: Result<CompiledStateGraph<JsonState>, CompilationError>) -> Value {
    app.unwrap().invoke(json!({ "in": 1 })).await.unwrap().to_json()["out"].take()
}

/// The store of the graph and the contexts of the run could not be reached: a step got its value and nothing else.
#[tokio::test]
async fn a_step_finds_the_store_of_its_graph() {
    let node = on_input().then(async |value: Value, store: StoreHandle| {
        store.put(["seen"], "last", value.clone()).await?;
        Ok(value)
    });
    let store = MemoryStore::new();
    assert_eq!(out_of(graph(node).store(store.clone()).build()).await, json!(1));
    assert_eq!(store.get(["seen"], "last").await.unwrap().unwrap().value, 1);
}

#[tokio::test]
async fn a_step_finds_what_the_caller_gave() {
    let node = on_input().then(async |value: Value, factor: Runtime<i64>| Ok(json!(value.as_i64().unwrap() * *factor)));
    let app = graph(node).build().unwrap();
    assert_eq!(app.invoke(json!({ "in": 2 })).context(21i64).await.unwrap().to_json(), json!({ "out": 42 }));
    let error = app.invoke(json!({ "in": 2 })).context("21").await.unwrap_err();
    assert!(error.to_string().contains("it asks for a context of type `i64`, but the run was given `&str`"), "{error}");
}

#[tokio::test]
async fn a_step_asks_and_is_answered() {
    let node = on_input().then(async |value: Value, cx: Context| {
        let more: i64 = cx.interrupt(format!("how much more than {value}?"))?;
        Ok(json!(value.as_i64().unwrap() + more))
    });
    let app = graph(node).checkpointer(MemorySaver::new()).build().unwrap();
    let asked = app.invoke(json!({ "in": 2 })).thread("t").await.unwrap();
    assert_eq!(asked.interrupts[0].value, json!("how much more than 2?"));
    assert_eq!(app.invoke(Resume::value(40)).thread("t").await.unwrap().to_json(), json!({ "out": 42 }));
}

#[tokio::test]
async fn steps_emit_and_call_tasks_whose_results_are_kept() {
    let runs = Count::default();
    let counter = runs.clone();
    let double = Task::new("double", move |n: i64| {
        counter.up();
        async move { Ok::<_, BoxError>(n * 2) }
    });
    let node = on_input()
        .then(move |value: Value, cx: Context| {
            let double = double.clone();
            async move {
                let doubled = double.call(&cx, value.as_i64().unwrap()).await?;
                cx.emit(doubled).await;
                let _: bool = cx.interrupt("go on?")?;
                Ok(json!(doubled))
            }
        })
        .then(async |value: Value| Ok(json!(value.as_i64().unwrap() + 1)));
    let app = graph(node).checkpointer(MemorySaver::new()).build().unwrap();
    let mut events = app.stream(json!({ "in": 2 })).thread("t").mode(Mode::Custom).start();
    let mut emitted = Vec::new();
    while let Some(event) = events.next().await {
        if let EventData::Custom(value) = event.unwrap().data {
            emitted.push(value);
        }
    }
    assert_eq!(emitted, [json!(4)]);
    let out = app.invoke(Resume::value(true)).thread("t").await.unwrap();
    assert_eq!((out.to_json(), runs.get()), (json!({ "out": 5 }), 1));
}

#[tokio::test]
async fn a_step_runs_on_what_its_node_was_sent() {
    let app = graph(on_input().then(async |value: Value| Ok(value))).build().unwrap();
    let command = Command::<JsonState>::new().goto(Send::new("node", json!({ "a": 1 })));
    let app_saved = graph(on_input()).checkpointer(MemorySaver::new()).build().unwrap();
    app_saved.invoke(json!({ "in": 1 })).thread("t").await.unwrap();
    let out = app_saved.invoke(command).thread("t").await.unwrap();
    assert_eq!(out.to_json(), json!({ "out": { "a": 1 } }));
    assert_eq!(app.invoke(json!({ "in": 1 })).await.unwrap().to_json(), json!({ "out": 1 }));
}

#[test]
fn a_node_that_nothing_wakes_is_a_mistake() {
    let error = graph(on_input()).node("idle", NodeBuilder::new().read_from(["in"])).build().unwrap_err();
    assert_eq!(error.to_string(), "node `idle`: nothing wakes it; let it subscribe to a channel with `subscribe_to`");
}
