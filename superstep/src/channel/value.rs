//! Channels that keep values as they come.

use serde_json::Value;

use super::Channel;
use crate::error::InvalidUpdate;
use crate::state::{Change, FieldKind, ONE_PER_STEP, Put};

/// Reads an overwrite back as the value it was written as, for channels that have no reducer to pass by.
fn plain(put: Put<Value>) -> Value {
    if put.overwrite { serde_json::json!({ "__overwrite__": put.write }) } else { put.write }
}

/// Sets a slot, unless there are several writes and the channel is guarded.
fn set_last(slot: &mut Option<Value>, writes: Vec<Put<Value>>, guard: bool) -> Result<Change, InvalidUpdate> {
    if guard && writes.len() > 1 {
        return Err(InvalidUpdate::new("", ONE_PER_STEP));
    }
    let Some(last) = writes.into_iter().last() else { return Ok(Change::None) };
    *slot = Some(plain(last));
    Ok(Change::Set)
}

/// Empties a slot.
fn clear(slot: &mut Option<Value>) -> Change {
    match slot.take() {
        Some(_) => Change::Cleared,
        None => Change::None,
    }
}

/// Keeps the last value; two writes in one step are an error.
///
/// ```
/// use superstep::{Channel, LastValue};
/// assert!(LastValue::default().get().is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct LastValue(Option<Value>);

impl Channel for LastValue {
    fn kind(&self) -> FieldKind {
        FieldKind::LastValue
    }
    fn update(&mut self, writes: Vec<Put<Value>>) -> Result<Change, InvalidUpdate> {
        set_last(&mut self.0, writes, true)
    }
    fn get(&self) -> Option<&Value> {
        self.0.as_ref()
    }
    fn checkpoint(&self) -> Option<Value> {
        self.0.clone()
    }
    fn from_checkpoint(&self, saved: Option<Value>) -> Box<dyn Channel> {
        Box::new(Self(saved))
    }
    fn copy(&self) -> Box<dyn Channel> {
        Box::new(self.clone())
    }
}

/// Keeps the last write of a step; a step without a write empties it.
///
/// ```
/// use serde_json::json;
/// use superstep::{AnyValue, Channel, Put};
///
/// let mut channel = AnyValue::default();
/// channel.update(vec![Put::merge(json!(1)), Put::merge(json!(2))])?;
/// assert_eq!(channel.get(), Some(&json!(2)));
/// channel.update(vec![])?;
/// assert_eq!(channel.get(), None);
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct AnyValue(Option<Value>);

impl Channel for AnyValue {
    fn kind(&self) -> FieldKind {
        FieldKind::AnyValue
    }
    fn update(&mut self, writes: Vec<Put<Value>>) -> Result<Change, InvalidUpdate> {
        if writes.is_empty() { Ok(clear(&mut self.0)) } else { set_last(&mut self.0, writes, false) }
    }
    fn get(&self) -> Option<&Value> {
        self.0.as_ref()
    }
    fn checkpoint(&self) -> Option<Value> {
        self.0.clone()
    }
    fn from_checkpoint(&self, saved: Option<Value>) -> Box<dyn Channel> {
        Box::new(Self(saved))
    }
    fn copy(&self) -> Box<dyn Channel> {
        Box::new(self.clone())
    }
}

/// Keeps a value for one step.
///
/// ```
/// use serde_json::json;
/// use superstep::{Channel, EphemeralValue, Put};
///
/// let mut channel = EphemeralValue::default();
/// channel.update(vec![Put::merge(json!("now"))])?;
/// channel.update(vec![])?;
/// assert_eq!(channel.get(), None);
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
#[derive(Debug, Clone)]
pub struct EphemeralValue {
    value: Option<Value>,
    guard: bool,
}

impl Default for EphemeralValue {
    fn default() -> Self {
        Self { value: None, guard: true }
    }
}

impl EphemeralValue {
    /// Lets several writers of one step pass; the last one wins.
    pub fn unguarded() -> Self {
        Self { value: None, guard: false }
    }
}

impl Channel for EphemeralValue {
    fn kind(&self) -> FieldKind {
        FieldKind::Ephemeral
    }
    fn update(&mut self, writes: Vec<Put<Value>>) -> Result<Change, InvalidUpdate> {
        if writes.is_empty() { Ok(clear(&mut self.value)) } else { set_last(&mut self.value, writes, self.guard) }
    }
    fn get(&self) -> Option<&Value> {
        self.value.as_ref()
    }
    fn checkpoint(&self) -> Option<Value> {
        self.value.clone()
    }
    fn from_checkpoint(&self, saved: Option<Value>) -> Box<dyn Channel> {
        Box::new(Self { value: saved, guard: self.guard })
    }
    fn copy(&self) -> Box<dyn Channel> {
        Box::new(self.clone())
    }
}

