//! The fields of dynamic states, kind by kind and option by option.

use serde_json::{Value, json};
use superstep::{
    Channel, DeltaChannel, EphemeralValue, JsonFields, JsonInput, JsonReducer, JsonState, MemorySaver, START,
    StateGraph, Topic, UntrackedValue,
};

/// Two nodes side by side that write these values to field `x`, then one that shows what it reads of it.
fn two_writers(channel: impl Channel, one: Value, two: Value) -> StateGraph<JsonState> {
    let writes = |value: Value| {
        move |_: JsonInput| {
            let update = json!({ "x": value });
            async move { update }
        }
    };
    let mut graph = StateGraph::dynamic(JsonState::schema().field("x", channel).append("log"));
    graph
        .add_node("one", writes(one))
        .add_node("two", writes(two))
        .add_node("show", async |input: JsonInput| json!({ "log": [input["x"]] }))
        .add_edge(START, "one")
        .add_edge(START, "two")
        .add_edge(["one", "two"], "show");
    graph
}

async fn shown(graph: &StateGraph<JsonState>) -> Result<Value, superstep::Error> {
    let out = graph.compile().unwrap().invoke(json!({ "log": [] })).await?;
    Ok(out.to_json()["log"][0].clone())
}

#[tokio::test]
async fn an_unguarded_ephemeral_field_takes_several_writers_and_lives_for_one_step() {
    let graph = |channel| two_writers(channel, json!(1), json!(2));
    assert_eq!(shown(&graph(EphemeralValue::unguarded())).await.unwrap(), 2);
    let error = shown(&graph(EphemeralValue::default())).await.unwrap_err();
    assert!(error.to_string().contains("field `x`"), "{error}");
    let after = graph(EphemeralValue::unguarded()).compile().unwrap().invoke(json!({ "log": [] })).await.unwrap();
    assert_eq!(after.to_json().get("x"), None);
}

#[tokio::test]
async fn an_unguarded_untracked_field_takes_several_writers_and_is_in_no_checkpoint() {
    let graph = |channel| two_writers(channel, json!(1), json!(2));
    assert_eq!(shown(&graph(UntrackedValue::unguarded())).await.unwrap(), 2);
    assert!(shown(&graph(UntrackedValue::default())).await.is_err());
    let app = graph(UntrackedValue::unguarded()).checkpointer(MemorySaver::new()).compile().unwrap();
    let out = app.invoke(json!({ "log": [] })).thread("t").await.unwrap();
    assert_eq!(out.to_json()["x"], 2, "the run has it");
    for at in app.thread("t").history().await.unwrap() {
        assert_eq!(at.values().get("x"), None, "the thread has not");
    }
}

#[tokio::test]
async fn a_topic_keeps_each_value_once_if_it_is_unique() {
    let graph = |channel| two_writers(channel, json!([1, 2]), json!([2, 3]));
    assert_eq!(shown(&graph(Topic::new())).await.unwrap(), json!([1, 2, 2, 3]));
    assert_eq!(shown(&graph(Topic::new().unique())).await.unwrap(), json!([1, 2, 3]));
}

#[tokio::test]
async fn a_topic_that_accumulates_is_unique_over_all_steps_and_runs() {
    let tells = async |_: JsonInput| json!({ "x": ["tea"] });
    let run = |channel: Topic| async move {
        let app = StateGraph::dynamic(JsonState::schema().field("x", channel).last_value("in"))
            .add_node("a", tells)
            .add_node("b", tells)
            .add_sequence(["a", "b"])
            .checkpointer(MemorySaver::new())
            .compile()
            .unwrap();
        app.invoke(json!({ "in": 1 })).thread("t").await.unwrap();
        app.invoke(json!({ "in": 1 })).thread("t").await.unwrap().to_json()["x"].clone()
    };
    assert_eq!(run(Topic::new().accumulate()).await, json!(["tea", "tea", "tea", "tea"]));
    assert_eq!(run(Topic::new().accumulate().unique()).await, json!(["tea"]));
}

