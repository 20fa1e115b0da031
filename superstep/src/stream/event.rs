//! The events themselves, typed by the state of the graph that they come from.

use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::shown::{By, ShownInput, ShownState, ShownWrites, as_known, with_codec};
use super::{Mode, RawEvent, TaskMetadata, ToolEvent};
use crate::checkpoint::Interrupt;
use crate::error::TaskError;
use crate::id::TaskId;
use crate::message::{Message, MessageChunk};
use crate::snapshot::StateSnapshot;
use crate::state::erased::{AnyState, Typed};
use crate::state::{Persist, State};

/// One event of a stream.
///
/// ```
/// use superstep::{AgentState, Event, EventData};
/// fn show(event: &Event<AgentState>) {
///     match &event.data {
///         EventData::Updates(update) => println!("{} finished", update.node),
///         EventData::Custom(value) => println!("progress: {value}"),
///         _ => {}
///     }
/// }
/// ```
#[non_exhaustive]
pub struct Event<S: ?Sized> {
    /// The graph that it comes from: empty for the root, `node:task` for each level below.
    pub namespace: Vec<String>,
    /// What happened.
    pub data: EventData<S>,
    mode: Mode,
}

/// What an [`Event`] tells.
///
/// ```
/// use superstep::{AgentState, EventData};
/// let data: EventData<AgentState> = EventData::Custom(serde_json::json!(1));
/// assert!(matches!(data, EventData::Custom(_)));
/// ```
#[non_exhaustive]
pub enum EventData<S: ?Sized> {
    /// The state after a step.
    Values(Values<S>),
    /// What a node wrote.
    Updates(NodeUpdate<S>),
    /// A node asks; or, empty, the run stops where it was told to.
    Interrupts(Vec<Interrupt>),
    /// A chat message or a piece of one.
    Message(MessageEvent),
    /// What a node sent.
    Custom(Value),
    /// What happens to a call of a tool.
    Tool(ToolEvent),
    /// A task starts.
    TaskStart(TaskStart<S>),
    /// A task ended.
    TaskEnd(TaskEnd<S>),
    /// A checkpoint was made.
    Checkpoint(CheckpointEvent<S>),
    /// A task or checkpoint with its step and time.
    Debug(DebugEvent<S>),
    /// An event of a subgraph with another state; see [`Event::of`].
    Foreign(ForeignEvent),
}

/// An event of a subgraph with another state: typed again by [`Event::of`], or shown as JSON.
///
/// ```
/// use superstep::{AgentState, Event, EventData};
/// fn show(event: &Event<AgentState>) {
///     if let EventData::Foreign(event) = &event.data { println!("{:?}", event.to_json()); }
/// }
/// ```
pub struct ForeignEvent(Box<dyn AnyEvent>);

impl ForeignEvent {
    /// The event as JSON; `None` if the state of its graph has no such form.
    pub fn to_json(&self) -> Option<Value> {
        self.0.json()
    }
}

/// What an event tells, with the type of its state erased.
pub(crate) trait AnyEvent: Any + Send + Sync {
    /// The event as JSON, as far as its own graph knows how to show it.
    fn json(&self) -> Option<Value>;
}

impl<S: State> AnyEvent for EventData<S> {
    fn json(&self) -> Option<Value> {
        self.json(&as_known)
    }
}

/// What a node sent.
impl AnyEvent for Value {
    fn json(&self) -> Option<Value> {
        Some(self.clone())
    }
}

impl AnyEvent for MessageEvent {
    fn json(&self) -> Option<Value> {
        let mut event = json!({
            "message": self.to_json(), "node": self.node, "step": self.step, "metadata": self.metadata.to_json(),
        });
        if let Some(chunk) = &self.chunk {
            event["chunk"] = json!(chunk);
        }
        Some(event)
    }
}

impl AnyEvent for ToolEvent {
    fn json(&self) -> Option<Value> {
        Some(self.to_json())
    }
}

/// The event as a `T`, if it is one.
fn downcast<T: AnyEvent>(event: Box<dyn AnyEvent>) -> Result<T, Box<dyn AnyEvent>> {
    if (&*event as &dyn Any).is::<T>() {
        let event: Box<dyn Any> = event;
        Ok(*event.downcast().expect("its type was just asked for"))
    } else {
        Err(event)
    }
}

impl<S: Persist> std::fmt::Debug for Event<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { namespace, data, mode } = self;
        f.debug_struct("Event").field("namespace", namespace).field("data", data).field("mode", mode).finish()
    }
}

