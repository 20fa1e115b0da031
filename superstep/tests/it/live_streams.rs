//! A stream is live: its reader has its turn after every step, whatever the nodes do.
//!
//! The nodes here never wait unless a test says so: without a turn for the reader, all of them would run in one go.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Waker};

use serde_json::json;
use superstep::{
    BoxError, CompiledStateGraph, Context, Durability, Entrypoint, Event, EventData, EventStream, MemorySaver, Message,
    MessageChunk, Mode, NodeOptions, START, StateGraph, Task,
};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use crate::support::{Count, Notes, NotesUpdate};

const MODES: [Mode; 7] =
    [Mode::Values, Mode::Updates, Mode::Messages, Mode::Custom, Mode::Tasks, Mode::Checkpoints, Mode::Debug];

const STEPS: i64 = 4;

/// What happened, in the order in which it did.
#[derive(Debug, Clone, PartialEq)]
enum Line {
    /// The node of a step began.
    Began(i64),
    /// The reader was given something that a step showed.
    Read(i64),
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Line>>>);

impl Log {
    fn add(&self, line: Line) {
        self.0.lock().unwrap().push(line);
    }

    fn lines(&self) -> Vec<Line> {
        self.0.lock().unwrap().clone()
    }

    fn begun(&self) -> usize {
        self.lines().iter().filter(|line| matches!(line, Line::Began(_))).count()
    }

    /// Every step showed something, and all of it was read before the next node began.
    #[track_caller]
    fn check(&self, what: &str) {
        let lines = self.lines();
        for step in 1..=STEPS {
            let last = lines.iter().rposition(|line| *line == Line::Read(step));
            let last = last.unwrap_or_else(|| panic!("{what}: step {step} showed nothing: {lines:?}"));
            if let Some(next) = lines.iter().position(|line| *line == Line::Began(step + 1)) {
                assert!(last < next, "{what}: node {} began before step {step} was read: {lines:?}", step + 1);
            }
        }
    }
}

/// Both kinds of runtime, by name.
fn runtimes() -> [(&'static str, Runtime); 2] {
    [
        ("current_thread", Builder::new_current_thread().enable_all().build().unwrap()),
        ("multi_thread", Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()),
    ]
}

/// A node that shows something in every mode, and never waits.
fn busy(
    log: &Log,
    step: i64,
) -> impl Fn(Notes, Context) -> std::pin::Pin<Box<dyn Future<Output = NotesUpdate> + Send>> + Clone + Send + Sync + 'static
{
    let log = log.clone();
    move |_, cx| {
        let log = log.clone();
        Box::pin(async move {
            log.add(Line::Began(step));
            cx.emit(step).await;
            cx.emit_message(Message::assistant("working")).await;
            Notes::update().log([format!("{step}")])
        })
    }
}

/// Four nodes one after another.
fn chain(log: &Log) -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    let names: Vec<String> = (1..=STEPS).map(|step| format!("node{step}")).collect();
    for (step, name) in (1..).zip(&names) {
        graph.add_node(name.as_str(), busy(log, step));
    }
    graph.add_sequence(names);
    graph
}

/// The step whose end an event tells; of tasks that start, the step before.
fn step_of(event: &EventData) -> Option<i64> {
    match event {
        EventData::Values(values) => Some(values.state::<Notes>().unwrap().log.len() as i64),
        EventData::Updates(update) => Some(update.step),
        EventData::Message(message) => Some(message.step),
        EventData::Custom(value) => value.as_i64(),
        EventData::TaskStart(start) => start.name.strip_prefix("node")?.parse().ok().map(|step: i64| step - 1),
        EventData::TaskEnd(end) => end.name.strip_prefix("node")?.parse().ok(),
        EventData::Checkpoint(made) => made.step,
        EventData::Debug(debug) => step_of(&debug.event),
        _ => None,
    }
}

/// Reads a stream to its end.
async fn read(mut stream: EventStream<Notes>, log: &Log) {
    while let Some(event) = stream.next().await {
        if let Some(step) = step_of(&event.unwrap().data) {
            log.add(Line::Read(step));
        }
    }
}

/// At [401, 401, 401, 401] ms came the events of four steps whose nodes block for a tenth of a second.
#[test]
fn what_a_step_shows_is_read_before_the_next_node_begins() {
    for (runtime, on) in runtimes() {
        for mode in MODES {
            for saver in [None, Some(Durability::Sync), Some(Durability::Async), Some(Durability::Exit)] {
                if saver.is_none() && mode == Mode::Checkpoints {
                    continue;
                }
                let log = Log::default();
                let mut graph = chain(&log);
                if saver.is_some() {
                    graph.checkpointer(MemorySaver::new());
                }
                let app = graph.compile().unwrap();
                let reader = log.clone();
                let reading = async move {
                    let mut stream = app.stream(Notes::update().total(1)).mode(mode);
                    if let Some(durability) = saver {
                        stream = stream.thread("t").durability(durability);
                    }
                    read(stream.start(), &reader).await;
                };
                on.block_on(on.spawn(reading)).unwrap();
                log.check(&format!("{mode:?} on {runtime} with {saver:?}"));
            }
        }
    }
}

