//! What is shown of states and writes, without their types.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::bits::Bits;
use crate::checkpoint::Interrupt;
use crate::message::Message;
use crate::plan::Fields;
use crate::state::erased::{Place, Snapshot, StateType, Typed, Writes};
use crate::state::{Codec, FieldKind, Persist, TaskInput};

/// Which state type shows a value: that of the graph, or the same with a codec if who looks knows one.
pub(crate) type By<'a> = &'a dyn Fn(&Arc<dyn StateType>) -> Arc<dyn StateType>;

/// As the graph knows it.
pub(crate) fn as_known(ty: &Arc<dyn StateType>) -> Arc<dyn StateType> {
    ty.clone()
}

/// With the codec of `S`, unless the graph has one.
pub(crate) fn with_codec<S: Persist>(ty: &Arc<dyn StateType>) -> Arc<dyn StateType> {
    if ty.can_persist() {
        return ty.clone();
    }
    Arc::new(Typed::<S>::new(Typed::<S>::of(&**ty).schema().clone(), Some(Codec::of())))
}

/// What is shown of a state, and how.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) present: Bits,
    pub(crate) fields: Fields,
    pub(crate) ty: Arc<dyn StateType>,
}

impl View {
    /// The shown fields of a state that have a value, as JSON; null if the state cannot be shown.
    pub(crate) fn json(&self, state: &Snapshot, by: By<'_>) -> Value {
        let ty = by(&self.ty);
        let value_of = |field: usize| self.present.has(field).then(|| field_json(&*ty, state, field)).flatten();
        match &self.fields {
            Fields::One(field) => value_of(*field).unwrap_or_default(),
            Fields::Many(_) if !ty.can_persist() => Value::Null,
            Fields::Many(_) => {
                let entries = self.fields.list().iter();
                let entries = entries.filter_map(|f| Some((self.ty.fields()[*f].name().to_owned(), value_of(*f)?)));
                Value::Object(entries.collect())
            }
        }
    }

    /// The shown fields that have a value, as writes.
    pub(crate) fn read(&self, state: &Snapshot) -> Writes {
        let fields = self.fields.list().iter().copied();
        self.ty.read(state, &mut fields.filter(|field| self.present.has(*field)))
    }
}

/// A state at a moment, with what of it is shown.
#[derive(Clone)]
pub(crate) struct ShownState {
    pub(crate) state: Snapshot,
    pub(crate) interrupts: Vec<Interrupt>,
    pub(crate) view: View,
}

impl ShownState {
    /// Null if the state cannot be shown.
    pub(crate) fn json(&self, by: By<'_>) -> Value {
        self.view.json(&self.state, by)
    }

    pub(crate) fn json_with_interrupts(&self, by: By<'_>) -> Value {
        let mut value = self.json(by);
        if !self.interrupts.is_empty() {
            match &mut value {
                Value::Object(map) => drop(map.insert("__interrupt__".to_owned(), json!(self.interrupts))),
                other => *other = json!({ "__interrupt__": self.interrupts }),
            }
        }
        value
    }
}

/// A field as JSON: nothing if it has no value or is never saved, why not if it cannot be, null if the state has no codec.
pub(crate) fn field_json(ty: &dyn StateType, state: &Snapshot, field: usize) -> Option<Value> {
    if !ty.can_persist() {
        return ty.has_value(state, field).then_some(Value::Null);
    }
    ty.field_json(state, field).unwrap_or_else(|error| Some(json!({ "__error__": error.to_string() })))
}

/// The same of a write.
fn write_json(ty: &dyn StateType, writes: &Writes, place: &Place) -> Option<Value> {
    if !ty.can_persist() {
        return Some(Value::Null);
    }
    ty.write_json(writes, place).unwrap_or_else(|error| Some(json!({ "__error__": error.to_string() })))
}

/// The shown writes of one task.
#[derive(Clone)]
pub(crate) struct ShownWrites {
    pub(crate) writes: Arc<Writes>,
    fields: Fields,
    pub(crate) returned: Option<Value>,
    ty: Arc<dyn StateType>,
}

