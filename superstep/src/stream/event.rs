//! The events themselves, typed by the state of the graph that they come from.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::{Mode, RawEvent, TaskMetadata, ToolEvent};
use crate::checkpoint::Codec;
use crate::engine::Bits;
use crate::error::TaskError;
use crate::id::TaskId;
use crate::node::{Interrupt, TaskInput};
use crate::plan::{Fields, Plan};
use crate::snapshot::StateSnapshot;
use crate::state::{Message, MessageChunk, Persist, Put, State};

/// How to show a state: known to the graph if it saves, and to callers who know that the state can be saved.
pub(crate) type KnownCodec<S> = Option<&'static Codec<S>>;

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
pub struct Event<S: State> {
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
pub enum EventData<S: State> {
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
        self.json(None)
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
        self.json(Some(Codec::of()))
    }

    fn json(&self, codec: KnownCodec<S>) -> Option<Value> {
        Some(match self {
            EventData::Values(values) => values.json_with_interrupts(codec),
            EventData::Updates(update) => update.json(codec),
            EventData::Interrupts(list) => json!({ "__interrupt__": list }),
            EventData::Message(message) => return message.json(),
            EventData::Custom(value) => value.clone(),
            EventData::Tool(event) => event.to_json(),
            EventData::TaskStart(task) => task.json(codec),
            EventData::TaskEnd(task) => task.json(codec),
            EventData::Checkpoint(checkpoint) => checkpoint.snapshot.to_json(),
            EventData::Debug(debug) => debug.json(codec),
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
pub struct Values<S: State> {
    /// The state.
    pub state: Arc<S>,
    /// The questions with which the run paused here.
    pub interrupts: Vec<Interrupt>,
    pub(crate) view: View<S>,
}

/// What is shown of a state, and how.
pub(crate) struct View<S: State> {
    pub(crate) present: Bits,
    pub(crate) fields: Fields,
    pub(crate) plan: Arc<Plan<S>>,
    pub(crate) codec: KnownCodec<S>,
}

impl<S: State> Clone for View<S> {
    fn clone(&self) -> Self {
        Self { present: self.present.clone(), fields: self.fields.clone(), plan: self.plan.clone(), codec: self.codec }
    }
}

impl<S: State> View<S> {
    /// The shown fields of a state that have a value, as JSON; null if the state cannot be shown.
    pub(crate) fn json(&self, state: &S, codec: KnownCodec<S>) -> Value {
        let codec = self.codec.or(codec);
        let value_of = |field: usize| write_json(&self.plan, codec, &self.read(state, field)?);
        match &self.fields {
            Fields::One(field) => value_of(*field).unwrap_or_default(),
            Fields::Many(_) if codec.is_none() => Value::Null,
            Fields::Many(_) => {
                let entries = self
                    .fields
                    .list()
                    .iter()
                    .filter_map(|f| Some((self.plan.fields()[*f].name().to_owned(), value_of(*f)?)));
                Value::Object(entries.collect())
            }
        }
    }

    /// A field, if it has a value.
    pub(crate) fn read(&self, state: &S, field: usize) -> Option<S::Write> {
        self.present.has(field).then(|| state.read(&self.plan.schema, field)).flatten()
    }
}

impl<S: State> Clone for Values<S> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), interrupts: self.interrupts.clone(), view: self.view.clone() }
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
        self.json(Some(Codec::of()))
    }

    /// The same for a state that perhaps cannot be shown; then it is null.
    pub(crate) fn json(&self, codec: KnownCodec<S>) -> Value {
        self.view.json(&self.state, codec)
    }

    fn json_with_interrupts(&self, codec: KnownCodec<S>) -> Value {
        let mut value = self.json(codec);
        if !self.interrupts.is_empty() {
            match &mut value {
                Value::Object(map) => drop(map.insert("__interrupt__".to_owned(), json!(self.interrupts))),
                other => *other = json!({ "__interrupt__": self.interrupts }),
            }
        }
        value
    }
}

/// As JSON.
impl<S: Persist> std::fmt::Debug for Values<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.json_with_interrupts(Some(Codec::of())))
    }
}

/// A write as JSON: nothing if it is never saved, why not if it cannot be, null if the state has no codec.
pub(crate) fn write_json<S: State>(plan: &Plan<S>, codec: Option<&Codec<S>>, write: &S::Write) -> Option<Value> {
    match codec.map(|c| (c.to_json)(&plan.schema, write)) {
        Some(Ok(value)) => value,
        Some(Err(error)) => Some(json!({ "__error__": error.to_string() })),
        None => Some(Value::Null),
    }
}

