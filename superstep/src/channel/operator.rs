//! Channels that merge through an operator.

use serde_json::Value;

use super::{Channel, JsonReducer};
use crate::error::InvalidUpdate;
use crate::state::{Change, FieldKind, ONE_OVERWRITE, Put};

/// Folds every write into the value.
///
/// ```
/// use serde_json::json;
/// use superstep::{BinaryOperatorAggregate, Channel, JsonReducer, Put};
///
/// let mut channel = BinaryOperatorAggregate::new(JsonReducer::Add, Some(json!(0)));
/// channel.update(vec![Put::merge(json!(2)), Put::merge(json!(3))])?;
/// assert_eq!(channel.get(), Some(&json!(5)));
/// channel.update(vec![Put::overwrite(json!(1))])?;
/// assert_eq!(channel.get(), Some(&json!(1)));
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
#[derive(Debug, Clone)]
pub struct BinaryOperatorAggregate {
    value: Option<Value>,
    initial: Option<Value>,
    operator: JsonReducer,
}

impl BinaryOperatorAggregate {
    /// A channel that starts at `initial`; without one, the first write is the value.
    pub fn new(operator: JsonReducer, initial: Option<Value>) -> Self {
        Self { value: initial.clone(), initial, operator }
    }

    fn fold(&mut self, writes: impl Iterator<Item = Put<Value>>) -> Result<(), InvalidUpdate> {
        let mut overwritten = false;
        for put in writes {
            match overwrite_of(put) {
                Ok(_) if overwritten => return Err(InvalidUpdate::new("", ONE_OVERWRITE)),
                Ok(value) => {
                    self.value = Some(value);
                    overwritten = true;
                }
                Err(_) if overwritten => {}
                Err(value) => match &mut self.value {
                    Some(current) => {
                        self.operator.merge(current, value).map_err(|why| InvalidUpdate::refused("", why))?;
                    }
                    none => *none = Some(value),
                },
            }
        }
        Ok(())
    }
}

/// An overwrite's value, marked by the put or by the JSON form `{"__overwrite__": value}`.
fn overwrite_of(put: Put<Value>) -> Result<Value, Value> {
    if put.overwrite {
        return Ok(put.write);
    }
    match put.write {
        Value::Object(mut map) if map.len() == 1 && map.contains_key("__overwrite__") => {
            Ok(map.remove("__overwrite__").expect("the guard saw the key"))
        }
        Value::Object(mut map)
            if map.len() == 2
                && map.get("type").and_then(Value::as_str) == Some("__overwrite__")
                && map.contains_key("value") =>
        {
            Ok(map.remove("value").expect("the guard saw the key"))
        }
        value => Err(value),
    }
}

impl Channel for BinaryOperatorAggregate {
    fn kind(&self) -> FieldKind {
        match (&self.initial, &self.operator) {
            (None, _) => FieldKind::ReducerWithoutInitial,
            (_, JsonReducer::Messages) => FieldKind::Messages,
            (_, JsonReducer::Add) => FieldKind::Append,
            _ => FieldKind::Reducer,
        }
    }
    fn update(&mut self, writes: Vec<Put<Value>>) -> Result<Change, InvalidUpdate> {
        if writes.is_empty() {
            return Ok(Change::None);
        }
        let mut writes = writes.into_iter();
        if self.value.is_none() {
            // The first value of a channel without an initial one is taken as it is.
            self.value = writes
                .next()
                .map(|put| if put.overwrite { serde_json::json!({ "__overwrite__": put.write }) } else { put.write });
        }
        self.fold(writes)?;
        Ok(Change::Set)
    }
    fn get(&self) -> Option<&Value> {
        self.value.as_ref()
    }
    fn checkpoint(&self) -> Option<Value> {
        self.value.clone()
    }
    fn from_checkpoint(&self, saved: Option<Value>) -> Box<dyn Channel> {
        Box::new(Self { value: saved.or_else(|| self.initial.clone()), ..self.clone() })
    }
    fn copy(&self) -> Box<dyn Channel> {
        Box::new(self.clone())
    }
}

/// A list to which every write appends its items; there from the start.
///
/// Checkpoints keep the writes since the last whole value instead of the list.
///
/// ```
/// use serde_json::json;
/// use superstep::{Channel, DeltaChannel, Put};
///
/// let mut channel = DeltaChannel::default();
/// channel.update(vec![Put::merge(json!([1])), Put::merge(json!([2, 3]))])?;
/// assert_eq!(channel.get(), Some(&json!([1, 2, 3])));
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
#[derive(Debug, Clone)]
pub struct DeltaChannel(Value);

impl Default for DeltaChannel {
    fn default() -> Self {
        Self(Value::Array(Vec::new()))
    }
}

impl Channel for DeltaChannel {
    fn kind(&self) -> FieldKind {
        FieldKind::Delta
    }
    fn update(&mut self, writes: Vec<Put<Value>>) -> Result<Change, InvalidUpdate> {
        if writes.is_empty() {
            return Ok(Change::None);
        }
        let mut plain = Vec::with_capacity(writes.len());
        let mut overwrite = None;
        for put in writes {
            match overwrite_of(put) {
                Ok(_) if overwrite.is_some() => return Err(InvalidUpdate::new("", ONE_OVERWRITE)),
                Ok(value) => overwrite = Some(if value.is_null() { Value::Array(Vec::new()) } else { value }),
                Err(value) => plain.push(value),
            }
        }
        if let Some(value) = overwrite {
            self.0 = value;
            return Ok(Change::Set);
        }
        for value in plain {
            JsonReducer::Add.merge(&mut self.0, value).map_err(|why| InvalidUpdate::refused("", why))?;
        }
        Ok(Change::Set)
    }
    fn get(&self) -> Option<&Value> {
        Some(&self.0)
    }
    fn checkpoint(&self) -> Option<Value> {
        Some(self.0.clone())
    }
    fn from_checkpoint(&self, saved: Option<Value>) -> Box<dyn Channel> {
        Box::new(saved.map_or_else(Self::default, Self))
    }
    fn copy(&self) -> Box<dyn Channel> {
        Box::new(self.clone())
    }
}
