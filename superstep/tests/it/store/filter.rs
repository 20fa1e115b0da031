//! Filters: what each comparison accepts, and which filters are refused.

use serde_json::{Value, json};
use superstep::{Clause, Comparison, FieldPath, Filter};

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
    let Clause::Condition(condition) = &built.clauses()[4] else { panic!("it is a condition") };
    assert_eq!(condition.comparison, Comparison::Gte);
    Ok(())
}

#[test]
fn joins_and_their_builders_make_the_same_filter() -> Done {
    let (a, b, c) = (|| Filter::eq("a", 1), || Filter::eq("b", 1), || Filter::one_of("c", [1, 2]));
    let eq = |key: &str| json!({ key: { "$eq": 1 } });
    let either = Filter::parse(&json!({ "$or": [eq("a"), { "c": { "$in": [1, 2] } }] }))?;
    assert_eq!(either, a().or(c()));
    assert_eq!(either, Filter::any([a(), c()]));
    assert_eq!(Filter::parse(&json!({ "$and": [eq("a"), eq("b")] }))?, a().and(b()));
    assert_eq!(Filter::parse(&json!({ "$not": eq("a") }))?, a().negated());
    Ok(())
}

#[test]
fn joins_nest_and_hold_together_with_keys() {
    let filter = json!({
        "kind": "note",
        "$or": [{ "stars": { "$gt": 3 } }, { "$and": [{ "pinned": true }, { "$not": { "done": true } }] }],
    });
    let accepted = [json!({ "kind": "note", "stars": 4 }), json!({ "kind": "note", "pinned": true })];
    let rejected = [
        json!({ "kind": "task", "stars": 4 }),
        json!({ "kind": "note", "stars": 3 }),
        json!({ "kind": "note", "pinned": true, "done": true }),
    ];
    check(&filter, &accepted, &rejected);
}

#[test]
fn nothing_joined_by_or_accepts_nothing_and_by_and_everything() {
    check(&json!({ "$or": [] }), &[], &[json!({}), json!(1)]);
    check(&json!({ "$and": [] }), &[json!({}), json!(1)], &[]);
    check(&json!({ "$not": {} }), &[], &[json!({})]);
}

#[test]
fn in_compares_with_each_element() {
    let filter = json!({ "k": { "$in": [1, "a", null, [2]] } });
    let accepted = [json!({ "k": 1.0 }), json!({ "k": "a" }), json!({}), json!({ "k": [2] })];
    check(&filter, &accepted, &[json!({ "k": 2 }), json!({ "k": [1] }), json!({ "k": "b" })]);
    check(&json!({ "k": { "$in": [] } }), &[], &[json!({}), json!({ "k": [] })]);
}

#[test]
fn a_path_leads_into_objects_and_lists() {
    let accepted = [json!({ "user": { "tags": ["x", { "n": 5 }] } })];
    let rejected = [json!({ "user": { "tags": [{ "n": 5 }] } }), json!({ "user": 5 }), json!({ "user.tags.1.n": 5 })];
    check(&json!({ "user.tags.1.n": { "$gte": 5 } }), &accepted, &rejected);
    check(&json!({ "a.01": 1 }), &[json!({ "a": { "01": 1 } })], &[json!({ "a": [0, 1] })]);
}

#[test]
fn a_key_that_holds_a_dot_or_a_dollar_is_escaped_or_listed() {
    let value = json!({ "v1.0": { "$ok": true }, r"back\slash": 1, "": 2 });
    check(&json!({ r"v1\.0.$ok": true }), std::slice::from_ref(&value), &[json!({ "v1": { "0": { "$ok": true } } })]);
    check(&json!({ r"\$and": 1 }), &[json!({ "$and": 1 })], &[json!({})]);
    check(&json!({ r"back\\slash": 1, "": 2 }), std::slice::from_ref(&value), &[]);
    assert!(Filter::eq(["v1.0", "$ok"], true).accepts(&value));
    assert!(Filter::eq(vec![r"back\slash".to_owned()], 1).accepts(&value));
}

#[test]
fn a_path_as_text_gives_the_same_path_again() {
    for keys in [vec!["a.b", r"c\", ""], vec![""], vec!["*", "0"], vec![r"\.", "ü"]] {
        let path = FieldPath::from(keys.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(FieldPath::from(path.to_string()), path, "{path}");
        assert_eq!(path.keys(), keys);
    }
}

#[test]
fn unknown_operators_are_refused() {
    let ways_out = "use `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` or `$in`";
    check_refused(&json!({ "k": { "$nin": [1] } }), &format!("unknown operator `$nin` for key `k`; {ways_out}"));
    let mixed = json!({ "k": { "$gt": 1, "name": 2 } });
    check_refused(&mixed, &format!("unknown operator `name` for key `k`; {ways_out}"));
    let message = r"unknown operator `$nor`; join filters with `$and`, `$or` or `$not`, or write `\$nor` for a key";
    check_refused(&json!({ "$nor": [] }), message);
    check_refused(&json!({ "$or": [{ "$not": { "$nor": [] } }] }), message);
}

#[test]
fn joins_and_in_need_lists() {
    check_refused(&json!({ "$or": { "k": 1 } }), r#"operator `$or` needs a list of filters, not `{"k":1}`"#);
    check_refused(&json!({ "$and": 1 }), "operator `$and` needs a list of filters, not `1`");
    check_refused(&json!({ "k": { "$in": 1 } }), "operator `$in` for key `k` needs a list of values, not `1`");
    let inside = json!({ "$not": { "$or": [{ "k": { "$gt": null } }] } });
    check_refused(&inside, "operator `$gt` for key `k` needs a number or a string, not `null`");
}

#[test]
fn operators_inside_a_value_are_refused() {
    let message = "operator `$gt` is nested inside the value of key `k`; name the part by its path, as in `k.part`";
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
