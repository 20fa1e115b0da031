//! Traces: snapshots, events and values without ids and times, checkpoints by their labels.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use superstep::{
    CheckpointId, CheckpointRef, Checkpointer, Event, EventData, Interrupt, ListQuery, Message, MessageKind, Mode,
    SavedCheckpoint, StateSnapshot, TaskError, TaskSnapshot, TaskStart,
};

use crate::expr::{is_message, truthy};
use crate::failure::{Failure, saved_error};
use crate::world::World;

/// The labels of a thread's checkpoints: what made them and their step, numbered where these repeat.
#[derive(Default)]
pub(crate) struct Labels(HashMap<(String, CheckpointId), String>);

impl Labels {
    pub(crate) async fn of(saver: Option<&dyn Checkpointer>, thread: &str) -> Result<Self, Failure> {
        let mut labels = HashMap::new();
        let Some(saver) = saver else { return Ok(Self(labels)) };
        for namespace in saver.namespaces(thread).await? {
            let mut repeats: HashMap<String, usize> = HashMap::new();
            let mut records = saver.list(thread, &namespace, &ListQuery::new()).await?;
            records.sort_by_key(|saved| saved.record().id());
            for record in records.iter().map(SavedCheckpoint::record) {
                let base = format!("{}:{}", record.source(), record.step());
                let repeat = repeats.entry(base.clone()).or_default();
                *repeat += 1;
                let label = if *repeat == 1 { base } else { format!("{base}#{repeat}") };
                labels.insert((namespace.clone(), record.id()), label);
            }
        }
        Ok(Self(labels))
    }

    /// The checkpoint with this label.
    pub(crate) fn find(&self, namespace: &str, label: &str) -> Option<CheckpointId> {
        let mut named = self.0.iter().filter(|((ns, _), l)| ns == namespace && *l == label);
        named.next().map(|((_, id), _)| *id)
    }

    pub(crate) fn label(&self, at: Option<&CheckpointRef>) -> Option<&str> {
        let at = at?;
        self.0.get(&(at.namespace.clone(), at.id)).map(String::as_str)
    }
}

/// Renders what the engine shows, for one thread.
pub(crate) struct Renderer<'a> {
    pub(crate) world: &'a World,
    pub(crate) labels: Labels,
}

impl Renderer<'_> {
    pub(crate) fn snapshot<S>(&self, snapshot: &StateSnapshot<S>) -> Value {
        let task = |task: &TaskSnapshot| {
            let inner = task.subgraph.as_ref();
            let mut shown = self.task(task);
            shown["state"] = inner.map_or(Value::Null, |inner| self.snapshot(inner));
            shown
        };
        let mut shown = self.checkpoint(snapshot);
        shown["tasks"] = snapshot.tasks.iter().map(task).collect();
        shown["interrupts"] = questions(&snapshot.interrupts);
        shown
    }

    fn checkpoint<S>(&self, snapshot: &StateSnapshot<S>) -> Value {
        json!({
            "values": plain(&snapshot.values()),
            "next": snapshot.next,
            "checkpoint": self.labels.label(snapshot.checkpoint.as_ref()),
            "parent": self.labels.label(snapshot.parent.as_ref()),
            "source": snapshot.source,
            "step": snapshot.step,
            "tasks": snapshot.tasks.iter().map(|task| self.task(task)).collect::<Vec<_>>(),
        })
    }

    fn task(&self, task: &TaskSnapshot) -> Value {
        json!({
            "name": task.name,
            "error": self.error(task.error.as_ref()),
            "interrupts": questions(&task.interrupts),
            "result": task.result().as_ref().map(plain),
        })
    }

    fn error(&self, error: Option<&TaskError>) -> Option<String> {
        error.map(|error| saved_error(error, self.world.has_raised(&error.message)))
    }

    pub(crate) fn event(&self, event: &Event) -> Value {
        let mut shown = json!({ "ns": event.path(), "mode": mode_name(event.mode) });
        match (event.mode, self.data(&event.data)) {
            // Its type and step stand beside the data of the event inside.
            (Mode::Debug, Value::Object(debug)) => shown.as_object_mut().expect("it is an object").extend(debug),
            (_, data) => shown["data"] = data,
        }
        shown
    }

    /// What a task is given. The traces show the call of a function as Python does: its arguments, and those with names.
    fn input_of(&self, task: &TaskStart) -> Value {
        let input = plain(&task.input());
        if self.world.task(&task.name).is_some() { json!([[input], {}]) } else { input }
    }

    fn data(&self, data: &EventData) -> Value {
        match data {
            EventData::Message(event) => {
                let message = event.whole.clone().unwrap_or_else(|| normal_form(&event.message));
                json!({ "message": plain(&message), "node": event.node, "step": event.step })
            }
            EventData::TaskStart(task) => json!({ "start": task.name, "input": self.input_of(task) }),
            EventData::TaskEnd(task) => json!({
                "end": task.name,
                "error": self.error(task.error.as_ref()),
                "result": plain(&task.result()),
                "interrupts": questions(&task.interrupts),
            }),
            EventData::Checkpoint(snapshot) => self.checkpoint(snapshot),
            EventData::Debug(debug) => {
                json!({ "type": debug.kind(), "step": debug.step, "data": self.data(&debug.event) })
            }
            other => plain(&other.to_json()),
        }
    }
}

