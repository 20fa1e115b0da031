//! What is shown of states and writes, without their types: it turns to JSON when somebody asks.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::bits::Bits;
use crate::checkpoint::Interrupt;
use crate::message::Message;
use crate::state::erased::{Place, Snapshot, StateType, Typed, Writes};
use crate::state::{FieldKind, State};
use crate::value::Payload;

/// A choice of fields.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fields {
    /// An object of these fields.
    Many(FieldList),
    /// The bare value of one field.
    One(usize),
}

/// Fields in order, and as a set: every step asks whether it has changed one of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FieldList {
    list: Vec<usize>,
    set: Bits,
}

impl Fields {
    pub(crate) fn many(list: Vec<usize>) -> Self {
        let set = list.iter().copied().collect();
        Self::Many(FieldList { list, set })
    }

    pub(crate) fn none() -> Self {
        Self::Many(FieldList::default())
    }

    pub(crate) fn list(&self) -> &[usize] {
        match self {
            Fields::Many(fields) => &fields.list,
            Fields::One(one) => std::slice::from_ref(one),
        }
    }

    #[inline]
    pub(crate) fn has(&self, field: usize) -> bool {
        match self {
            Fields::Many(fields) => fields.set.has(field),
            Fields::One(one) => *one == field,
        }
    }
}

/// What is shown of a state, and how.
#[derive(Clone)]
pub struct View {
    pub(crate) present: Bits,
    pub(crate) fields: Fields,
    pub(crate) ty: Arc<dyn StateType>,
}

crate::debug::debug_parts!([] View, "View", this => { fields: this.fields });