#[test]
fn a_blocking_stream_is_live_too() {
    for mode in MODES.into_iter().filter(|mode| *mode != Mode::Checkpoints) {
        let log = Log::default();
        let stream = chain(&log).compile().unwrap().stream(Notes::update().total(1)).mode(mode);
        let each = |event: Event| step_of(&event.data).into_iter().for_each(|step| log.add(Line::Read(step)));
        stream.blocking(each).unwrap();
        log.check(&format!("{mode:?}"));
    }
}

/// A buffer of one event is no reason to run ahead, and none to stand still.
#[tokio::test]
async fn a_small_buffer_changes_nothing() {
    let log = Log::default();
    let app = chain(&log).compile().unwrap();
    read(app.stream(Notes::update().total(1)).modes(MODES).buffer(1).start(), &log).await;
    log.check("a buffer of one");
}

/// A reader that left after the first event found that the whole graph had run.
#[test]
fn who_leaves_after_a_step_leaves_the_rest_undone() {
    for (runtime, on) in runtimes() {
        for leaves_after in 1..STEPS {
            let log = Log::default();
            let app = chain(&log).checkpointer(MemorySaver::new()).compile().unwrap();
            let reading = async move {
                let mut stream = app.stream(Notes::update().total(1)).thread("t").start();
                for _ in 0..leaves_after {
                    stream.next().await.unwrap().unwrap();
                }
                drop(stream);
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            };
            on.block_on(on.spawn(reading)).unwrap();
            let begun = log.begun() as i64;
            assert!((leaves_after..=leaves_after + 1).contains(&begun), "{begun} after {leaves_after} on {runtime}");
        }
    }
}

/// Whoever waits for something else beside the next event has its turn too: the reader's task is not held for more than a
/// step.
#[tokio::test]
async fn a_step_that_shows_nothing_gives_the_reader_its_turn_too() {
    for inside in [false, true] {
        let log = Log::default();
        let mut graph = chain(&log);
        if inside {
            let inner = graph.compile().unwrap();
            graph = StateGraph::new();
            graph.add_node("inner", inner).add_edge(START, "inner");
        }
        let mut stream = graph.compile().unwrap().stream(Notes::update().total(1)).modes([]).start();
        let (mut asked, mut next) = (0, std::pin::pin!(stream.next()));
        loop {
            let polled = next.as_mut().poll(&mut Poller::from_waker(Waker::noop()));
            asked += 1;
            assert!(log.begun() <= asked, "{} steps after it was asked {asked} times", log.begun());
            if polled.is_ready() {
                break;
            }
        }
        assert_eq!(log.begun() as i64, STEPS);
    }
}

#[test]
fn graphs_inside_a_watched_run_are_live() {
    for (runtime, on) in runtimes() {
        for mode in MODES.into_iter().filter(|mode| *mode != Mode::Checkpoints) {
            let log = Log::default();
            let mut outer = StateGraph::new();
            outer.add_node("inner", chain(&log).compile().unwrap()).add_edge(START, "inner");
            let app = outer.compile().unwrap();
            let reader = log.clone();
            let reading = async move {
                let mut stream = app.stream(Notes::update().total(1)).mode(mode).subgraphs().start();
                while let Some(event) = stream.next().await {
                    let event = event.unwrap();
                    if !event.namespace.is_empty()
                        && let Some(step) = step_of(&event.data)
                    {
                        reader.add(Line::Read(step));
                    }
                }
            };
            on.block_on(on.spawn(reading)).unwrap();
            log.check(&format!("{mode:?} on {runtime}"));
        }
    }
}

/// Two graphs side by side, a log each.
fn side_by_side(logs: [&Log; 2]) -> CompiledStateGraph<Notes> {
    let mut outer = StateGraph::new();
    for (name, log) in ["left", "right"].into_iter().zip(logs) {
        outer.add_node(name, chain(log).compile().unwrap()).add_edge(START, name);
    }
    outer.compile().unwrap()
}

#[test]
fn graphs_side_by_side_are_live_each_for_itself() {
    for (runtime, on) in runtimes() {
        for mode in [Mode::Updates, Mode::Custom, Mode::Tasks] {
            let logs = [Log::default(), Log::default()];
            let app = side_by_side([&logs[0], &logs[1]]);
            let readers = logs.clone();
            let reading = async move {
                let mut stream = app.stream(Notes::update().total(1)).mode(mode).subgraphs().start();
                while let Some(event) = stream.next().await {
                    let event = event.unwrap();
                    let (path, step) = (event.path().first().map(ToString::to_string), step_of(&event.data));
                    if let (Some(path), Some(step)) = (path, step) {
                        readers[usize::from(path == "right")].add(Line::Read(step));
                    }
                }
            };
            on.block_on(on.spawn(reading)).unwrap();
            logs.iter().for_each(|log| log.check(&format!("{mode:?} on {runtime}")));
        }
    }
}