/// `a` writes `1` and `b` writes `2` to field `x`, one after the other, in two runs of one thread.
async fn in_two_runs(fields: JsonFields, one: Value, two: Value) -> Vec<Value> {
    let writes = |value: Value| {
        move |_: JsonInput| {
            let update = json!({ "x": value });
            async move { update }
        }
    };
    let app = StateGraph::dynamic(fields.last_value("in"))
        .add_node("a", writes(one))
        .add_node("b", writes(two))
        .add_sequence(["a", "b"])
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        seen.push(app.invoke(json!({ "in": 1 })).thread("t").await.unwrap().to_json()["x"].clone());
    }
    assert_eq!(app.thread("t").state().await.unwrap().values().get("x").cloned().unwrap_or_default(), seen[1]);
    seen
}

#[tokio::test]
async fn a_delta_field_is_a_list_that_grows() {
    let seen = in_two_runs(JsonState::schema().delta("x"), json!([1]), json!([2])).await;
    assert_eq!(seen, [json!([1, 2]), json!([1, 2, 1, 2])]);
    let seen = in_two_runs(JsonState::schema().field("x", DeltaChannel::default()), json!([1]), json!([2]));
    assert_eq!(seen.await, [json!([1, 2]), json!([1, 2, 1, 2])]);
}

#[tokio::test]
async fn reducers_merge_as_they_are_named() {
    let with = |reducer, initial: Option<Value>| JsonState::schema().reducer("x", reducer, initial);
    let seen = in_two_runs(with(JsonReducer::Add, Some(json!(10))), json!(1), json!(2)).await;
    assert_eq!(seen, [json!(13), json!(16)]);
    let seen = in_two_runs(with(JsonReducer::Max, None), json!(3), json!(2)).await;
    assert_eq!(seen, [json!(3), json!(3)]);
    let seen =
        in_two_runs(with(JsonReducer::Merge, Some(json!({ "k": 0 }))), json!({ "a": 1 }), json!({ "a": 2 })).await;
    assert_eq!(seen, [json!({ "k": 0, "a": 2 }), json!({ "k": 0, "a": 2 })]);
}

#[tokio::test]
async fn managed_fields_tell_nodes_how_many_steps_are_left() {
    let fields = JsonState::schema().append("log").remaining_steps("left").is_last_step("last");
    let tells = async |input: JsonInput| json!({ "log": [[input["left"], input["last"]]] });
    let mut graph = StateGraph::dynamic(fields);
    let app = graph.add_node("a", tells).add_node("b", tells).add_sequence(["a", "b"]).compile().unwrap();
    let run = |limit: usize| app.invoke(json!({ "log": [] })).recursion_limit(limit).into_future();
    assert_eq!(run(5).await.unwrap().to_json(), json!({ "log": [[4, false], [3, false]] }), "and are in no output");
    assert_eq!(run(3).await.unwrap().to_json(), json!({ "log": [[2, false], [1, true]] }));
}

#[test]
fn fields_are_listed_in_order() {
    let fields = JsonState::schema().sum("b").untracked("a").messages("c").ephemeral("d");
    assert_eq!(fields.names().collect::<Vec<_>>(), ["b", "a", "c", "d"]);
}

#[tokio::test]
async fn an_untracked_field_is_for_the_run_only() {
    let seen = async |input: JsonInput| json!({ "log": [input["secret"]] });
    let app = StateGraph::dynamic(JsonState::schema().untracked("secret").append("log"))
        .add_node("a", seen)
        .add_node("b", seen)
        .add_sequence(["a", "b"])
        .interrupt_before(["b"])
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    app.invoke(json!({ "secret": 7 })).thread("t").await.unwrap();
    let out = app.invoke(superstep::GoOn).thread("t").await.unwrap();
    assert_eq!(out.to_json(), json!({ "log": [7, null] }), "the second run has it no more");
}