/// As JSON.
impl<S: Persist> std::fmt::Debug for EventData<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.to_json() {
            Some(value) => write!(f, "{value}"),
            None => f.write_str("(an event of another state)"),
        }
    }
}

impl<S: State> Event<S> {
    pub(crate) fn from_raw(raw: RawEvent) -> Self {
        let RawEvent { namespace, mode, data } = raw;
        let data = downcast::<EventData<S>>(data)
            .or_else(|data| downcast(data).map(EventData::Custom))
            .or_else(|data| downcast(data).map(EventData::Message))
            .or_else(|data| downcast(data).map(EventData::Tool))
            .unwrap_or_else(|data| EventData::Foreign(ForeignEvent(data)));
        Self { namespace, data, mode }
    }

    /// The mode that it belongs to.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The names of the nodes that lead to the graph that it comes from.
    pub fn path(&self) -> Vec<&str> {
        self.namespace.iter().map(|part| part.split(':').next().unwrap_or(part)).collect()
    }

    /// The event of a subgraph whose state is `C`.
    pub fn of<C: State>(&self) -> Option<&EventData<C>> {
        match &self.data {
            EventData::Foreign(event) => (&*event.0 as &dyn Any).downcast_ref(),
            data => (data as &dyn Any).downcast_ref(),
        }
    }

    /// The event as JSON, events of subgraphs included; `None` if the state of a subgraph has no such form.
    ///
    /// Of a state it shows the fields that have a value, without the untracked ones of a derived state, which are
    /// never encoded. Values are as `serde_json` writes them, integers of more than 64 bits as text; one that it refuses is
    /// shown as `{"__error__": "why"}`.
    pub fn to_json(&self) -> Option<Value>
    where
        S: Persist,
    {
        self.data.to_json()
    }
}

impl EventData<AnyState> {
    /// The same, typed by the state of the graph that it comes from.
    pub(crate) fn typed<S: State>(self) -> EventData<S> {
        match self {
            EventData::Values(values) => EventData::Values(values.typed()),
            EventData::Updates(NodeUpdate { node, step, task, cached, writes, .. }) => {
                EventData::Updates(NodeUpdate::new(node, step, task, cached, writes))
            }
            EventData::Interrupts(interrupts) => EventData::Interrupts(interrupts),
            EventData::Message(message) => EventData::Message(message),
            EventData::Custom(value) => EventData::Custom(value),
            EventData::Tool(event) => EventData::Tool(event),
            EventData::TaskStart(TaskStart { id, name, triggers, metadata, tags, input, .. }) => {
                EventData::TaskStart(TaskStart { id, name, triggers, metadata, tags, input, state: PhantomData })
            }
            EventData::TaskEnd(TaskEnd { id, name, error, interrupts, writes, .. }) => {
                EventData::TaskEnd(TaskEnd { id, name, error, interrupts, writes, state: PhantomData })
            }
            EventData::Checkpoint(checkpoint) => {
                EventData::Checkpoint(CheckpointEvent { snapshot: checkpoint.snapshot.typed() })
            }
            EventData::Debug(DebugEvent { step, at, event }) => {
                EventData::Debug(DebugEvent { step, at, event: Box::new(event.typed()) })
            }
            EventData::Foreign(event) => EventData::Foreign(event),
        }
    }

    /// The same in a box, as streams carry it.
    pub(crate) fn boxed<S: State>(self) -> Box<dyn AnyEvent> {
        Box::new(self.typed::<S>())
    }
}

impl<S: State> EventData<S> {
    /// The event as JSON, events of subgraphs included; `None` if the state of a subgraph has no such form.
    ///
    /// Of a state it shows the fields that have a value, without the untracked ones of a derived state, which are
    /// never encoded. Values are as `serde_json` writes them, integers of more than 64 bits as text; one that it refuses is
    /// shown as `{"__error__": "why"}`.
    pub fn to_json(&self) -> Option<Value>
    where
        S: Persist,
    {
        self.json(&with_codec::<S>)
    }

    fn json(&self, by: By<'_>) -> Option<Value> {
        Some(match self {
            EventData::Values(values) => values.shown.json_with_interrupts(by),
            EventData::Updates(update) => update.json(by),
            EventData::Interrupts(list) => json!({ "__interrupt__": list }),
            EventData::Message(message) => return message.json(),
            EventData::Custom(value) => value.clone(),
            EventData::Tool(event) => event.to_json(),
            EventData::TaskStart(task) => task.json(by),
            EventData::TaskEnd(task) => task.json(by),
            EventData::Checkpoint(checkpoint) => checkpoint.snapshot.to_json(),
            EventData::Debug(debug) => debug.json(by),
            EventData::Foreign(event) => return event.to_json(),
        })
    }
}