/// The values of questions.
pub(crate) fn questions(interrupts: &[Interrupt]) -> Value {
    interrupts.iter().map(|i| plain(&i.value)).collect()
}

fn mode_name(mode: Mode) -> &'static str {
    MODES.iter().find(|(_, m)| *m == mode).map_or("?", |(name, _)| name)
}

/// The modes of a stream by name.
pub(crate) const MODES: [(&str, Mode); 7] = [
    ("values", Mode::Values),
    ("updates", Mode::Updates),
    ("messages", Mode::Messages),
    ("custom", Mode::Custom),
    ("tasks", Mode::Tasks),
    ("checkpoints", Mode::Checkpoints),
    ("debug", Mode::Debug),
];

/// Values in the one form that traces have: no generated ids; interrupts and overwrites by their values.
pub(crate) fn plain(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(plain).collect(),
        Value::Object(_) if is_message(value) => plain_message(value),
        Value::Object(map) => match map.get("__overwrite__").filter(|_| map.len() == 1) {
            Some(value) => json!({ "overwrite": plain(value) }),
            None => Value::Object(map.iter().filter_map(|(key, value)| plain_entry(map, key, value)).collect()),
        },
        value => value.clone(),
    }
}

fn plain_entry(map: &Map<String, Value>, key: &str, value: &Value) -> Option<(String, Value)> {
    let shown = match (key, value) {
        ("__interrupt__", Value::Array(list)) => {
            list.iter().map(|i| json!({ "interrupt": plain(&i["value"]) })).collect()
        }
        // A message that has not been brought into its normal form yet.
        ("id", id) if map.contains_key("role") && map.contains_key("content") && is_generated(id) => return None,
        _ => plain(value),
    };
    Some((key.to_owned(), shown))
}

/// Whether an id was not in the scenario.
fn is_generated(id: &Value) -> bool {
    id.as_str().is_none_or(|id| id.len() >= 32)
}

fn plain_message(message: &Value) -> Value {
    let mut shown = json!({ "type": message["type"], "content": message["content"] });
    if !is_generated(&message["id"]) {
        shown["id"] = message["id"].clone();
    }
    for key in ["tool_calls", "tool_call_id", "name"] {
        if truthy(&message[key]) {
            shown[key] = plain(&message[key]);
        }
    }
    shown
}

/// A message of superstep in the form that dynamic states have.
fn normal_form(message: &Message) -> Value {
    let (kind, content) = match &message.kind {
        MessageKind::System(text) => ("system", text.as_str()),
        MessageKind::User(text) => ("human", text.as_str()),
        MessageKind::Assistant(text) | MessageKind::AssistantCalls { text, .. } => ("ai", text.as_str()),
        MessageKind::ToolResult { content, .. } => ("tool", content.as_str()),
        _ => ("remove", ""),
    };
    let mut normal = json!({ "type": kind, "content": content, "id": message.id });
    match &message.kind {
        MessageKind::AssistantCalls { calls, .. } => normal["tool_calls"] = json!(calls),
        MessageKind::ToolResult { call, .. } => normal["tool_call_id"] = json!(call),
        _ => {}
    }
    normal
}