/// The shown writes of one task.
#[derive(Clone)]
pub(crate) struct ShownWrites<S: State> {
    pub(crate) puts: Vec<Put<S::Write>>,
    pub(crate) fields: Fields,
    pub(crate) returned: Option<Value>,
    pub(crate) plan: Arc<Plan<S>>,
    pub(crate) codec: KnownCodec<S>,
}

impl<S: State> ShownWrites<S> {
    /// The puts to shown fields, each with its field.
    fn shown(&self, codec: KnownCodec<S>) -> impl Iterator<Item = (usize, Value)> + '_ {
        let codec = self.codec.or(codec);
        self.puts.iter().filter_map(move |put| {
            let field = S::field_of(&self.plan.schema, &put.write).filter(|f| self.fields.list().contains(f))?;
            let value = write_json(&self.plan, codec, &put.write)?;
            Some((field, if put.overwrite { json!({ "__overwrite__": value }) } else { value }))
        })
    }

    fn name(&self, field: usize) -> String {
        self.plan.fields()[field].name().to_owned()
    }

    /// As the `updates` stream shows them: an object, a list if a field was written twice, null if nothing was.
    pub(crate) fn as_update(&self, codec: KnownCodec<S>) -> Value {
        if let Some(value) = &self.returned {
            return value.clone();
        }
        let shown: Vec<_> = self.shown(codec).collect();
        let mut values: Vec<Value> = match &self.fields {
            Fields::One(_) => shown.into_iter().map(|(_, v)| v).collect(),
            Fields::Many(_) if shown.is_empty() => Vec::new(),
            Fields::Many(_) => {
                let mut fields: Vec<usize> = shown.iter().map(|(f, _)| *f).collect();
                fields.sort_unstable();
                let repeated = fields.windows(2).any(|w| w[0] == w[1]);
                let entries = shown.into_iter().map(|(f, v)| (self.name(f), v));
                if repeated {
                    entries.map(|(k, v)| Value::Object(Map::from_iter([(k, v)]))).collect()
                } else {
                    vec![Value::Object(entries.collect())]
                }
            }
        };
        match values.len() {
            0 => Value::Null,
            1 => values.remove(0),
            _ => Value::Array(values),
        }
    }

    /// As the result of a task in a snapshot: what it returned, or its writes.
    pub(crate) fn as_result(&self, codec: KnownCodec<S>) -> Value {
        match (&self.returned, &self.fields) {
            (Some(value), _) => value.clone(),
            (None, Fields::One(field)) => self.by_field(codec).remove(&self.name(*field)).unwrap_or_default(),
            (None, Fields::Many(_)) => Value::Object(self.by_field(codec)),
        }
    }

    /// As the result of a task in a stream: by the names of the fields, and what it returned under `__return__`.
    pub(crate) fn as_named_result(&self, codec: KnownCodec<S>) -> Value {
        let mut result = match (&self.returned, &self.fields) {
            (Some(_), Fields::One(_)) => Map::new(),
            _ => self.by_field(codec),
        };
        result.extend(self.returned.iter().map(|value| ("__return__".to_owned(), value.clone())));
        Value::Object(result)
    }

    /// The writes by field; repeated ones of a field are collected under `$writes`.
    fn by_field(&self, codec: KnownCodec<S>) -> Map<String, Value> {
        let mut result: Map<String, Value> = Map::new();
        for (field, value) in self.shown(codec) {
            match result.get_mut(&self.name(field)) {
                Some(existing) if !existing.is_null() => {
                    match existing.get_mut("$writes").and_then(Value::as_array_mut) {
                        Some(list) => list.push(value),
                        None => *existing = json!({ "$writes": [existing.take(), value] }),
                    }
                }
                _ => drop(result.insert(self.name(field), value)),
            }
        }
        result
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
#[derive(Clone)]
#[non_exhaustive]
pub struct NodeUpdate<S: State> {
    /// The node.
    pub node: String,
    /// The step.
    pub step: i64,
    /// The task, as `tasks` events and snapshots name it.
    pub task: TaskId,
    /// Whether it did not run because its result was known: from a cache, or from before a restart.
    pub cached: bool,
    pub(crate) writes: ShownWrites<S>,
}

impl<S: State> NodeUpdate<S> {
    /// The writes as an update.
    pub fn update(&self) -> crate::Update<S> {
        crate::Update::from_puts(self.writes.puts.iter().cloned().collect())
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
        self.json(Some(Codec::of()))
    }

    fn json(&self, codec: KnownCodec<S>) -> Value {
        let mut map = Map::from_iter([(self.node.clone(), self.writes.as_update(codec))]);
        if self.cached {
            map.insert("__metadata__".to_owned(), json!({ "cached": true }));
        }
        Value::Object(map)
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
}

/// A task that starts.
///
/// ```
/// use superstep::{AgentState, TaskStart};
/// fn show(task: &TaskStart<AgentState>) { println!("{} starts, because of {:?}", task.name, task.triggers); }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct TaskStart<S: State> {
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
    pub(crate) input: ShownInput<S>,
}

/// A task's input, to be shown.
#[derive(Clone)]
pub(crate) enum ShownInput<S: State> {
    Task {
        input: Arc<TaskInput<S>>,
        present: Bits,
        reads: Option<Arc<[usize]>>,
        step: i64,
        stop: i64,
        plan: Arc<Plan<S>>,
        codec: KnownCodec<S>,
    },
    /// What the start node writes.
    Start(ShownWrites<S>),
    Value(Value),
}

impl<S: State> ShownInput<S> {
    pub(crate) fn json(&self, known: KnownCodec<S>) -> Value {
        match self {
            ShownInput::Value(value) => value.clone(),
            ShownInput::Start(writes) => writes.as_result(known),
            ShownInput::Task { input, present, reads, step, stop, plan, codec } => match &**input {
                TaskInput::Sent(payload) => payload.to_json().unwrap_or_default(),
                TaskInput::State(state) => {
                    let all: Vec<usize> = (0..plan.fields().len()).collect();
                    let list = reads.as_deref().unwrap_or(&all);
                    let value_of = |f: usize| match plan.kind(f) {
                        crate::FieldKind::IsLastStep => Some(json!(*step == stop - 1)),
                        crate::FieldKind::RemainingSteps => Some(json!(stop - step)),
                        _ if present.has(f) => write_json(plan, codec.or(known), &state.read(&plan.schema, f)?),
                        _ => None,
                    };
                    let entries =
                        list.iter().filter_map(|f| Some((plan.fields()[*f].name().to_owned(), value_of(*f)?)));
                    Value::Object(entries.collect())
                }
            },
        }
    }
}

impl<S: State> TaskStart<S> {
    /// What the task was given, as JSON.
    pub fn input(&self) -> Value
    where
        S: Persist,
    {
        self.input.json(Some(Codec::of()))
    }

    fn json(&self, codec: KnownCodec<S>) -> Value {
        let input = self.input.json(codec);
        let mut value =
            json!({ "id": self.id.to_string(), "name": self.name, "input": input, "triggers": self.triggers });
        if !self.metadata.is_empty() {
            value["metadata"] = json!(self.metadata);
        }
        if !self.tags.is_empty() {
            value["metadata"]["tags"] = json!(self.tags);
        }
        value
    }
}

/// A task that ended.
///
/// ```
/// use superstep::{AgentState, TaskEnd};
/// fn show(task: &TaskEnd<AgentState>) { println!("{}: {:?}", task.name, task.error); }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct TaskEnd<S: State> {
    /// The task.
    pub id: TaskId,
    /// Its node.
    pub name: String,
    /// Its error.
    pub error: Option<TaskError>,
    /// Its questions.
    pub interrupts: Vec<Interrupt>,
    pub(crate) writes: ShownWrites<S>,
}

