//! What nodes over a dynamic state read.

use serde_json::{Map, Value, json};

use super::{Call, FromInput, Given};
use crate::error::BoxError;
use crate::json::JsonState;
use crate::plan::Plan;
use crate::state::FieldKind;

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
            Given::State(state) => json_object(
                call.plan,
                state.get(),
                call.plan.nodes[call.node].reads.as_deref(),
                Some((call.step, call.stop)),
            ),
        }))
    }
}

/// The fields that a node reads as an object, computed values included.
fn json_object(plan: &Plan, state: &JsonState, reads: Option<&[usize]>, steps: Option<(i64, i64)>) -> Value {
    let mut map = Map::new();
    for (ix, spec) in plan.fields().iter().enumerate() {
        if reads.is_some_and(|list| !list.contains(&ix)) || (reads.is_none() && plan.private.contains(&ix)) {
            continue;
        }
        let value = match (spec.kind, steps) {
            (FieldKind::IsLastStep, Some((step, stop))) => Some(json!(step == stop - 1)),
            (FieldKind::RemainingSteps, Some((step, stop))) => Some(json!(stop - step)),
            _ => state.at(ix).cloned(),
        };
        map.extend(value.map(|v| (spec.name().to_owned(), v)));
    }
    Value::Object(map)
}