/// A state at a moment, with what of it is shown.
///
/// ```
/// use superstep::{AgentState, Values};
/// fn show(values: &Values<AgentState>) { println!("{} messages: {}", values.state.messages.len(), values.to_json()); }
/// ```
pub struct Values<S: ?Sized> {
    /// The state.
    pub state: Arc<S>,
    /// The questions with which the run paused here.
    pub interrupts: Vec<Interrupt>,
    pub(crate) shown: ShownState,
}

impl From<ShownState> for Values<AnyState> {
    fn from(shown: ShownState) -> Self {
        Self { state: shown.state.any(), interrupts: shown.interrupts.clone(), shown }
    }
}

impl Values<AnyState> {
    pub(crate) fn typed<S: State>(self) -> Values<S> {
        let Values { interrupts, shown, state: _ } = self;
        Values { state: shown.state.share(), interrupts, shown }
    }
}

impl<S: ?Sized> Clone for Values<S> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), interrupts: self.interrupts.clone(), shown: self.shown.clone() }
    }
}

impl<S: State> Values<S> {
    /// The shown fields that have a value, as JSON; untracked fields of a derived state are never encoded and left out.
    ///
    /// A value that cannot be encoded is shown as `{"__error__": "why"}`.
    pub fn to_json(&self) -> Value
    where
        S: Persist,
    {
        self.shown.json(&with_codec::<S>)
    }
}

/// As JSON.
impl<S: Persist> std::fmt::Debug for Values<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.shown.json_with_interrupts(&with_codec::<S>))
    }
}

/// What a node wrote.
///
/// ```
/// use superstep::{AgentState, NodeUpdate};
/// fn show(update: &NodeUpdate<AgentState>) {
///     let written = update.update().get(AgentState::MESSAGES).map_or(0, Vec::len);
///     println!("{} wrote {written} messages", update.node);
/// }
/// ```
#[non_exhaustive]
pub struct NodeUpdate<S: ?Sized> {
    /// The node.
    pub node: String,
    /// The step.
    pub step: i64,
    /// The task, as `tasks` events and snapshots name it.
    pub task: TaskId,
    /// Whether it did not run because its result was known: from a cache, or from before a restart.
    pub cached: bool,
    pub(crate) writes: ShownWrites,
    pub(crate) state: PhantomData<fn() -> Box<S>>,
}

impl<S: ?Sized> Clone for NodeUpdate<S> {
    fn clone(&self) -> Self {
        Self {
            node: self.node.clone(),
            step: self.step,
            task: self.task,
            cached: self.cached,
            writes: self.writes.clone(),
            state: PhantomData,
        }
    }
}

impl<S: State> NodeUpdate<S> {
    /// The writes as an update.
    pub fn update(&self) -> crate::Update<S> {
        Typed::update_of(&self.writes.writes)
    }

    /// What a function of a workflow returned.
    pub fn returned(&self) -> Option<&Value> {
        self.writes.returned.as_ref()
    }

    /// `{node: update}` as JSON.
    pub fn to_json(&self) -> Value
    where
        S: Persist,
    {
        self.json(&with_codec::<S>)
    }
}

impl<S: ?Sized> NodeUpdate<S> {
    pub(crate) fn new(node: String, step: i64, task: TaskId, cached: bool, writes: ShownWrites) -> Self {
        Self { node, step, task, cached, writes, state: PhantomData }
    }

    fn json(&self, by: By<'_>) -> Value {
        update_json(&self.node, self.cached, self.writes.as_update(by))
    }
}

// What is shown of an event as JSON is made here for all types of states.

fn update_json(node: &str, cached: bool, update: Value) -> Value {
    let mut map = Map::from_iter([(node.to_owned(), update)]);
    if cached {
        map.insert("__metadata__".to_owned(), json!({ "cached": true }));
    }
    Value::Object(map)
}

fn start_json(
    (id, name): (TaskId, &str),
    input: &Value,
    triggers: &[String],
    said: &BTreeMap<String, Value>,
    tags: &[String],
) -> Value {
    let mut value = json!({ "id": id.to_string(), "name": name, "input": input, "triggers": triggers });
    if !said.is_empty() {
        value["metadata"] = json!(said);
    }
    if !tags.is_empty() {
        value["metadata"]["tags"] = json!(tags);
    }
    value
}

