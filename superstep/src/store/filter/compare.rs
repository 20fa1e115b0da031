//! How two JSON values compare: the same on every store, because no store but this code compares.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Whether `found` is like `wanted`: an object needs only the keys of `wanted`, a list as many elements, each alike.
pub(super) fn is_like(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| is_like(found.get(key).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(found), Value::Array(wanted)) => all_pairs(found, wanted, is_like),
        _ => is_equal(found, wanted),
    }
}

/// Whether both are the same value; 1 and 1.0 are.
pub(super) fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => all_pairs(left, right, is_equal),
        (Value::Object(left), Value::Object(right)) => {
            let has = |(key, value)| right.get(key).is_some_and(|other| is_equal(value, other));
            left.len() == right.len() && left.iter().all(has)
        }
        _ => left == right,
    }
}

/// The order of two numbers or two strings; other pairs have none.
pub(super) fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn all_pairs(left: &[Value], right: &[Value], test: fn(&Value, &Value) -> bool) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| test(left, right))
}

/// Integers compare exactly; a float makes both floats.
fn compare_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}
