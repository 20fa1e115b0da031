//! The events themselves. They know the state that they come from, and need its type only from those who want it typed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{Mode, TaskMetadata, ToolEvent};
use crate::checkpoint::Interrupt;
use crate::error::TaskError;
use crate::id::{RunId, TaskId};
use crate::message::{Message, MessageChunk};
use crate::snapshot::{StateSnapshot, utc};
use crate::state::State;
use crate::state::erased::Typed;
use crate::view::{ShownInput, ShownState, ShownWrites};

/// One event of a stream: what happened, with where and when.
///
/// It is the same type for all states: [`state`](Event::state) gives the state typed, [`to_json`](Event::to_json) and serde
/// need no type.
///
/// ```
/// use superstep::{AgentState, Event, EventData};
/// fn show(event: &Event) {
///     match &event.data {
///         EventData::Updates(update) => println!("{} finished", update.node),
///         EventData::Custom(value) => println!("progress: {value}"),
///         _ => {}
///     }
///     if let Some(state) = event.state::<AgentState>() { println!("{} messages", state.messages.len()); }
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Event {
    /// The run.
    pub run: RunId,
    /// Its number among the events of the stream, from 1, without gaps.
    pub sequence: u64,
    /// When it happened.
    pub at: SystemTime,
    /// The mode that it belongs to.
    pub mode: Mode,
    /// The graph that it comes from: empty for the root, `node:task` for each level below.
    pub namespace: Vec<String>,
    /// The step of that graph.
    pub step: i64,
    /// What happened.
    pub data: EventData,
}

/// What an [`Event`] tells.
///
/// ```
/// use superstep::EventData;
/// let data = EventData::Custom(serde_json::json!(1));
/// assert_eq!(data.to_json(), 1);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum EventData {
    /// The state after a step.
    Values(Values),
    /// What a node wrote.
    Updates(NodeUpdate),
    /// A node asks; or, empty, the run stops where it was told to.
    Interrupts(Vec<Interrupt>),
    /// A chat message or a piece of one.
    Message(MessageEvent),
    /// What a node sent.
    Custom(Value),
    /// What happens to a call of a tool.
    Tool(ToolEvent),
    /// A task starts.
    TaskStart(TaskStart),
    /// A task ended.
    TaskEnd(TaskEnd),
    /// A checkpoint was made: it is as [`Thread::state`](crate::Thread::state) shows it.
    Checkpoint(Box<StateSnapshot>),
    /// A task or checkpoint with its step and time.
    Debug(DebugEvent),
}

impl Event {
    /// The names of the nodes that lead to the graph that it comes from.
    pub fn path(&self) -> Vec<&str> {
        self.namespace.iter().map(|part| part.split(':').next().unwrap_or(part)).collect()
    }

    /// The state that it shows, if it shows one and that is an `S`.
    pub fn state<S: State>(&self) -> Option<&S> {
        self.data.state()
    }

    /// What happened, as JSON; where and when it did is beside it in what serde writes.
    ///
    /// Of a state it shows the fields that have a value, without the untracked ones of a derived state, which are
    /// never encoded; null if the state [cannot be shown](crate::State::codec). Values are as `serde_json` writes them,
    /// integers of more than 64 bits as text; one that it refuses is shown as `{"__error__": "why"}`.
    pub fn to_json(&self) -> Value {
        self.data.to_json()
    }
}

impl EventData {
    /// The state that it shows, if it shows one and that is an `S`.
    pub fn state<S: State>(&self) -> Option<&S> {
        match self {
            EventData::Values(values) => values.state(),
            EventData::Checkpoint(snapshot) => snapshot.state_as(),
            EventData::Debug(debug) => debug.event.state(),
            _ => None,
        }
    }

    /// What happened, as JSON; see [`Event::to_json`].
    pub fn to_json(&self) -> Value {
        match self {
            EventData::Values(values) => values.shown.json_with_interrupts(),
            EventData::Updates(update) => update.to_json(),
            EventData::Interrupts(list) => json!({ "__interrupt__": list }),
            EventData::Message(message) => message.whole_json(),
            EventData::Custom(value) => value.clone(),
            EventData::Tool(event) => event.to_json(),
            EventData::TaskStart(task) => task.to_json(),
            EventData::TaskEnd(task) => task.to_json(),
            EventData::Checkpoint(snapshot) => snapshot.to_json(),
            EventData::Debug(debug) => debug.to_json(),
        }
    }
}

