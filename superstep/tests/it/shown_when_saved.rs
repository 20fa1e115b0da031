//! With durability `sync`, what a stream shows is saved already: nothing that was seen is taken back by a crash.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use superstep::{
    AgentState, AgentStateUpdate, BoxError, CachePolicy, CheckpointError, CheckpointRecord, CompiledStateGraph,
    Context, Durability, END, Entrypoint, EventData, EventStream, Message, Mode, NodeOptions, START, State, StateGraph,
    Task, TaskId,
};

use crate::support::hooked::{Call, Hook, Hooked, Serving};
use crate::support::{Notes, a_b_c, says};

const MODES: [Mode; 6] = [Mode::Values, Mode::Updates, Mode::Messages, Mode::Tasks, Mode::Checkpoints, Mode::Debug];

/// Something that happened, in the order in which it did.
#[derive(Debug, Clone, PartialEq)]
enum Line {
    Saved(TaskId),
    SavedStep(i64),
    /// An event that tells what a task wrote.
    Shown(Mode, TaskId),
    ShownStep(Mode, i64),
}

/// Logs saves when they are over. Each takes its time, so that a reader comes first who need not wait for it.
#[derive(Clone, Default)]
struct Saves {
    lines: Arc<Mutex<Vec<Line>>>,
    /// The steps of the checkpoints that are being saved.
    steps: Arc<Mutex<Vec<i64>>>,
}

#[async_trait]
impl Hook for Saves {
    async fn around(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        serving.await?;
        let mut lines = self.lines.lock().unwrap();
        lines.extend(call.finished().iter().map(|task| Line::Saved(*task)));
        if matches!(call, Call::Put(_)) {
            lines.extend(self.steps.lock().unwrap().drain(..).map(Line::SavedStep));
        }
        Ok(())
    }

    fn write(&self, record: CheckpointRecord) -> CheckpointRecord {
        self.steps.lock().unwrap().push(record.step());
        record
    }
}

impl Saves {
    /// Reads a stream to its end, and says how often each mode showed something, and what of it was not saved yet.
    async fn unsaved<S: State>(&self, mut stream: EventStream<S>) -> (BTreeMap<String, usize>, Vec<Line>) {
        let mut values = -1;
        while let Some(event) = stream.next().await {
            let line = line_of(&event.unwrap().data, &mut values);
            self.lines.lock().unwrap().extend(line);
        }
        let lines = self.lines.lock().unwrap().clone();
        let mut shown = BTreeMap::new();
        let mut early = Vec::new();
        for (place, line) in lines.iter().enumerate() {
            let (mode, saved) = match line {
                Line::Shown(mode, task) => (mode, Line::Saved(*task)),
                Line::ShownStep(mode, step) => (mode, Line::SavedStep(*step)),
                _ => continue,
            };
            *shown.entry(format!("{mode:?}")).or_default() += 1;
            if !lines[..place].contains(&saved) {
                early.push(line.clone());
            }
        }
        (shown, early)
    }
}

/// What an event promises: that a task or a step is over. `values` is the step of the state shown last.
fn line_of(event: &EventData, values: &mut i64) -> Option<Line> {
    match event {
        EventData::Updates(update) => Some(Line::Shown(Mode::Updates, update.task)),
        EventData::TaskEnd(end) => Some(Line::Shown(Mode::Tasks, end.id)),
        EventData::Message(message) => Some(Line::ShownStep(Mode::Messages, message.step)),
        EventData::Checkpoint(made) => Some(Line::ShownStep(Mode::Checkpoints, made.step?)),
        EventData::Values(_) => {
            *values += 1;
            Some(Line::ShownStep(Mode::Values, *values))
        }
        EventData::Debug(debug) => line_of(&debug.event, &mut -1).map(|line| match line {
            Line::Shown(_, task) => Line::Shown(Mode::Debug, task),
            Line::ShownStep(_, step) => Line::ShownStep(Mode::Debug, step),
            saved => saved,
        }),
        _ => None,
    }
}

fn counts(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
    of.iter().map(|(mode, count)| ((*mode).to_owned(), *count)).collect()
}

/// What a step with one task wrote was shown before the checkpoint that holds it: of 63,997 updates that were shown, 235
/// were run again after the process was killed.
#[tokio::test]
async fn what_the_only_task_of_a_step_wrote() {
    let saves = Saves::default();
    let app = a_b_c().checkpointer(Hooked::new(saves.clone())).compile().unwrap();
    let stream = app.stream(Notes::update().total(1)).thread("t").durability(Durability::Sync).modes(MODES).start();
    let (shown, early) = saves.unsaved(stream).await;
    assert_eq!(early, []);
    // The checkpoint of the input is one more.
    let expected = [("Checkpoints", 5), ("Debug", 8), ("Tasks", 3), ("Updates", 3), ("Values", 4)];
    assert_eq!(shown, counts(&expected));
}

