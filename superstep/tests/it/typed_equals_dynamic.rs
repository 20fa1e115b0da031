//! A typed state and a dynamic one with the same fields are the same to the engine.
//!
//! Graphs are made at random and run over both: results, histories and events must be equal.

use std::future::ready;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use superstep::{
    BoxError, Command, CompiledStateGraph, Context, IntoInput, JsonFields, JsonInput, JsonReducer, JsonState,
    MemorySaver, Mode, Persist, StateGraph, Topic,
};
use tokio::task::unconstrained;

use crate::support::random_graphs::{
    Act, Read, Spec, Turn, fan, histories_inside, inputs, lead, name, options, spec, typed, typed_graph, wire,
    wire_inside, work_writes, writes,
};
use crate::support::{events, history, items, same_items};

fn same_fields() -> JsonFields {
    JsonState::schema()
        .append("log")
        .sum("total")
        .last_value("last")
        .reducer("best", JsonReducer::Max, Some(json!(0)))
        .topic("news")
        .field("all_news", Topic::new().accumulate())
        .any("hint")
        .ephemeral("flash")
}

fn dynamic_writes(acts: &[Act], input: &JsonInput) -> Result<Value, BoxError> {
    let news = input["news"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    let read = Read { total: input["total"].as_i64().unwrap_or(0), last: input["last"].as_i64(), news };
    Ok(Value::Object(writes(acts, &read)?))
}

fn dynamic_graph(spec: &Spec) -> CompiledStateGraph<JsonState> {
    let fields = same_fields();
    let mut graph = StateGraph::dynamic(fields.clone());
    for (ix, node) in spec.nodes.iter().enumerate() {
        let acts = node.acts_that_end();
        let goto = node.goto.filter(|to| *to > ix).map(name);
        match (&node.inside, goto) {
            (None, None) => {
                graph.add_node_with(name(ix), move |i: JsonInput| ready(dynamic_writes(&acts, &i)), options(node))
            }
            (None, Some(to)) => {
                let lead = move |input: JsonInput| {
                    ready(dynamic_writes(&acts, &input).map(|update| Command::new().update(update).goto(to.clone())))
                };
                graph.add_node_with(name(ix), lead, options(node))
            }
            (Some(inside), _) => {
                let mut child = StateGraph::dynamic(fields.clone());
                for (step, acts) in inside.steps.iter().cloned().enumerate() {
                    child.add_node(format!("step{step}"), move |i: JsonInput| ready(dynamic_writes(&acts, &i)));
                }
                graph.add_node_with(name(ix), wire_inside(&mut child, inside, spec), options(node))
            }
        };
        if !matches!(node.turn, Turn::Nowhere) {
            let (turn, fields) = (node.turn, fields.clone());
            let path = move |state: &JsonState| {
                let total = state.get(&fields, "total").and_then(Value::as_i64).unwrap_or(0);
                fan(lead(turn, ix, total))
            };
            // It must not matter that a path asks for its task's context, and so is no part of the fast path.
            if ix % 2 == 0 {
                graph.add_conditional_edges(name(ix), path);
            } else {
                graph.add_conditional_edges(name(ix), move |state: Arc<JsonState>, _: Context| ready(path(&state)));
            }
        }
    }
    let work = async |input: JsonInput| Value::Object(work_writes(input.as_i64().expect("a number was sent")));
    wire(graph.add_node("work", work), spec).checkpointer(MemorySaver::new()).compile().expect("the spec is a graph")
}

/// Everything that a caller can see of several runs on one thread.
async fn seen<S, M>(app: &CompiledStateGraph<S>, inputs: impl IntoIterator<Item = impl IntoInput<S, M>>) -> Value
where
    S: Persist,
{
    let mut all = Vec::new();
    for input in inputs {
        let modes = [Mode::Values, Mode::Updates, Mode::Tasks, Mode::Checkpoints];
        let stream = app.stream(input).thread("t").recursion_limit(30).modes(modes).subgraphs().start();
        all.push(json!(events(stream).await));
    }
    let state = match app.thread("t").state().await {
        Ok(state) => json!({ "values": state.values(), "next": state.next }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    let inside = histories_inside(&app.thread("t")).await;
    let history = history(&app.thread("t")).await.expect("the history can be read");
    json!({ "runs": all, "state": state, "history": history, "inside": inside })
}

async fn compare(spec: &Spec) -> Result<(), TestCaseError> {
    let typed_app = typed_graph(spec).checkpointer(MemorySaver::new()).compile().expect("the spec is a graph");
    // Tasks side by side show their events as they finish. So that both runs give way at the same points, neither
    // starts with what the other left of tokio's budget.
    let of_typed = unconstrained(seen(&typed_app, inputs(spec).map(|w| typed(&w)))).await;
    let of_dynamic = unconstrained(seen(&dynamic_graph(spec), inputs(spec).map(Value::Object))).await;
    prop_assert_eq!(&of_typed["state"], &of_dynamic["state"], "the state at the end");
    for part in ["history", "inside"] {
        same_items(&of_typed[part], &of_dynamic[part], part)?;
    }
    for (typed, dynamic) in items(&of_typed["runs"]).iter().zip(items(&of_dynamic["runs"])) {
        same_items(typed, dynamic, "events")?;
    }
    prop_assert_eq!(of_typed, of_dynamic);
    Ok(())
}

#[test]
fn a_typed_graph_and_its_dynamic_twin_do_the_same() {
    let config = ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let outcome = runner.run(&spec(), |spec| runtime.block_on(compare(&spec)));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
