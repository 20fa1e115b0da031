//! What the database itself can look for: parts that are equal to a string, a truth value or a whole number.
//!
//! Only these compare in `jsonb` exactly as they do here. What the database finds is filtered again, so it may find too
//! much, and must never find too little.

use serde_json::{Map, Value};
use superstep::{Clause, Comparison, Condition, Filter};

/// Up to here floats hold whole numbers exactly.
const EXACT: u64 = 1 << 53;

/// A value that contains all that the filter surely wants, or `None` if that is nothing.
pub(super) fn wanted(filter: &Filter) -> Option<String> {
    let mut wanted = Map::new();
    for clause in filter.clauses() {
        if let Clause::Condition(condition) = clause
            && can_be_found(condition)
        {
            add(&mut wanted, condition.path.keys(), &condition.value);
        }
    }
    (!wanted.is_empty()).then(|| Value::Object(wanted).to_string())
}

/// The value as `jsonb`, or `None` if that cannot hold it: it has no NUL character.
pub(super) fn of(value: &Value, text: &str) -> Option<String> {
    (!has_nul(value)).then(|| text.to_owned())
}

fn can_be_found(condition: &Condition) -> bool {
    let is_equality = matches!(condition.comparison, Comparison::Eq | Comparison::Matches);
    let is_exact = match &condition.value {
        Value::Bool(_) => true,
        Value::String(text) => !text.contains('\0'),
        Value::Number(number) => number.as_i64().is_some_and(|number| number.unsigned_abs() < EXACT),
        _ => false,
    };
    // A number may be the place of an element, and a list is no object.
    let is_key = |key: &String| !key.contains('\0') && !key.bytes().all(|byte| byte.is_ascii_digit());
    is_equality && is_exact && condition.path.keys().iter().all(is_key)
}

/// Adds a part, unless another is in its way: then there is nothing to be found, or it is found without.
fn add(object: &mut Map<String, Value>, keys: &[String], value: &Value) {
    match keys {
        [] => {}
        [key] => {
            object.entry(key.clone()).or_insert_with(|| value.clone());
        }
        [key, rest @ ..] => {
            let below = object.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                add(below, rest, value);
            }
        }
    }
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(elements) => elements.iter().any(has_nul),
        Value::Object(object) => object.iter().any(|(key, part)| key.contains('\0') || has_nul(part)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