/// Keeps the last value, in the run only: no checkpoint ever holds it.
///
/// ```
/// use serde_json::json;
/// use superstep::{Channel, Put, UntrackedValue};
///
/// let mut channel = UntrackedValue::default();
/// channel.update(vec![Put::merge(json!("a socket"))])?;
/// assert_eq!(channel.checkpoint(), None);
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
#[derive(Debug, Clone)]
pub struct UntrackedValue {
    value: Option<Value>,
    guard: bool,
}

impl Default for UntrackedValue {
    fn default() -> Self {
        Self { value: None, guard: true }
    }
}

impl UntrackedValue {
    /// Lets several writers of one step pass; the last one wins.
    pub fn unguarded() -> Self {
        Self { value: None, guard: false }
    }
}

impl Channel for UntrackedValue {
    fn kind(&self) -> FieldKind {
        FieldKind::Untracked
    }
    fn update(&mut self, writes: Vec<Put<Value>>) -> Result<Change, InvalidUpdate> {
        set_last(&mut self.value, writes, self.guard)
    }
    fn get(&self) -> Option<&Value> {
        self.value.as_ref()
    }
    fn checkpoint(&self) -> Option<Value> {
        None
    }
    fn from_checkpoint(&self, _: Option<Value>) -> Box<dyn Channel> {
        Box::new(Self { value: None, guard: self.guard })
    }
    fn copy(&self) -> Box<dyn Channel> {
        Box::new(self.clone())
    }
}

/// Collects values; a list is taken apart into its items.
///
/// ```
/// use serde_json::json;
/// use superstep::{Channel, Put, Topic};
///
/// let mut channel = Topic::new().accumulate().unique();
/// channel.update(vec![Put::merge(json!([1, 2])), Put::merge(json!(2))])?;
/// channel.update(vec![Put::merge(json!(3))])?;
/// assert_eq!(channel.get(), Some(&json!([1, 2, 3])));
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
#[derive(Debug, Clone)]
pub struct Topic {
    values: Value,
    accumulate: bool,
    unique: bool,
}

impl Default for Topic {
    fn default() -> Self {
        Self::new()
    }
}

impl Topic {
    /// A topic that forgets its values after a step.
    pub fn new() -> Self {
        Self { values: Value::Array(Vec::new()), accumulate: false, unique: false }
    }

    /// Keeps the values of all steps.
    pub fn accumulate(self) -> Self {
        Self { accumulate: true, ..self }
    }

    /// Keeps each value once.
    pub fn unique(self) -> Self {
        Self { unique: true, ..self }
    }

    fn list(&mut self) -> &mut Vec<Value> {
        self.values.as_array_mut().expect("a topic holds a list")
    }

    fn add(&mut self, value: Value) {
        if !(self.unique && self.list().contains(&value)) {
            self.list().push(value);
        }
    }
}

impl Channel for Topic {
    fn kind(&self) -> FieldKind {
        if self.accumulate { FieldKind::TopicAccumulate } else { FieldKind::Topic }
    }
    fn update(&mut self, writes: Vec<Put<Value>>) -> Result<Change, InvalidUpdate> {
        let before = self.list().len();
        if !self.accumulate {
            self.list().clear();
        }
        let kept = self.list().len();
        for put in writes {
            match plain(put) {
                Value::Array(items) => items.into_iter().for_each(|v| self.add(v)),
                value => self.add(value),
            }
        }
        Ok(match self.list().len() {
            now if now > kept => Change::Set,
            0 if before > 0 => Change::Cleared,
            _ => Change::None,
        })
    }
    fn get(&self) -> Option<&Value> {
        Some(&self.values).filter(|v| v.as_array().is_some_and(|list| !list.is_empty()))
    }
    fn checkpoint(&self) -> Option<Value> {
        self.get().cloned()
    }
    fn from_checkpoint(&self, saved: Option<Value>) -> Box<dyn Channel> {
        let values = saved.filter(Value::is_array).unwrap_or_else(|| Value::Array(Vec::new()));
        Box::new(Self { values, ..*self })
    }
    fn copy(&self) -> Box<dyn Channel> {
        Box::new(self.clone())
    }
}