impl<S: State> TaskEnd<S> {
    /// What it wrote, as JSON.
    pub fn result(&self) -> Value
    where
        S: Persist,
    {
        self.writes.as_named_result(Some(Codec::of()))
    }

    fn json(&self, codec: KnownCodec<S>) -> Value {
        json!({
            "id": self.id.to_string(), "name": self.name, "error": self.error.as_ref().map(|e| &e.message),
            "result": self.writes.as_named_result(codec), "interrupts": self.interrupts,
        })
    }
}

/// A checkpoint that was made.
///
/// ```
/// use superstep::{AgentState, CheckpointEvent};
/// fn show(event: &CheckpointEvent<AgentState>) { println!("step {:?}, next {:?}", event.snapshot.step, event.snapshot.next); }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct CheckpointEvent<S: State> {
    /// The checkpoint as [`Thread::state`](crate::Thread::state) shows it.
    pub snapshot: StateSnapshot<S>,
}

/// A task or checkpoint, with its step and time.
///
/// ```
/// use superstep::{AgentState, DebugEvent};
/// fn show(event: &DebugEvent<AgentState>) { println!("step {} {}", event.step, event.kind()); }
/// ```
#[non_exhaustive]
pub struct DebugEvent<S: State> {
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

    fn json(&self, codec: KnownCodec<S>) -> Value {
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        json!({ "step": self.step, "timestamp": since.as_secs_f64(), "type": self.kind(), "payload": self.event.json(codec) })
    }
}
