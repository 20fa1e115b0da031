//! Filters: what each comparison accepts, and which filters are refused.

use serde_json::{Value, json};
use superstep::{Comparison, Filter};

use super::Done;

#[track_caller]
fn check(filter: &Value, accepted: &[Value], rejected: &[Value]) {
    let filter = Filter::parse(filter).expect("the filter is well formed");
    for value in accepted {
        assert!(filter.accepts(value), "{filter:?} rejects {value}");
    }
    for value in rejected {
        assert!(!filter.accepts(value), "{filter:?} accepts {value}");
    }
}

#[track_caller]
fn check_refused(filter: &Value, message: &str) {
    assert_eq!(Filter::parse(filter).expect_err("the filter is wrong").to_string(), message);
}

#[test]
fn a_plain_value_is_compared_for_equality() {
    check(&json!({ "k": 1 }), &[json!({ "k": 1, "x": 2 }), json!({ "k": 1.0 })], &[json!({ "k": 2 }), json!({})]);
    check(&json!({ "k": "a" }), &[json!({ "k": "a" })], &[json!({ "k": "A" }), json!("a"), json!(["a"])]);
}

#[test]
fn a_nested_object_matches_as_a_subset() {
    let filter = json!({ "k": { "a": { "b": 1 } } });
    let accepted = [json!({ "k": { "a": { "b": 1, "c": 2 }, "d": 3 } })];
    check(&filter, &accepted, &[json!({ "k": { "a": { "c": 2 } } }), json!({ "k": { "a": 1 } }), json!({ "k": 1 })]);
}

#[test]
fn lists_match_by_length_and_element() {
    let accepted = [json!({ "k": [{ "a": 1, "b": 2 }, 3] })];
    let rejected = [json!({ "k": [{ "a": 1 }] }), json!({ "k": [3, { "a": 1 }] }), json!({ "k": [{ "a": 1 }, 3, 4] })];
    check(&json!({ "k": [{ "a": 1 }, 3] }), &accepted, &rejected);
}

#[test]
fn eq_wants_the_whole_value() {
    let filter = json!({ "k": { "$eq": { "a": [1] } } });
    let rejected = [
        json!({ "k": { "a": [1], "b": 2 } }),
        json!({ "k": { "a": [1, 2] } }),
        json!({ "k": { "b": [1] } }),
        json!({ "k": {} }),
    ];
    check(&filter, &[json!({ "k": { "a": [1.0] } })], &rejected);
}

#[test]
fn ne_is_the_opposite_of_eq() {
    let accepted = [json!({ "k": 2 }), json!({ "k": "1" }), json!({})];
    check(&json!({ "k": { "$ne": 1 } }), &accepted, &[json!({ "k": 1 }), json!({ "k": 1.0 })]);
}

#[test]
fn ordering_operators_compare_numbers() {
    let [one, two, three] = [json!({ "k": 1 }), json!({ "k": 2.0 }), json!({ "k": 3 })];
    let below = std::slice::from_ref(&one);
    let above = std::slice::from_ref(&three);
    check(&json!({ "k": { "$gt": 2 } }), above, &[one.clone(), two.clone()]);
    check(&json!({ "k": { "$gte": 2 } }), &[two.clone(), three.clone()], below);
    check(&json!({ "k": { "$lt": 2 } }), below, &[two.clone(), three.clone()]);
    check(&json!({ "k": { "$lte": 2 } }), &[one.clone(), two.clone()], above);
}

#[test]
fn large_integers_compare_exactly() {
    let filter = json!({ "k": { "$gt": 9_007_199_254_740_992_u64 } });
    let accepted = [json!({ "k": 9_007_199_254_740_993_u64 }), json!({ "k": u64::MAX })];
    check(&filter, &accepted, &[json!({ "k": 9_007_199_254_740_992_u64 }), json!({ "k": -1 })]);
}

#[test]
fn ordering_operators_compare_strings_with_strings_only() {
    let filter = json!({ "k": { "$gte": "b" } });
    check(&filter, &[json!({ "k": "b" }), json!({ "k": "c" })], &[json!({ "k": "a" }), json!({ "k": 9 }), json!({})]);
    check(&json!({ "k": { "$lt": 2 } }), &[], &[json!({ "k": "1" }), json!({ "k": null })]);
}

#[test]
fn a_missing_key_counts_as_null() {
    check(&json!({ "k": null }), &[json!({}), json!({ "k": null }), json!(7)], &[json!({ "k": 0 })]);
    check(&json!({ "k": { "a": null } }), &[json!({ "k": {} })], &[json!({})]);
}

#[test]
fn all_keys_and_operators_must_hold() {
    let filter = json!({ "k": { "$gt": 1, "$lt": 5 }, "on": true });
    let rejected = [json!({ "k": 5, "on": true }), json!({ "k": 1, "on": true }), json!({ "k": 3, "on": false })];
    check(&filter, &[json!({ "k": 3, "on": true })], &rejected);
    check(&json!({}), &[json!({ "k": 1 }), json!(null)], &[]);
}

#[test]
fn builders_and_json_make_the_same_filter() -> Done {
    let built = Filter::matching("a", json!({ "x": 1 })).and(Filter::eq("b", 1)).and(Filter::ne("c", 1));
    let built = built.and(Filter::gt("d", 1)).and(Filter::gte("e", 1)).and(Filter::lt("f", 1)).and(Filter::lte("g", 1));
    let parsed = Filter::parse(&json!({
        "a": { "x": 1 }, "b": { "$eq": 1 }, "c": { "$ne": 1 }, "d": { "$gt": 1 },
        "e": { "$gte": 1 }, "f": { "$lt": 1 }, "g": { "$lte": 1 },
    }))?;
    assert_eq!(built, parsed);
    assert_eq!(built.conditions()[4].comparison, Comparison::Gte);
    Ok(())
}

#[test]
fn unknown_operators_are_refused() {
    let ways_out = "use `$eq`, `$ne`, `$gt`, `$gte`, `$lt` or `$lte`";
    check_refused(&json!({ "k": { "$in": [1] } }), &format!("unknown operator `$in` for key `k`; {ways_out}"));
    let mixed = json!({ "k": { "$gt": 1, "name": 2 } });
    check_refused(&mixed, &format!("unknown operator `name` for key `k`; {ways_out}"));
}

#[test]
fn operators_below_the_top_level_are_refused() {
    let message = "operator `$gt` is nested inside the value of key `k`; operators apply to top-level keys only";
    check_refused(&json!({ "k": { "a": { "$gt": 1 } } }), message);
    check_refused(&json!({ "k": [{ "a": [{ "$gt": 1 }] }] }), message);
    check_refused(&json!({ "k": { "$eq": { "$gt": 1 } } }), message);
}

#[test]
fn ordering_operators_need_a_number_or_a_string() {
    for operator in ["$gt", "$gte", "$lt", "$lte"] {
        let message = format!("operator `{operator}` for key `k` needs a number or a string, not `null`");
        check_refused(&json!({ "k": { operator: null } }), &message);
    }
}

#[test]
fn a_filter_that_is_no_object_is_refused() {
    let message = r#"filter `["k"]` is not an object; write `{"key": value}` or `{"key": {"$gt": value}}`"#;
    check_refused(&json!(["k"]), message);
}