/// Such a node's writes are merged before its edges are followed, and kept for those who want to see them.
#[tokio::test]
async fn what_was_merged_before_the_conditional_edges_were_followed() {
    let saves = Saves::default();
    let mut graph = StateGraph::new();
    graph
        .add_node("n", async |_: Notes| Notes::update().total(1))
        .add_edge(START, "n")
        .add_conditional_edges("n", |notes: &Notes| if notes.total < 4 { "n" } else { END });
    let app = graph.checkpointer(Hooked::new(saves.clone())).compile().unwrap();
    let stream = app.stream(Notes::update().total(1)).thread("t").durability(Durability::Sync).modes(MODES).start();
    let (shown, early) = saves.unsaved(stream).await;
    assert_eq!((early, shown["Updates"], shown["Tasks"]), (vec![], 3, 3));
}

#[tokio::test]
async fn messages_that_a_node_returned() {
    let saves = Saves::default();
    let answer = async |_: AgentState| AgentStateUpdate { messages: Some(vec![Message::assistant("hello")]) };
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("answer", answer).add_node("again", answer).add_sequence(["answer", "again"]);
    let app = graph.checkpointer(Hooked::new(saves.clone())).compile().unwrap();
    let stream = app.stream(()).thread("t").durability(Durability::Sync).modes(MODES).start();
    let (shown, early) = saves.unsaved(stream).await;
    assert_eq!((early, shown["Messages"]), (vec![], 2));
}

#[tokio::test]
async fn what_functional_tasks_returned() {
    let saves = Saves::default();
    let double = Task::new("double", async |n: i64| Ok::<_, BoxError>(n * 2));
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let double = double.clone();
        async move {
            let once = double.call(&cx, n).await?;
            let (a, b) = (double.call(&cx, once), double.call(&cx, 1));
            Ok::<_, BoxError>(a.await? + b.await?)
        }
    })
    .checkpointer(Hooked::new(saves.clone()))
    .compile();
    let stream = flow.stream(3).thread("t").durability(Durability::Sync).modes(MODES).start();
    let (shown, early) = saves.unsaved(stream).await;
    assert_eq!(early, []);
    assert_eq!((shown["Updates"], shown["Tasks"]), (4, 4), "of three calls and their entrypoint");
}

#[tokio::test]
async fn what_came_from_a_cache() {
    let saves = Saves::default();
    let mut graph = StateGraph::new();
    graph
        .add_node_with("n", says("n"), NodeOptions::new().cache(CachePolicy::new()))
        .add_node_with("m", says("m"), NodeOptions::new().cache(CachePolicy::new()))
        .add_edge(START, "n")
        .add_edge(START, "m")
        .add_node_with("alone", says("alone"), NodeOptions::new().cache(CachePolicy::new()))
        .add_edge(["n", "m"], "alone");
    let app = graph.cache(superstep::MemoryCache::new()).checkpointer(Hooked::new(saves.clone())).compile().unwrap();
    let stream = |thread: &str| {
        let input = Notes::update().total(1);
        app.stream(input).thread(thread).durability(Durability::Sync).mode(Mode::Updates).start()
    };
    assert_eq!(saves.unsaved(stream("first")).await.1, []);
    let (shown, early) = saves.unsaved(stream("second")).await;
    assert_eq!((shown["Updates"], early), (6, vec![]));
}

#[tokio::test]
async fn what_a_graph_inside_another_wrote() {
    let saves = Saves::default();
    let mut outer = StateGraph::new();
    outer.add_node("inner", a_b_c().compile().unwrap()).add_node("last", says("last")).add_sequence(["inner", "last"]);
    let app = outer.checkpointer(Hooked::new(saves.clone())).compile().unwrap();
    let input = Notes::update().total(1);
    let stream = app.stream(input).thread("t").durability(Durability::Sync).modes([Mode::Updates, Mode::Tasks]);
    let (shown, early) = saves.unsaved(stream.subgraphs().start()).await;
    assert_eq!((early, shown["Updates"], shown["Tasks"]), (vec![], 5, 5));
}

/// Fails to save the checkpoint of this step.
#[derive(Clone, Default)]
struct Full(Arc<Mutex<bool>>);

#[async_trait]
impl Hook for Full {
    async fn around(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        if matches!(call, Call::Put(_)) && *self.0.lock().unwrap() {
            return Err(CheckpointError::backend("the disk is full"));
        }
        serving.await
    }

    fn write(&self, record: CheckpointRecord) -> CheckpointRecord {
        *self.0.lock().unwrap() = record.step() == 2;
        record
    }
}

fn on_a_full_disk() -> CompiledStateGraph<Notes> {
    a_b_c().checkpointer(Hooked::new(Full::default())).compile().unwrap()
}

#[tokio::test]
async fn what_cannot_be_saved_is_not_shown() {
    let app = on_a_full_disk();
    let input = Notes::update().total(1);
    let modes = [Mode::Updates, Mode::Values, Mode::Tasks];
    let mut stream = app.stream(input).thread("t").durability(Durability::Sync).modes(modes).start();
    let (mut ended, mut logs) = (Vec::new(), Vec::new());
    let error = loop {
        match stream.next().await.expect("it ends with an error") {
            Ok(event) => match event.data {
                EventData::Updates(update) => ended.push(update.node),
                EventData::TaskEnd(end) => ended.push(end.name),
                EventData::Values(values) => logs.push(values.state::<Notes>().unwrap().log.len()),
                _ => {}
            },
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert_eq!((ended, logs), (vec!["a".to_owned(), "a".to_owned()], vec![0, 1]));
}
