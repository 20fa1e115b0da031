//! Filters: how they are written, and which are refused. What each accepts is a matter of the suite.

use serde_json::{Value, json};
use superstep::{Clause, Comparison, FieldPath, Filter};

use super::Done;

#[track_caller]
fn check_refused(filter: &Value, message: &str) {
    assert_eq!(Filter::parse(filter).expect_err("the filter is wrong").to_string(), message);
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
fn a_path_is_also_a_list_of_keys() {
    let value = json!({ "v1.0": { "$ok": true }, r"back\slash": 1 });
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