impl ShownWrites {
    pub(crate) fn new(writes: Writes, fields: Fields, returned: Option<Value>, ty: &Arc<dyn StateType>) -> Self {
        Self { writes: Arc::new(writes), fields, returned, ty: ty.clone() }
    }

    /// The chat messages in it, each with all that is in it if that is more than a [`Message`] holds.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (Message, Option<Value>)> + '_ {
        self.writes.places().iter().flat_map(|place| self.ty.messages(&self.writes, place))
    }

    /// The puts to shown fields, each with its field.
    fn shown(&self, by: By<'_>) -> impl Iterator<Item = (usize, Value)> + '_ {
        let ty = by(&self.ty);
        self.writes.places().iter().filter(|put| self.fields.list().contains(&put.field)).filter_map(move |put| {
            let (field, value) = (put.field, write_json(&*ty, &self.writes, put)?);
            Some((field, if put.overwrite { json!({ "__overwrite__": value }) } else { value }))
        })
    }

    fn name(&self, field: usize) -> String {
        self.ty.fields()[field].name().to_owned()
    }

    /// As the `updates` stream shows them: an object, a list if a field was written twice, null if nothing was.
    pub(crate) fn as_update(&self, by: By<'_>) -> Value {
        if let Some(value) = &self.returned {
            return value.clone();
        }
        let shown: Vec<_> = self.shown(by).collect();
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
    pub(crate) fn as_result(&self, by: By<'_>) -> Value {
        match (&self.returned, &self.fields) {
            (Some(value), _) => value.clone(),
            (None, Fields::One(field)) => self.by_field(by).remove(&self.name(*field)).unwrap_or_default(),
            (None, Fields::Many(_)) => Value::Object(self.by_field(by)),
        }
    }

    /// As the result of a task in a stream: by the names of the fields, and what it returned under `__return__`.
    pub(crate) fn as_named_result(&self, by: By<'_>) -> Value {
        let mut result = match (&self.returned, &self.fields) {
            (Some(_), Fields::One(_)) => Map::new(),
            _ => self.by_field(by),
        };
        result.extend(self.returned.iter().map(|value| ("__return__".to_owned(), value.clone())));
        Value::Object(result)
    }

    /// The writes by field; repeated ones of a field are collected under `$writes`.
    fn by_field(&self, by: By<'_>) -> Map<String, Value> {
        let mut result: Map<String, Value> = Map::new();
        for (field, value) in self.shown(by) {
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

/// A task's input, to be shown.
#[derive(Clone)]
pub(crate) enum ShownInput {
    Task {
        input: Arc<TaskInput>,
        present: Bits,
        reads: Option<Arc<[usize]>>,
        step: i64,
        stop: i64,
        ty: Arc<dyn StateType>,
    },
    /// What the start node writes.
    Start(ShownWrites),
    Value(Value),
}

impl ShownInput {
    pub(crate) fn json(&self, by: By<'_>) -> Value {
        match self {
            ShownInput::Value(value) => value.clone(),
            ShownInput::Start(writes) => writes.as_result(by),
            ShownInput::Task { input, present, reads, step, stop, ty } => match &**input {
                TaskInput::Sent(payload) => payload.to_json().unwrap_or_default(),
                TaskInput::State(state) => {
                    let ty = by(ty);
                    let all: Vec<usize> = (0..ty.fields().len()).collect();
                    let list = reads.as_deref().unwrap_or(&all);
                    let value_of = |f: usize| match ty.fields()[f].kind() {
                        FieldKind::IsLastStep => Some(json!(*step == stop - 1)),
                        FieldKind::RemainingSteps => Some(json!(stop - step)),
                        _ if present.has(f) => field_json(&*ty, state, f),
                        _ => None,
                    };
                    let entries = list.iter().filter_map(|f| Some((ty.fields()[*f].name().to_owned(), value_of(*f)?)));
                    Value::Object(entries.collect())
                }
            },
        }
    }
}