impl View {
    /// The shown fields of a state that have a value, as JSON; null if the state cannot be shown.
    pub(crate) fn json(&self, state: &Snapshot) -> Value {
        let ty = &*self.ty;
        let value_of = |field: usize| self.present.has(field).then(|| field_json(ty, state, field)).flatten();
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
pub struct ShownState {
    pub(crate) state: Snapshot,
    pub(crate) interrupts: Vec<Interrupt>,
    pub(crate) view: View,
}

crate::debug::debug_parts!([] ShownState, "ShownState", this => { state: this.json() });

impl ShownState {
    /// Null if the state cannot be shown.
    pub(crate) fn json(&self) -> Value {
        self.view.json(&self.state)
    }

    pub(crate) fn json_with_interrupts(&self) -> Value {
        let mut value = self.json();
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

    /// Whether they are writes to a state of this type.
    pub(crate) fn is_of<S: State>(&self) -> bool {
        self.ty.as_any().is::<Typed<S>>()
    }

    /// The chat messages in it, each with all that is in it if that is more than a [`Message`] holds.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (Message, Option<Value>)> + '_ {
        self.writes.places().iter().flat_map(|place| self.ty.messages(&self.writes, place))
    }

    /// The puts to shown fields, each with its field.
    fn shown(&self) -> impl Iterator<Item = (usize, Value)> + '_ {
        let ty = &*self.ty;
        self.writes.places().iter().filter(|put| self.fields.list().contains(&put.field)).filter_map(move |put| {
            let (field, value) = (put.field, write_json(&*ty, &self.writes, put)?);
            Some((field, if put.overwrite { json!({ "__overwrite__": value }) } else { value }))
        })
    }

    fn name(&self, field: usize) -> String {
        self.ty.fields()[field].name().to_owned()
    }

    /// As the `updates` stream shows them: an object, a list if a field was written twice, null if nothing was.
    pub(crate) fn as_update(&self) -> Value {
        if let Some(value) = &self.returned {
            return value.clone();
        }
        let shown: Vec<_> = self.shown().collect();
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
    pub(crate) fn as_result(&self) -> Value {
        match (&self.returned, &self.fields) {
            (Some(value), _) => value.clone(),
            (None, Fields::One(field)) => self.by_field().remove(&self.name(*field)).unwrap_or_default(),
            (None, Fields::Many(_)) => Value::Object(self.by_field()),
        }
    }

    /// As the result of a task in a stream: by the names of the fields, and what it returned under `__return__`.
    pub(crate) fn as_named_result(&self) -> Value {
        let mut result = match (&self.returned, &self.fields) {
            (Some(_), Fields::One(_)) => Map::new(),
            _ => self.by_field(),
        };
        result.extend(self.returned.iter().map(|value| ("__return__".to_owned(), value.clone())));
        Value::Object(result)
    }

    /// The writes by field; repeated ones of a field are collected under `$writes`.
    fn by_field(&self) -> Map<String, Value> {
        let mut result: Map<String, Value> = Map::new();
        for (field, value) in self.shown() {
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
    Sent(Payload),
    State {
        state: Snapshot,
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
    pub(crate) fn json(&self) -> Value {
        match self {
            ShownInput::Value(value) => value.clone(),
            ShownInput::Start(writes) => writes.as_result(),
            ShownInput::Sent(payload) => payload.to_json().unwrap_or_default(),
            ShownInput::State { state, present, reads, step, stop, ty } => {
                let all: Vec<usize> = (0..ty.fields().len()).collect();
                let list = reads.as_deref().unwrap_or(&all);
                let value_of = |f: usize| match ty.fields()[f].kind() {
                    FieldKind::IsLastStep => Some(json!(*step == stop - 1)),
                    FieldKind::RemainingSteps => Some(json!(stop - step)),
                    _ if present.has(f) => field_json(&**ty, state, f),
                    _ => None,
                };
                let entries = list.iter().filter_map(|f| Some((ty.fields()[*f].name().to_owned(), value_of(*f)?)));
                Value::Object(entries.collect())
            }
        }
    }
}

/// What of the state a run showed last.
#[derive(Clone)]
pub enum Shown {
    /// Nothing.
    Nothing,
    /// The state as it was in the end.
    Last(View),
    /// An earlier one.
    Earlier(ShownState),
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shown::Nothing => f.write_str("Nothing"),
            Shown::Last(_) => f.write_str("Last"),
            Shown::Earlier(_) => f.write_str("Earlier"),
        }
    }
}

/// How a run ended.
#[derive(Clone)]
pub(crate) struct RunEnd {
    pub(crate) state: Snapshot,
    pub(crate) shown: Shown,
    /// Whether it waits: for answers, or because it was told to stop.
    pub(crate) paused: bool,
    /// The questions that wait.
    pub(crate) interrupts: Vec<Interrupt>,
}

impl Shown {
    /// What was shown last, as JSON, of this state at the end; null if it was nothing.
    pub(crate) fn json(&self, state: &Snapshot) -> Value {
        match self {
            Shown::Nothing => Value::Null,
            Shown::Last(view) => view.json(state),
            Shown::Earlier(values) => values.json(),
        }
    }
}

/// The form in which a handle gives states: a type of [`State`], or JSON ([`Value`]) where the type is not known.
///
/// Handles have it as their parameter, which is JSON unless it is said otherwise. It cannot be implemented for other types.
///
/// ```
/// use superstep::{AgentState, Form};
/// fn is_form<F: Form>() {}
/// is_form::<AgentState>();
/// is_form::<serde_json::Value>();
/// ```
pub trait Form: sealed::Show {}

impl<F: sealed::Show> Form for F {}

pub(crate) mod sealed {
    use std::any::Any;
    use std::sync::Arc;

    use serde_json::Value;

    use super::{Shown, ShownState};
    use crate::state::State;
    use crate::state::erased::{Snapshot, Typed};

    /// How states are given in a form.
    pub trait Show: Clone + Send + Sync + Sized + 'static {
        /// Whether states of a graph have this form.
        fn is_form_of(ty: &dyn Any) -> bool;

        /// What a snapshot shows.
        fn of(shown: &ShownState) -> Arc<Self>;

        /// What a run gives back.
        fn ended(state: Snapshot, shown: &Shown) -> Self;
    }

    impl<S: State> Show for S {
        fn is_form_of(ty: &dyn Any) -> bool {
            ty.is::<Typed<S>>()
        }

        fn of(shown: &ShownState) -> Arc<Self> {
            shown.state.share()
        }

        fn ended(state: Snapshot, _: &Shown) -> Self {
            Arc::unwrap_or_clone(state.into_shared())
        }
    }

    impl Show for Value {
        fn is_form_of(_: &dyn Any) -> bool {
            true
        }

        fn of(shown: &ShownState) -> Arc<Self> {
            Arc::new(shown.json())
        }

        fn ended(state: Snapshot, shown: &Shown) -> Self {
            shown.json(&state)
        }
    }
}
