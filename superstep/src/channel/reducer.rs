//! How fields of JSON merge.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::message::{MessageIndex, kind_of, merge_messages, normal_message};

/// How a dynamic field merges.
///
/// ```
/// use serde_json::json;
/// use superstep::JsonReducer;
///
/// let mut value = json!({ "a": 1 });
/// JsonReducer::Merge.merge(&mut value, json!({ "b": 2 }))?;
/// assert_eq!(value, json!({ "a": 1, "b": 2 }));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum JsonReducer {
    /// Adds numbers, joins strings, appends lists.
    Add,
    /// The union of two objects; the update's keys win.
    Merge,
    /// The greater of two values.
    Max,
    /// Chat messages by id.
    Messages,
    /// Any function; its error says why the value cannot be merged.
    Custom(Arc<dyn Fn(&mut Value, Value) -> Result<(), String> + Send + Sync>),
}

impl fmt::Debug for JsonReducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonReducer::Add => "Add",
            JsonReducer::Merge => "Merge",
            JsonReducer::Max => "Max",
            JsonReducer::Messages => "Messages",
            JsonReducer::Custom(_) => "Custom",
        })
    }
}

impl JsonReducer {
    /// Merges `update` into `current`.
    ///
    /// # Errors
    /// If the two do not go together.
    pub fn merge(&self, current: &mut Value, update: Value) -> Result<(), String> {
        match self {
            JsonReducer::Add => add(current, update),
            JsonReducer::Merge => merge_objects(current, update),
            JsonReducer::Max => keep_greater(current, update),
            JsonReducer::Messages => merge_json_messages(current, update),
            JsonReducer::Custom(f) => f(current, update),
        }
    }
}

fn add(current: &mut Value, update: Value) -> Result<(), String> {
    match (current, update) {
        (Value::Array(list), Value::Array(more)) => list.extend(more),
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (current @ (Value::Number(_) | Value::Bool(_)), update @ (Value::Number(_) | Value::Bool(_))) => {
            *current = add_numbers(current, &update)
                .ok_or_else(|| format!("the sum of {current} and {update} is out of range"))?;
        }
        (current, update) => return Err(format!("cannot add {} to {}", kind_of(&update), kind_of(current))),
    }
    Ok(())
}

fn add_numbers(a: &Value, b: &Value) -> Option<Value> {
    let number = |v: &Value| v.as_i64().map(i128::from).or_else(|| v.as_u64().map(i128::from));
    let whole = |v: &Value| v.as_bool().map(i128::from).or_else(|| number(v));
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => {
            i64::try_from(a + b).map(Value::from).or_else(|_| u64::try_from(a + b).map(Value::from)).ok()
        }
        _ => serde_json::Number::from_f64(a.as_f64()? + b.as_f64()?).map(Value::Number),
    }
}

fn merge_objects(current: &mut Value, update: Value) -> Result<(), String> {
    match (current, update) {
        (Value::Object(map), Value::Object(more)) => map.extend(more),
        (current, update) => return Err(format!("cannot merge {} into {}", kind_of(&update), kind_of(current))),
    }
    Ok(())
}

fn keep_greater(current: &mut Value, update: Value) -> Result<(), String> {
    let greater = match (&*current, &update) {
        (Value::Number(a), Value::Number(b)) => b.as_f64() > a.as_f64(),
        (Value::String(a), Value::String(b)) => b > a,
        (a, b) => return Err(format!("cannot compare {} with {}", kind_of(a), kind_of(b))),
    };
    if greater {
        *current = update;
    }
    Ok(())
}

fn merge_json_messages(current: &mut Value, update: Value) -> Result<(), String> {
    let update = match update {
        Value::Array(list) => list,
        one => vec![one],
    };
    let update = update.into_iter().map(normal_message).collect::<Result<Vec<_>, _>>()?;
    let Value::Array(list) = current else { return Err("messages must be a list".to_owned()) };
    merge_messages("messages", list, update, &mut MessageIndex::default()).map_err(|e| e.why)
}
