//! The first difference between two JSON values.
//!
//! 1 and 1.0 are the same number, true and 1 are not, and the order of keys does not count. Graphs that run at the same
//! time inside another are free to interleave: where `events` shows two namespaces neither of which lies in the other,
//! only what was shown counts, and the order of states in each namespace.

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
            if path.ends_with(".events") && shows_side_by_side(a) && same_but_interleaved(a, b) {
                return None;
            }
            (0..a.len().max(b.len())).find_map(|index| at(&format!("{path}[{index}]"), a.get(index), b.get(index)))
        }
        (Some(Value::Number(a)), Some(Value::Number(b))) if same_number(a, b) => None,
        (Some(a), Some(b)) if a == b => None,
        _ => Some(Difference { path: path.to_owned(), want, got }),
    }
}

/// Whether graphs beside each other are seen in these events.
fn shows_side_by_side(events: &[Value]) -> bool {
    let paths: Vec<&[Value]> =
        events.iter().filter_map(|event| Some(event.get("ns")?.as_array()?.as_slice())).collect();
    paths.iter().any(|a| paths.iter().any(|b| !a.starts_with(b) && !b.starts_with(a)))
}

/// The same events, and the states of each namespace in the same order.
fn same_but_interleaved(want: &[Value], got: &[Value]) -> bool {
    let mut left: Vec<&Value> = got.iter().collect();
    let found = want.iter().all(|event| {
        let place = left.iter().position(|other| first(event, other).is_none());
        place.map(|place| left.swap_remove(place)).is_some()
    });
    let same_states = |event: &Value| {
        let (want, got) = (states(want, event), states(got, event));
        want.len() == got.len() && want.iter().zip(got).all(|(a, b)| first(a, b).is_none())
    };
    found && left.is_empty() && want.iter().all(same_states)
}

/// The states among events, those of the namespace of `event`.
fn states<'a>(events: &'a [Value], event: &Value) -> Vec<&'a Value> {
    let is_state = |other: &&Value| other["mode"] == "values" || other["mode"] == "checkpoints";
    events.iter().filter(|other| other.get("ns") == event.get("ns")).filter(is_state).collect()
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

    /// Events of namespaces and modes, as `a:values` or `a/b:updates`, numbered by their second place.
    fn events(of: &[(&str, u8)]) -> Value {
        let event = |(what, number): &(&str, u8)| {
            let (namespace, mode) = what.split_once(':').unwrap_or((what, "updates"));
            let namespace: Vec<&str> = namespace.split('/').filter(|part| !part.is_empty()).collect();
            json!({"ns": namespace, "mode": mode, "data": number})
        };
        json!({"events": of.iter().map(event).collect::<Vec<_>>()})
    }

    #[test]
    fn graphs_side_by_side_may_interleave() {
        let want = events(&[("", 0), ("x", 1), ("y", 2), ("x", 3)]);
        check(&want, &events(&[("", 0), ("y", 2), ("x", 1), ("x", 3)]), "");
        check(&want, &events(&[("", 0), ("y", 2), ("x", 1), ("x", 4)]), "$.events[1].data");
        check(&want, &events(&[("", 0), ("x", 1), ("y", 2)]), "$.events[3]");
    }

    #[test]
    fn states_keep_their_order_in_each_namespace() {
        let want = events(&[("x:values", 1), ("y:values", 2), ("x:values", 3)]);
        check(&want, &events(&[("y:values", 2), ("x:values", 1), ("x:values", 3)]), "");
        check(&want, &events(&[("x:values", 3), ("y:values", 2), ("x:values", 1)]), "$.events[0].data");
    }

    #[test]
    fn a_graph_inside_another_does_not_interleave_with_it() {
        let want = events(&[("", 0), ("x", 1), ("x/z", 2)]);
        check(&want, &events(&[("x", 1), ("", 0), ("x/z", 2)]), "$.events[0].data");
    }
}
