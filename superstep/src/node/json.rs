//! What nodes over a dynamic state read.

use serde_json::{Map, Value, json};

use super::FromInput;
use crate::call::Call;
use crate::error::BoxError;
use crate::json::JsonState;
use crate::state::{FieldKind, Given};

/// What a node over a [`JsonState`] reads: its fields as an object, or the payload it was sent.
///
/// ```
/// use superstep::JsonInput;
/// let input = JsonInput(serde_json::json!({ "topic": "tea" }));
/// assert_eq!(input["topic"], "tea");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JsonInput(pub Value);

impl std::ops::Deref for JsonInput {
    type Target = Value;
    fn deref(&self) -> &Value {
        &self.0
    }
}

impl FromInput<JsonState> for JsonInput {
    fn from_input(call: &Call<'_>) -> Result<Self, BoxError> {
        Ok(JsonInput(match call.input {
            Given::Sent(payload) => payload.to_json()?,
            Given::State(state) => json_object(call, state.get()),
        }))
    }
}

/// The fields that a node reads as an object, computed values included.
fn json_object(call: &Call<'_>, state: &JsonState) -> Value {
    let mut map = Map::new();
    for (ix, spec) in call.ty.fields().iter().enumerate() {
        if call.reads.is_some_and(|list| !list.contains(&ix)) {
            continue;
        }
        let value = match spec.kind {
            FieldKind::IsLastStep => Some(json!(call.step == call.stop - 1)),
            FieldKind::RemainingSteps => Some(json!(call.stop - call.step)),
            _ => state.at(ix).cloned(),
        };
        map.extend(value.map(|v| (spec.name().to_owned(), v)));
    }
    Value::Object(map)
}