/// The envelope, with what happened as [`to_json`](Event::to_json) gives it under `data`; times are in UTC.
impl Serialize for Event {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        #[derive(Serialize)]
        struct Envelope<'a> {
            run: &'a RunId,
            sequence: u64,
            at: String,
            mode: Mode,
            namespace: &'a [String],
            step: i64,
            data: Value,
        }
        let Self { run, sequence, at, mode, namespace, step, data } = self;
        let (at, data) = (utc(*at), data.to_json());
        Envelope { run, sequence: *sequence, at, mode: *mode, namespace, step: *step, data }.serialize(serializer)
    }
}

/// As [`to_json`](EventData::to_json) gives it.
impl Serialize for EventData {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        self.to_json().serialize(serializer)
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { namespace, data, mode, sequence, step, .. } = self;
        let mut shown = f.debug_struct("Event");
        shown.field("sequence", sequence).field("mode", mode).field("namespace", namespace).field("step", step);
        shown.field("data", data).finish_non_exhaustive()
    }
}

/// As JSON.
impl std::fmt::Debug for EventData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_json())
    }
}

/// A state at a moment, with what of it is shown.
///
/// ```
/// use superstep::{AgentState, Values};
/// fn show(values: &Values) {
///     if let Some(state) = values.state::<AgentState>() { println!("{} messages", state.messages.len()); }
///     println!("{}", values.to_json());
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Values {
    /// The questions with which the run paused here.
    pub interrupts: Vec<Interrupt>,
    shown: ShownState,
}

impl From<ShownState> for Values {
    fn from(shown: ShownState) -> Self {
        Self { interrupts: shown.interrupts.clone(), shown }
    }
}

impl Values {
    /// The state, if it is an `S`.
    pub fn state<S: State>(&self) -> Option<&S> {
        self.shown.state.peek()
    }

    /// The state to keep, if it is an `S`; nothing is copied.
    pub fn shared<S: State>(&self) -> Option<Arc<S>> {
        self.shown.state.peek::<S>().map(|_| self.shown.state.share())
    }

    /// The shown fields that have a value, as JSON; untracked fields of a derived state are never encoded and left out.
    ///
    /// A value that cannot be encoded is shown as `{"__error__": "why"}`.
    pub fn to_json(&self) -> Value {
        self.shown.json()
    }
}

/// As JSON.
impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.shown.json_with_interrupts())
    }
}

/// What a node wrote.
///
/// ```
/// use superstep::{AgentState, NodeUpdate};
/// fn show(update: &NodeUpdate) {
///     let written = update.update::<AgentState>().map_or(0, |update| update.get(AgentState::MESSAGES).map_or(0, Vec::len));
///     println!("{} wrote {written} messages: {}", update.node, update.to_json());
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct NodeUpdate {
    /// The node.
    pub node: String,
    /// The step.
    pub step: i64,
    /// The task, as `tasks` events and snapshots name it.
    pub task: TaskId,
    /// Whether it did not run because its result was known: from a cache, or from before a restart.
    pub cached: bool,
    pub(crate) writes: ShownWrites,
}

impl NodeUpdate {
    /// The writes as an update, if the state is an `S`.
    pub fn update<S: State>(&self) -> Option<crate::Update<S>> {
        self.writes.is_of::<S>().then(|| Typed::update_of(&self.writes.writes))
    }

    /// What a function of a workflow returned.
    pub fn returned(&self) -> Option<&Value> {
        self.writes.returned.as_ref()
    }

    /// `{node: update}` as JSON.
    pub fn to_json(&self) -> Value {
        let mut map = Map::from_iter([(self.node.clone(), self.writes.as_update())]);
        if self.cached {
            map.insert("__metadata__".to_owned(), json!({ "cached": true }));
        }
        Value::Object(map)
    }
}

impl std::fmt::Debug for NodeUpdate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_json())
    }
}

