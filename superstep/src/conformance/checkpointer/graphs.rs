//! Clauses on whole graphs: what runs, pauses and is looked at is the same as on a [`MemorySaver`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::super::{Broken, Checked, equal};
use super::stage::Stage;
use crate::call::{Context, Interrupted, Resume, Send};
use crate::checkpoint::{Checkpointer, Durability, MemorySaver};
use crate::graph::{CompiledStateGraph, StateGraph};
use crate::json::{JsonFields, JsonState};
use crate::names::START;
use crate::node::JsonInput;
use crate::run::GoOn;
use crate::thread::Thread;

type Saver = Arc<dyn Checkpointer>;

/// Plays a program on the checkpointer and in memory; both must show the same.
async fn as_in_memory<F>(stage: &Stage, play: impl Fn(Saver, Durability) -> F) -> Checked
where
    F: Future<Output = Checked<Vec<Value>>>,
{
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let found = play(stage.saver.clone(), durability).await?;
        let expected = play(Arc::new(MemorySaver::new()), durability).await?;
        equal(format!("how much there is to see with durability {durability:?}"), &found.len(), &expected.len())?;
        for (found, expected) in found.iter().zip(&expected) {
            equal(format!("what is to be seen with durability {durability:?}"), found, expected)?;
        }
        for thread in stage.saver.threads(None, usize::MAX).await? {
            stage.saver.delete_thread(&thread).await?;
        }
    }
    Ok(())
}

fn notes() -> StateGraph<JsonState> {
    let fields: JsonFields = JsonState::schema().append("log").sum("total").last_value("topic");
    StateGraph::dynamic(fields)
}

/// A node that logs its name.
fn says(name: &'static str) -> impl Fn(JsonInput) -> std::future::Ready<Value> + Clone + Sync + std::marker::Send {
    move |_| std::future::ready(json!({ "log": [name], "total": 1 }))
}

/// A node that asks, and logs the answer.
async fn asks(_: JsonInput, cx: Context) -> Result<Value, Interrupted> {
    let answer: String = cx.interrupt("sure?")?;
    Ok(json!({ "log": [format!("asked: {answer}")] }))
}

fn compiled(graph: &StateGraph<JsonState>) -> Checked<CompiledStateGraph<JsonState>> {
    Ok(graph.compile()?)
}

/// The thread as it is now, and its history.
async fn shown(thread: &Thread<JsonState>) -> Checked<Vec<Value>> {
    let now = thread.state_with_subgraphs().await?;
    let mut all = vec![without_ids(now.to_json())];
    all.extend(thread.history().await?.iter().map(|snapshot| without_ids(snapshot.to_json())));
    Ok(all)
}

/// Takes out what differs from run to run.
fn without_ids(value: Value) -> Value {
    const IDS: [&str; 6] = ["id", "checkpoint", "parent", "timestamp", "created_at", "namespace"];
    match value {
        Value::Object(map) => {
            let stays = map.into_iter().filter(|(key, _)| !IDS.contains(&key.as_str()));
            stays.map(|(key, value)| (key, without_ids(value))).collect()
        }
        Value::Array(list) => list.into_iter().map(without_ids).collect(),
        other => other,
    }
}

pub(super) async fn a_question_waits_and_is_answered(stage: Stage) -> Checked {
    as_in_memory(&stage, |saver, durability| async move {
        let mut graph = notes();
        graph.add_node("a", says("a")).add_node("ask", asks).add_node("z", says("z"));
        let app = compiled(graph.add_sequence(["a", "ask", "z"]).checkpointer(saver))?;
        let thread = app.thread("t");
        app.invoke(json!({ "topic": "tea" })).thread("t").durability(durability).metadata("by", "suite").await?;
        let mut seen = shown(&thread).await?;
        app.invoke(Resume::value("yes")).thread("t").durability(durability).await?;
        seen.extend(shown(&thread).await?);
        app.invoke(json!({ "topic": "coffee" })).thread("t").durability(durability).await?;
        seen.extend(shown(&thread).await?);
        Ok(seen)
    })
    .await
}

