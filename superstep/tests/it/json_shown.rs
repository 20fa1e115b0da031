//! States, events and snapshots as JSON and as text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{
    BoxError, Context, Event, GoOn, JsonInput, JsonState, MemorySaver, Mode, Resume, START, Send, Sent, State,
    StateGraph,
};

/// What JSON has no form of its own for.
#[derive(State, Debug, Clone, Default, Serialize, Deserialize)]
struct Ledger {
    by_year: BTreeMap<i32, u128>,
    widest: Option<u128>,
    deepest: Option<i128>,
    nested: Option<Vec<(bool, BTreeMap<u8, Option<i128>>)>>,
    text: Option<String>,
}

fn ledger() -> LedgerUpdate {
    Ledger::update()
        .by_year([(-44, 1), (2026, u128::MAX)])
        .widest(u128::from(u64::MAX))
        .deepest(i128::MIN)
        .nested(vec![(true, BTreeMap::from([(7, Some(-1)), (8, None)]))])
        .text(r#"a "quoted" 99999999999999999999999"#)
}

fn shown() -> Value {
    json!({
        "by_year": { "-44": 1, "2026": "340282366920938463463374607431768211455" },
        "widest": u64::MAX,
        "deepest": "-170141183460469231731687303715884105728",
        "nested": [[true, { "7": -1, "8": null }]],
        "text": r#"a "quoted" 99999999999999999999999"#,
    })
}

async fn collect<S: State>(mut stream: superstep::EventStream<S>) -> Vec<Event> {
    let mut all = Vec::new();
    while let Some(event) = stream.next().await {
        all.push(event.unwrap());
    }
    all
}

/// They were shown as `__error__`, though they were saved and read as they are.
#[tokio::test]
async fn keys_that_are_numbers_and_integers_of_more_than_64_bits_have_a_form_in_json() {
    let mut graph = StateGraph::<Ledger>::new();
    graph.add_node("write", async |_: Ledger| ledger()).add_node("idle", async |_: Ledger| ());
    let app = graph.add_sequence(["write", "idle"]).checkpointer(MemorySaver::new()).compile().unwrap();
    let modes = [Mode::Values, Mode::Updates, Mode::Tasks, Mode::Checkpoints];
    let all = collect(app.stream(Ledger::default()).thread("t").modes(modes).start()).await;
    let all: Vec<Value> = all.iter().map(Event::to_json).collect();
    assert!(!Value::Array(all.clone()).to_string().contains("__error__"), "{all:?}");
    assert!(all.contains(&shown()), "as values: {all:?}");
    assert!(all.contains(&json!({ "write": shown() })), "as an update: {all:?}");
    let snapshot = app.thread("t").state().await.unwrap();
    assert_eq!(snapshot.values(), shown());
    assert_eq!(snapshot.state.by_year[&2026], u128::MAX, "what is saved is what was given");
    let history = app.thread("t").history().await.unwrap();
    let written = history.iter().flat_map(|at| &at.tasks).find(|task| task.name == "write").unwrap();
    assert_eq!(written.result(), Some(shown()));
    assert_eq!(app.invoke(ledger()).thread("u").await.unwrap().to_json()["widest"], json!(u64::MAX));
}

/// What was sent to a node is saved without its type.
#[tokio::test]
async fn a_payload_whose_keys_are_numbers_is_shown_and_read_by_a_dynamic_node() {
    let node = async |input: JsonInput, cx: Context| {
        cx.interrupt::<bool>("go?")?;
        Ok::<_, BoxError>(json!({ "log": [input.0] }))
    };
    let mut graph = StateGraph::dynamic(JsonState::schema().append("log"));
    graph.add_node("work", node).add_node("send", async |_: JsonInput| {
        superstep::Command::<JsonState>::new().goto(Send::new("work", BTreeMap::from([(1, "a"), (2, "b")])))
    });
    let app = graph.add_edge(START, "send").checkpointer(MemorySaver::new()).compile().unwrap();
    app.invoke(json!({ "log": [] })).thread("t").await.unwrap();
    let payload = json!({ "1": "a", "2": "b" });
    assert_eq!(app.thread("t").state().await.unwrap().tasks[0].input(), payload);
    let out = app.invoke(Resume::value(true)).thread("t").await.unwrap();
    assert_eq!(out.to_json(), json!({ "log": [payload] }));
}

#[tokio::test]
async fn a_payload_of_a_type_is_still_read_as_it_was_sent() {
    let node = async |Sent(pairs): Sent<BTreeMap<u8, u128>>| Ledger::update().widest(pairs[&1]);
    let mut graph = StateGraph::<Ledger>::new();
    graph.add_node("work", node).add_node("send", async |_: Ledger| {
        superstep::Command::<Ledger>::new().goto(Send::new("work", BTreeMap::from([(1u8, u128::MAX)])))
    });
    let app = graph.add_edge(START, "send").compile().unwrap();
    assert_eq!(app.invoke(Ledger::default()).await.unwrap().state.widest, Some(u128::MAX));
}

/// A graph that saves nothing did not know how to show its state: all values were null.
#[tokio::test]
async fn debug_shows_of_an_event_what_its_json_shows() {
    let mut graph = StateGraph::<Ledger>::new();
    graph.add_node("write", async |_: Ledger| ledger());
    let app = graph.add_edge(START, "write").compile().unwrap();
    let all = collect(app.stream(Ledger::default()).modes([Mode::Values, Mode::Updates, Mode::Tasks]).start()).await;
    assert!(all.len() > 3);
    for event in &all {
        let json = event.to_json().to_string();
        assert_eq!(format!("{:?}", event.data), json);
        assert!(format!("{event:?}").contains(&json), "{event:?}");
    }
    let last = format!("{:?}", all.last().unwrap());
    assert!(last.contains("340282366920938463463374607431768211455"), "{last}");
}

/// A task that wrote only what the graph has no field for was saved as if it had not run, and ran again.
#[tokio::test]
async fn a_task_whose_writes_are_for_no_field_has_finished_with_an_empty_result() {
    let runs = crate::support::Count::default();
    let counter = runs.clone();
    let unknown = move |_: JsonInput| {
        counter.up();
        async { json!({ "nowhere": 1 }) }
    };
    let asks = async |_: JsonInput, cx: Context| {
        let answer: String = cx.interrupt("what?")?;
        Ok::<_, BoxError>(json!({ "log": [answer] }))
    };
    let mut graph = StateGraph::dynamic(JsonState::schema().append("log"));
    graph.add_node("asks", asks).add_node("unknown", unknown).add_edge(START, "asks").add_edge(START, "unknown");
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    app.invoke(json!({ "log": [] })).thread("t").await.unwrap();
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(seen.next, ["asks"]);
    assert_eq!(seen.tasks[1].result(), Some(json!({})));
    app.invoke(GoOn).thread("t").await.unwrap();
    app.invoke(Resume::value("this")).thread("t").await.unwrap();
    assert_eq!(runs.get(), 1);

    // Alone in its step, its result is saved with the checkpoint.
    let mut graph = StateGraph::dynamic(JsonState::schema().append("log"));
    graph.add_node("unknown", async |_: JsonInput| json!({ "nowhere": 1 })).add_edge(START, "unknown");
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    app.invoke(json!({ "log": [] })).thread("t").await.unwrap();
    assert_eq!(app.thread("t").history().await.unwrap()[1].tasks[0].result(), Some(json!({})));
}

// ---- messages of dynamic states ----

/// What a node writes to the messages of a dynamic state, and what they are then, without ids.
async fn messages(written: Value) -> Result<Value, String> {
    let mut graph = StateGraph::dynamic(JsonState::schema().messages("messages"));
    graph
        .add_node("write", move |_: JsonInput| std::future::ready(json!({ "messages": written })))
        .add_edge(START, "write");
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    let out = app.invoke(json!({ "messages": [] })).thread("t").await.map_err(|error| error.to_string())?;
    let ids = |value: &Value| {
        let list = value["messages"].as_array().unwrap();
        list.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // They have their ids from when the node returned: every look shows the same.
    assert_eq!(ids(&out.to_json()), ids(&app.thread("t").state().await.unwrap().values()));
    Ok(crate::support::without_ids(out.to_json()["messages"].clone()))
}

/// Pairs were taken apart into two texts each, and refused.
#[tokio::test]
async fn a_message_may_be_a_text_a_pair_of_role_and_content_or_an_object() {
    let (hi, yo) = (json!({ "type": "human", "content": "hi" }), json!({ "type": "ai", "content": "yo" }));
    assert_eq!(messages(json!("hi")).await, Ok(json!([hi])));
    assert_eq!(
        messages(json!(["hi", ["assistant", "yo"], { "role": "user", "content": "hi" }])).await,
        Ok(json!([hi, yo, hi]))
    );
    // A list is a list of messages: two texts, not a pair.
    let two = json!([{ "type": "human", "content": "user" }, hi]);
    assert_eq!(messages(json!(["user", "hi"])).await, Ok(two));
    let parts = json!([{ "type": "text", "text": "hi" }]);
    assert_eq!(messages(json!([["system", parts]])).await, Ok(json!([{ "type": "system", "content": parts }])));
    let no_words = json!([{ "role": "assistant", "content": null }]);
    assert_eq!(messages(no_words).await, Ok(json!([{ "type": "ai", "content": "" }])));
    let call = json!({ "id": "c", "type": "function", "function": { "name": "add", "arguments": "{\"a\":1}" } });
    let called = messages(json!([{ "role": "assistant", "content": "", "tool_calls": [call] }])).await.unwrap();
    assert_eq!(called[0]["tool_calls"], json!([{ "name": "add", "args": { "a": 1 }, "type": "tool_call" }]));
}

/// A message without content was taken for an empty one.
#[tokio::test]
async fn what_is_no_message_is_refused_with_what_it_lacks() {
    let cases = [
        (
            json!([{ "role": "user" }]),
            "a message needs `content`; an object without words has the content null or an empty text",
        ),
        (json!([{ "role": "assistant", "tool_calls": [] }]), "a message needs `content`"),
        (json!([{ "role": "user", "content": 5 }]), "a message's `content` is text or a list of parts, not 5"),
        (json!([["user", null]]), "a message needs `content`"),
        (
            json!([["robot", "hi"]]),
            "a message's `role` is `user`, `assistant`, `system`, `developer` or `tool`, not \"robot\"",
        ),
        (json!([{ "content": "hi" }]), "a message needs a `role`"),
        (json!([["user", "hi", "there"]]), "a list of 3 is not a message; write `[role, content]`"),
        (
            json!([{ "role": "tool", "content": "3" }]),
            "a tool's message needs the `tool_call_id` of the call that it answers",
        ),
        (json!([5]), "a number is not a message"),
    ];
    for (written, words) in cases {
        let error = messages(written.clone()).await.unwrap_err();
        assert!(error.contains(words), "{written}: {error}");
    }
}