fn end_json((id, name): (TaskId, &str), error: Option<&TaskError>, result: &Value, interrupts: &[Interrupt]) -> Value {
    json!({
        "id": id.to_string(), "name": name, "error": error.map(|e| &e.message), "result": result, "interrupts": interrupts,
    })
}

fn debug_json(step: i64, at: SystemTime, kind: &str, payload: Option<&Value>) -> Value {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    json!({ "step": step, "timestamp": since.as_secs_f64(), "type": kind, "payload": payload })
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
}

/// A task that starts.
///
/// ```
/// use superstep::{AgentState, TaskStart};
/// fn show(task: &TaskStart<AgentState>) { println!("{} starts, because of {:?}", task.name, task.triggers); }
/// ```
#[non_exhaustive]
pub struct TaskStart<S: ?Sized> {
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
    pub(crate) state: PhantomData<fn() -> Box<S>>,
}

impl<S: ?Sized> Clone for TaskStart<S> {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            name: self.name.clone(),
            triggers: self.triggers.clone(),
            metadata: self.metadata.clone(),
            tags: self.tags.clone(),
            input: self.input.clone(),
            state: PhantomData,
        }
    }
}

impl<S: State> TaskStart<S> {
    /// What the task was given, as JSON.
    pub fn input(&self) -> Value
    where
        S: Persist,
    {
        self.input.json(&with_codec::<S>)
    }

    fn json(&self, by: By<'_>) -> Value {
        start_json((self.id, &self.name), &self.input.json(by), &self.triggers, &self.metadata, &self.tags)
    }
}

/// A task that ended.
///
/// ```
/// use superstep::{AgentState, TaskEnd};
/// fn show(task: &TaskEnd<AgentState>) { println!("{}: {:?}", task.name, task.error); }
/// ```
#[non_exhaustive]
pub struct TaskEnd<S: ?Sized> {
    /// The task.
    pub id: TaskId,
    /// Its node.
    pub name: String,
    /// Its error.
    pub error: Option<TaskError>,
    /// Its questions.
    pub interrupts: Vec<Interrupt>,
    pub(crate) writes: ShownWrites,
    pub(crate) state: PhantomData<fn() -> Box<S>>,
}

impl<S: ?Sized> Clone for TaskEnd<S> {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            name: self.name.clone(),
            error: self.error.clone(),
            interrupts: self.interrupts.clone(),
            writes: self.writes.clone(),
            state: PhantomData,
        }
    }
}

impl<S: State> TaskEnd<S> {
    /// What it wrote, as JSON.
    pub fn result(&self) -> Value
    where
        S: Persist,
    {
        self.writes.as_named_result(&with_codec::<S>)
    }

    fn json(&self, by: By<'_>) -> Value {
        end_json((self.id, &self.name), self.error.as_ref(), &self.writes.as_named_result(by), &self.interrupts)
    }
}

/// A checkpoint that was made.
///
/// ```
/// use superstep::{AgentState, CheckpointEvent};
/// fn show(event: &CheckpointEvent<AgentState>) { println!("step {:?}, next {:?}", event.snapshot.step, event.snapshot.next); }
/// ```
#[non_exhaustive]
pub struct CheckpointEvent<S: ?Sized> {
    /// The checkpoint as [`Thread::state`](crate::Thread::state) shows it.
    pub snapshot: StateSnapshot<S>,
}

impl<S: ?Sized> Clone for CheckpointEvent<S> {
    fn clone(&self) -> Self {
        Self { snapshot: self.snapshot.clone() }
    }
}

/// A task or checkpoint, with its step and time.
///
/// ```
/// use superstep::{AgentState, DebugEvent};
/// fn show(event: &DebugEvent<AgentState>) { println!("step {} {}", event.step, event.kind()); }
/// ```
#[non_exhaustive]
pub struct DebugEvent<S: ?Sized> {
    /// The step.
    pub step: i64,
    /// When it happened.
    pub at: SystemTime,
    /// The task or checkpoint.
    pub event: Box<EventData<S>>,
}

impl<S: State> DebugEvent<S> {
    /// `task`, `task_result` or `checkpoint`.
    pub fn kind(&self) -> &'static str {
        match &*self.event {
            EventData::TaskStart(_) => "task",
            EventData::TaskEnd(_) => "task_result",
            _ => "checkpoint",
        }
    }

    fn json(&self, by: By<'_>) -> Value {
        debug_json(self.step, self.at, self.kind(), self.event.json(by).as_ref())
    }
}