pub(super) async fn an_older_checkpoint_is_forked(stage: Stage) -> Checked {
    as_in_memory(&stage, |saver, durability| async move {
        let mut graph = notes();
        graph.add_node("a", says("a")).add_node("b", says("b")).add_node("c", says("c"));
        let app = compiled(graph.add_sequence(["a", "b", "c"]).checkpointer(saver))?;
        let thread = app.thread("t");
        app.invoke(json!({ "topic": "tea" })).thread("t").durability(durability).await?;
        let mut seen = shown(&thread).await?;
        let history = thread.history().await?;
        for snapshot in history.iter().rev() {
            let Some(at) = &snapshot.checkpoint else { return Err(Broken("a snapshot has no checkpoint".to_owned())) };
            let fork = thread.at(at.id).fork(json!({ "topic": "a fork" })).as_node("a").await?;
            fork.resume().durability(durability).await?;
            seen.extend(shown(&thread).await?);
            thread.at(at.id).resume().durability(durability).await?;
            seen.extend(shown(&thread).await?);
        }
        Ok(seen)
    })
    .await
}

pub(super) async fn parallel_tasks_keep_what_finished(stage: Stage) -> Checked {
    as_in_memory(&stage, |saver, durability| async move {
        let broken = Arc::new(AtomicBool::new(true));
        let mend = broken.clone();
        let fails = move |input: JsonInput| {
            let broken = broken.load(Ordering::SeqCst);
            async move { if broken { Err("no luck") } else { Ok(json!({ "log": [input.0] })) } }
        };
        let mut graph = notes();
        graph.add_node("plan", says("plan")).add_node("left", says("left")).add_node("right", asks);
        graph.add_node("work", fails).add_node("last", says("last")).add_edge(START, "plan");
        let sends = |_: &JsonState| (1..=2).map(|part| Send::new("work", json!(part))).collect::<Vec<_>>();
        graph.add_conditional_edges("plan", sends).add_edge("plan", "left").add_edge("plan", "right");
        let app = compiled(graph.add_edge(["left", "right", "work"], "last").checkpointer(saver))?;
        let thread = app.thread("t");
        let failed = app.invoke(json!({ "topic": "tea" })).thread("t").durability(durability).await;
        let mut seen = vec![json!(failed.err().map(|error| error.to_string()))];
        seen.extend(shown(&thread).await?);
        mend.store(false, Ordering::SeqCst);
        app.invoke(GoOn).thread("t").durability(durability).await?;
        seen.extend(shown(&thread).await?);
        app.invoke(Resume::value("yes")).thread("t").durability(durability).await?;
        seen.extend(shown(&thread).await?);
        Ok(seen)
    })
    .await
}

pub(super) async fn subgraphs_pause_and_go_on(stage: Stage) -> Checked {
    as_in_memory(&stage, |saver, durability| async move {
        let mut inner = notes();
        inner.add_node("x", says("x")).add_node("ask", asks).add_sequence(["x", "ask"]).output(["total"]);
        let (child, own) = (compiled(&inner)?, compiled(inner.persistent())?);
        let mut graph = notes();
        graph.add_node("a", says("a")).add_node("child", child).add_node("own", own);
        let app = compiled(graph.add_sequence(["a", "child", "own"]).checkpointer(saver))?;
        let thread = app.thread("t");
        let mut seen = Vec::new();
        for topic in ["tea", "coffee"] {
            app.invoke(json!({ "topic": topic })).thread("t").durability(durability).await?;
            seen.extend(shown(&thread).await?);
            for answer in ["yes", "no"] {
                app.invoke(Resume::value(answer)).thread("t").durability(durability).await?;
                seen.extend(shown(&thread).await?);
            }
        }
        Ok(seen)
    })
    .await
}

pub(super) async fn a_thread_is_changed_by_hand(stage: Stage) -> Checked {
    as_in_memory(&stage, |saver, durability| async move {
        let mut graph = notes();
        graph.add_node("a", says("a")).add_node("ask", asks).add_node("z", says("z"));
        let app = compiled(graph.add_sequence(["a", "ask", "z"]).checkpointer(saver))?;
        let thread = app.thread("t");
        app.invoke(json!({ "topic": "tea" })).thread("t").durability(durability).await?;
        thread.update(json!({ "log": ["by hand"] })).as_node("a").await?;
        let mut seen = shown(&thread).await?;
        thread.copy().await?;
        thread.update_as_input(json!({ "topic": "coffee" })).await?;
        seen.extend(shown(&thread).await?);
        thread.resume().durability(durability).await?;
        thread.clear_tasks().await?;
        seen.extend(shown(&thread).await?);
        Ok(seen)
    })
    .await
}