#[test]
fn who_leaves_stops_graphs_side_by_side() {
    for (runtime, on) in runtimes() {
        let logs = [Log::default(), Log::default()];
        let app = side_by_side([&logs[0], &logs[1]]);
        let reading = async move {
            let mut stream = app.stream(Notes::update().total(1)).subgraphs().start();
            let event = stream.next().await.unwrap().unwrap();
            assert_eq!((event.path().len(), step_of(&event.data)), (1, Some(1)));
            drop(stream);
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        };
        on.block_on(on.spawn(reading)).unwrap();
        assert!(logs.iter().all(|log| log.begun() <= 2), "{:?} on {runtime}", logs.map(|log| log.begun()));
    }
}

/// The tasks of a workflow made of functions are its steps.
#[test]
fn what_a_functional_task_returned_is_read_before_the_next_is_run() {
    for (runtime, on) in runtimes() {
        for mode in [Mode::Updates, Mode::Tasks, Mode::Debug] {
            let log = Log::default();
            let begins = log.clone();
            let task = Task::new("task", move |step: i64| {
                begins.add(Line::Began(step));
                async move { Ok::<_, BoxError>(step) }
            });
            let flow = Entrypoint::new("flow", move |_: i64, cx: Context| {
                let task = task.clone();
                async move {
                    for step in 1..=STEPS {
                        task.call(&cx, step).await?;
                    }
                    Ok::<_, BoxError>(())
                }
            })
            .compile();
            let reader = log.clone();
            let reading = async move {
                let mut stream = flow.stream(0).mode(mode).start();
                while let Some(event) = stream.next().await {
                    if let Some(step) = returned_by_task(&event.unwrap().data) {
                        reader.add(Line::Read(step));
                    }
                }
            };
            on.block_on(on.spawn(reading)).unwrap();
            log.check(&format!("{mode:?} on {runtime}"));
        }
    }
}

fn returned_by_task(event: &EventData) -> Option<i64> {
    match event {
        EventData::Updates(update) if update.node == "task" => update.returned()?.as_i64(),
        EventData::TaskEnd(end) if end.name == "task" => end.result().get("__return__")?.as_i64(),
        EventData::Debug(debug) => returned_by_task(&debug.event),
        _ => None,
    }
}

/// A node that says something and goes on when it is told to.
fn patient(
    go_on: &Arc<Notify>,
    ended: &Count,
) -> impl Fn(Notes, Context) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Clone + Send + Sync + 'static {
    let (go_on, ended) = (go_on.clone(), ended.clone());
    move |_, cx| {
        let (go_on, ended) = (go_on.clone(), ended.clone());
        Box::pin(async move {
            for part in 0..3 {
                cx.emit(part).await;
                go_on.notified().await;
                cx.emit_chunk(MessageChunk::text("m", format!("{part}"))).await;
                go_on.notified().await;
            }
            ended.up();
        })
    }
}

#[test]
fn custom_events_and_tokens_arrive_while_their_node_is_at_work() {
    for (runtime, on) in runtimes() {
        for shape in ["alone", "beside", "inside", "blocking"] {
            let (go_on, ended) = (Arc::new(Notify::new()), Count::default());
            let mut graph = StateGraph::new();
            match shape {
                "inside" => {
                    let mut inner = StateGraph::new();
                    inner.add_node("patient", patient(&go_on, &ended)).add_edge(START, "patient");
                    graph.add_node("patient", inner.compile().unwrap());
                }
                "blocking" => {
                    graph.add_node_with("patient", patient(&go_on, &ended), NodeOptions::new().blocking());
                }
                _ => {
                    graph.add_node("patient", patient(&go_on, &ended));
                }
            }
            if shape == "beside" {
                graph.add_node("quick", async |_: Notes| ()).add_edge(START, "quick");
            }
            let app = graph.add_edge(START, "patient").compile().unwrap();
            let reading = async move {
                let modes = [Mode::Custom, Mode::Messages];
                let mut stream = app.stream(Notes::update().total(1)).modes(modes).subgraphs().start();
                let mut seen = Vec::new();
                while let Some(event) = stream.next().await {
                    assert_eq!(ended.get(), 0, "it was not told to go on");
                    seen.push(match event.unwrap().data {
                        EventData::Custom(value) => value,
                        EventData::Message(message) => json!(message.message.text()),
                        _ => continue,
                    });
                    go_on.notify_one();
                }
                seen
            };
            let seen = on.block_on(on.spawn(reading)).unwrap();
            assert_eq!(json!(seen), json!([0, "0", 1, "1", 2, "2"]), "{shape} on {runtime}");
        }
    }
}
