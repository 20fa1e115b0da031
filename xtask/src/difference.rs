//! The first difference between two JSON values.
//!
//! 1 and 1.0 are the same number, true and 1 are not, and the order of keys does not count.

use serde_json::{Number, Value};
use std::collections::BTreeSet;

/// A place where two values differ; a side is `None` where it has nothing.
#[derive(Debug, PartialEq)]
pub(crate) struct Difference<'a> {
    pub(crate) path: String,
    pub(crate) want: Option<&'a Value>,
    pub(crate) got: Option<&'a Value>,
}

/// The first difference, in key order; none if the values are equal.
pub(crate) fn first<'a>(want: &'a Value, got: &'a Value) -> Option<Difference<'a>> {
    at("$", Some(want), Some(got))
}

fn at<'a>(path: &str, want: Option<&'a Value>, got: Option<&'a Value>) -> Option<Difference<'a>> {
    match (want, got) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            keys.into_iter().find_map(|key| at(&format!("{path}.{key}"), a.get(key), b.get(key)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            (0..a.len().max(b.len())).find_map(|index| at(&format!("{path}[{index}]"), a.get(index), b.get(index)))
        }
        (Some(Value::Number(a)), Some(Value::Number(b))) if same_number(a, b) => None,
        (Some(a), Some(b)) if a == b => None,
        _ => Some(Difference { path: path.to_owned(), want, got }),
    }
}

fn same_number(a: &Number, b: &Number) -> bool {
    if a == b {
        return true;
    }
    if !a.is_f64() && !b.is_f64() {
        return false;
    }
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-12 * a.abs().max(b.abs()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::first;
    use serde_json::{Value, json};

    /// The path of the first difference, empty if there is none.
    #[track_caller]
    fn check(want: &Value, got: &Value, path: &str) {
        assert_eq!(first(want, got).map(|d| d.path).unwrap_or_default(), path);
    }

    #[test]
    fn a_whole_float_is_the_integer() {
        check(&json!([1, 2.0]), &json!([1.0, 2]), "");
    }

    #[test]
    fn a_float_may_differ_in_its_last_bits() {
        check(&json!(0.3), &json!(0.1 + 0.2), "");
        check(&json!(0.3), &json!(0.300_000_1), "$");
    }

    #[test]
    fn large_integers_are_compared_exactly() {
        check(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992_u64), "$");
    }

    #[test]
    fn true_is_not_one() {
        check(&json!(true), &json!(1), "$");
    }

    #[test]
    fn keys_are_looked_at_in_order() {
        check(&json!({"b": 1, "a": {"x": 1}}), &json!({"a": {"x": 2}, "b": 2}), "$.a.x");
    }

    #[test]
    fn an_absent_key_or_item_is_a_difference() {
        check(&json!({"a": null}), &json!({}), "$.a");
        check(&json!([1]), &json!([1, 2]), "$[1]");
        check(&json!({"steps": [{}]}), &json!({"steps": []}), "$.steps[0]");
    }
}