/// A chat message in a stream.
///
/// ```
/// use superstep::MessageEvent;
/// fn show(event: &MessageEvent) { print!("{}", event.message.text()); }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MessageEvent {
    /// The message; of a piece, the words in it.
    pub message: Message,
    /// All that is in it, if it is a piece of a message that is being said.
    pub chunk: Option<MessageChunk>,
    /// The message as JSON, if the state's messages hold more than a [`Message`] can: a name, content in parts.
    pub whole: Option<Value>,
    /// The node that it comes from.
    pub node: String,
    /// The step.
    pub step: i64,
    /// What is known of the task that it comes from, and of the run.
    pub metadata: Arc<TaskMetadata>,
}

impl MessageEvent {
    /// All that is known of the message, as JSON.
    pub fn to_json(&self) -> Value {
        self.whole.clone().unwrap_or_else(|| json!(self.message))
    }

    /// With the piece and what is known of its task, as an event shows it.
    fn whole_json(&self) -> Value {
        let mut event = json!({
            "message": self.to_json(), "node": self.node, "step": self.step, "metadata": self.metadata.to_json(),
        });
        if let Some(chunk) = &self.chunk {
            event["chunk"] = json!(chunk);
        }
        event
    }
}

/// A task that starts.
///
/// ```
/// use superstep::TaskStart;
/// fn show(task: &TaskStart) { println!("{} starts, because of {:?}", task.name, task.triggers); }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct TaskStart {
    /// The task.
    pub id: TaskId,
    /// Its node.
    pub name: String,
    /// What can wake the node.
    pub triggers: Vec<String>,
    /// What the caller said about the run, and over it what the graphs said about the nodes that the task is in.
    pub metadata: BTreeMap<String, Value>,
    /// The tags of the run.
    pub tags: Vec<String>,
    pub(crate) input: ShownInput,
}

impl TaskStart {
    /// What the task was given, as JSON.
    pub fn input(&self) -> Value {
        self.input.json()
    }

    fn to_json(&self) -> Value {
        let Self { id, name, triggers, metadata, tags, input } = self;
        let mut value = json!({ "id": id.to_string(), "name": name, "input": input.json(), "triggers": triggers });
        if !metadata.is_empty() {
            value["metadata"] = json!(metadata);
        }
        if !tags.is_empty() {
            value["metadata"]["tags"] = json!(tags);
        }
        value
    }
}

impl std::fmt::Debug for TaskStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_json())
    }
}

/// A task that ended.
///
/// ```
/// use superstep::TaskEnd;
/// fn show(task: &TaskEnd) { println!("{}: {:?}", task.name, task.error); }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct TaskEnd {
    /// The task.
    pub id: TaskId,
    /// Its node.
    pub name: String,
    /// Its error.
    pub error: Option<TaskError>,
    /// Its questions.
    pub interrupts: Vec<Interrupt>,
    pub(crate) writes: ShownWrites,
}

impl TaskEnd {
    /// What it wrote, as JSON.
    pub fn result(&self) -> Value {
        self.writes.as_named_result()
    }

    fn to_json(&self) -> Value {
        let Self { id, name, error, interrupts, .. } = self;
        let error = error.as_ref().map(|error| &error.message);
        json!({
            "id": id.to_string(), "name": name, "error": error, "result": self.result(), "interrupts": interrupts,
        })
    }
}

impl std::fmt::Debug for TaskEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_json())
    }
}

/// A task or checkpoint, with its step and time.
///
/// ```
/// use superstep::DebugEvent;
/// fn show(event: &DebugEvent) { println!("step {} {}", event.step, event.kind()); }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DebugEvent {
    /// The step.
    pub step: i64,
    /// When it happened.
    pub at: SystemTime,
    /// The task or checkpoint.
    pub event: Box<EventData>,
}

impl DebugEvent {
    /// `task`, `task_result` or `checkpoint`.
    pub fn kind(&self) -> &'static str {
        match &*self.event {
            EventData::TaskStart(_) => "task",
            EventData::TaskEnd(_) => "task_result",
            _ => "checkpoint",
        }
    }

    fn to_json(&self) -> Value {
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        json!({
            "step": self.step, "timestamp": since.as_secs_f64(), "type": self.kind(), "payload": self.event.to_json(),
        })
    }
}
