//! Channels that wait: for named writers, or for the rest of the graph.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Channel;
use crate::error::InvalidUpdate;
use crate::state::{Change, FieldKind, Put};

const READY: &Value = &Value::Null;

/// Has a value once all its names were written; its readers empty it.
///
/// ```
/// use serde_json::json;
/// use superstep::{Channel, NamedBarrierValue, Put};
///
/// let mut channel = NamedBarrierValue::new(["a", "b"]);
/// channel.update(vec![Put::merge(json!("a"))])?;
/// assert!(channel.get().is_none());
/// channel.update(vec![Put::merge(json!("b"))])?;
/// assert!(channel.get().is_some());
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
#[derive(Debug, Clone)]
pub struct NamedBarrierValue {
    names: BTreeSet<String>,
    seen: BTreeSet<String>,
}

impl NamedBarrierValue {
    /// A barrier that waits for these names.
    pub fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), seen: BTreeSet::new() }
    }

    fn is_full(&self) -> bool {
        self.seen == self.names
    }

    fn add(&mut self, writes: Vec<Put<Value>>) -> Result<bool, InvalidUpdate> {
        let mut new = false;
        for put in writes {
            let Some(name) = put.write.as_str().filter(|n| self.names.contains(*n)) else {
                return Err(InvalidUpdate::new("", format!("`{}` is not one of the names it waits for", put.write)));
            };
            new |= self.seen.insert(name.to_owned());
        }
        Ok(new)
    }

    fn restored(&self, saved: Option<&Value>) -> Self {
        let seen = saved
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        Self { names: self.names.clone(), seen }
    }
}

impl Channel for NamedBarrierValue {
    fn kind(&self) -> FieldKind {
        FieldKind::Custom
    }
    fn update(&mut self, writes: Vec<Put<Value>>) -> Result<Change, InvalidUpdate> {
        Ok(if self.add(writes)? { Change::Set } else { Change::None })
    }
    fn get(&self) -> Option<&Value> {
        self.is_full().then_some(READY)
    }
    fn consume(&mut self) -> Change {
        if !self.is_full() {
            return Change::None;
        }
        self.seen.clear();
        Change::Cleared
    }
    fn checkpoint(&self) -> Option<Value> {
        Some(json!(self.seen))
    }
    fn from_checkpoint(&self, saved: Option<Value>) -> Box<dyn Channel> {
        Box::new(self.restored(saved.as_ref()))
    }
    fn copy(&self) -> Box<dyn Channel> {
        Box::new(self.clone())
    }
}

/// A [`NamedBarrierValue`] that opens only when nothing else is left to run.
///
/// ```
/// use serde_json::json;
/// use superstep::{Channel, NamedBarrierValueAfterFinish, Put};
///
/// let mut channel = NamedBarrierValueAfterFinish::new(["a"]);
/// channel.update(vec![Put::merge(json!("a"))])?;
/// assert!(channel.get().is_none());
/// channel.finish();
/// assert!(channel.get().is_some());
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
#[derive(Debug, Clone)]
pub struct NamedBarrierValueAfterFinish {
    barrier: NamedBarrierValue,
    finished: bool,
}

impl NamedBarrierValueAfterFinish {
    /// A barrier that waits for these names, and then for the rest of the graph.
    pub fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { barrier: NamedBarrierValue::new(names), finished: false }
    }
}

impl Channel for NamedBarrierValueAfterFinish {
    fn kind(&self) -> FieldKind {
        FieldKind::Custom
    }
    fn update(&mut self, writes: Vec<Put<Value>>) -> Result<Change, InvalidUpdate> {
        self.barrier.update(writes)
    }
    fn get(&self) -> Option<&Value> {
        self.finished.then(|| self.barrier.get()).flatten()
    }
    fn consume(&mut self) -> Change {
        if !self.finished {
            return Change::None;
        }
        self.finished = false;
        self.barrier.consume()
    }
    fn finish(&mut self) -> Change {
        if self.finished || !self.barrier.is_full() {
            return Change::None;
        }
        self.finished = true;
        Change::Set
    }
    fn checkpoint(&self) -> Option<Value> {
        Some(json!([self.barrier.seen, self.finished]))
    }
    fn from_checkpoint(&self, saved: Option<Value>) -> Box<dyn Channel> {
        let saved = saved.unwrap_or_default();
        Box::new(Self {
            barrier: self.barrier.restored(saved.get(0)),
            finished: saved.get(1) == Some(&Value::Bool(true)),
        })
    }
    fn copy(&self) -> Box<dyn Channel> {
        Box::new(self.clone())
    }
}

/// Keeps the last value, readable only when nothing else is left to run.
///
/// ```
/// use serde_json::json;
/// use superstep::{Channel, LastValueAfterFinish, Put};
///
/// let mut channel = LastValueAfterFinish::default();
/// channel.update(vec![Put::merge(json!(1))])?;
/// assert!(channel.get().is_none());
/// channel.finish();
/// assert_eq!(channel.get(), Some(&json!(1)));
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct LastValueAfterFinish {
    value: Option<Value>,
    finished: bool,
}

impl Channel for LastValueAfterFinish {
    fn kind(&self) -> FieldKind {
        FieldKind::Custom
    }
    fn update(&mut self, writes: Vec<Put<Value>>) -> Result<Change, InvalidUpdate> {
        let Some(last) = writes.into_iter().last() else { return Ok(Change::None) };
        self.value = Some(last.write);
        self.finished = false;
        Ok(Change::Set)
    }
    fn get(&self) -> Option<&Value> {
        self.value.as_ref().filter(|_| self.finished)
    }
    fn consume(&mut self) -> Change {
        if !self.finished {
            return Change::None;
        }
        *self = Self::default();
        Change::Cleared
    }
    fn finish(&mut self) -> Change {
        if self.finished || self.value.is_none() {
            return Change::None;
        }
        self.finished = true;
        Change::Set
    }
    fn checkpoint(&self) -> Option<Value> {
        self.value.as_ref().map(|v| json!([v, self.finished]))
    }
    fn from_checkpoint(&self, saved: Option<Value>) -> Box<dyn Channel> {
        let saved = saved.unwrap_or_default();
        Box::new(Self { value: saved.get(0).cloned(), finished: saved.get(1) == Some(&Value::Bool(true)) })
    }
    fn copy(&self) -> Box<dyn Channel> {
        Box::new(self.clone())
    }
}
