//! Filters.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{StoreMaker, find, plain, refusal};
use crate::conformance::Checked;
use crate::conformance::claims::same;
use crate::{Filter, SearchQuery, Store, StoreOp};

/// Searches items `0`, `1`, .. with these values.
async fn check(maker: &dyn StoreMaker, values: &[Value], cases: &[(Value, &str)]) -> Checked {
    let store = plain(maker).await;
    let put = |(key, value): (usize, &Value)| StoreOp::put(["n"], key.to_string(), value.clone());
    store.batch(values.iter().enumerate().map(put).collect()).await?;
    for (filter, wanted) in cases {
        let found = accepted(&store, filter).await?;
        same(&format!("items that pass {filter}"), found.as_str(), wanted)?;
    }
    Ok(())
}

async fn accepted(store: &Arc<dyn Store>, filter: &Value) -> Result<String, crate::conformance::Broken> {
    let query = SearchQuery::new(["n"]).filter(Filter::parse(filter)?).limit(100);
    Ok(find(store, query).await?.replace("n/", ""))
}

pub(super) async fn comparisons(maker: &dyn StoreMaker) -> Checked {
    let values = [
        json!({ "k": 1 }),
        json!({ "k": 1.0 }),
        json!({ "k": 2 }),
        json!({ "k": "1" }),
        json!({ "k": "b" }),
        json!({ "k": null }),
        json!({}),
        json!({ "k": true }),
        json!({ "k": [1, { "a": 1, "b": 2 }] }),
        json!({ "k": { "a": 1, "b": 2 } }),
        json!(1),
        json!({ "k": 9_007_199_254_740_993_u64 }),
        json!({ "k": { "a": 1 } }),
        json!({ "k": [{ "a": 1 }, 1, 2] }),
        json!({ "k": -1 }),
    ];
    let cases = [
        (json!({}), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14"),
        (json!({ "k": 1 }), "0 1"),
        (json!({ "k": "1" }), "3"),
        (json!({ "k": true }), "7"),
        (json!({ "k": null }), "5 6 10"),
        (json!({ "k": { "a": 1 } }), "9 12"),
        (json!({ "k": { "c": null } }), "9 12"),
        (json!({ "k": { "$eq": { "a": 1 } } }), "12"),
        (json!({ "k": { "$eq": { "b": 2, "a": 1.0 } } }), "9"),
        (json!({ "k": [1, { "a": 1 }] }), "8"),
        (json!({ "k": { "$ne": 1 } }), "2 3 4 5 6 7 8 9 10 11 12 13 14"),
        (json!({ "k": { "$gt": 1 } }), "2 11"),
        (json!({ "k": { "$gte": 1.5, "$lt": 3 } }), "2"),
        (json!({ "k": { "$lte": 1 } }), "0 1 14"),
        (json!({ "k": { "$lt": 1 } }), "14"),
        (json!({ "k": { "$gt": "1" } }), "4"),
        (json!({ "k": { "$gte": "1", "$lt": "b" } }), "3"),
        (json!({ "k": { "$gt": 9_007_199_254_740_992_u64 } }), "11"),
        (json!({ "k": { "$eq": 9_007_199_254_740_992_u64 } }), ""),
        (json!({ "k": { "$in": [2, "b", null] } }), "2 4 5 6 10"),
        (json!({ "k": { "$in": [1.0, [1]] } }), "0 1"),
        (json!({ "k": { "$in": [] } }), ""),
    ];
    check(maker, &values, &cases).await
}

pub(super) async fn joins(maker: &dyn StoreMaker) -> Checked {
    let values = [json!({ "a": 1, "b": 1 }), json!({ "a": 1, "b": 2 }), json!({ "a": 2, "b": 2 }), json!({})];
    let cases = [
        (json!({ "a": 1, "b": 2 }), "1"),
        (json!({ "$or": [{ "a": 2 }, { "b": 1 }] }), "0 2"),
        (json!({ "$and": [{ "a": 1 }, { "$not": { "b": 1 } }] }), "1"),
        (json!({ "$not": { "a": 1, "b": 1 } }), "1 2 3"),
        (json!({ "a": 1, "$or": [{ "b": 2 }, { "b": 3 }] }), "1"),
        (json!({ "$or": [] }), ""),
        (json!({ "$and": [] }), "0 1 2 3"),
        (json!({ "$not": {} }), ""),
        (json!({ "b": 2, "$or": [{ "a": { "$gt": 1 } }, { "$and": [{ "a": 1 }, { "$not": { "c": 1 } }] }] }), "1 2"),
    ];
    check(maker, &values, &cases).await
}

pub(super) async fn paths(maker: &dyn StoreMaker) -> Checked {
    let values = [
        json!({ "a": { "b": "x" } }),
        json!({ "a.b": "x" }),
        json!({ "a": ["y", "x"] }),
        json!({ "a": { "1": "x" } }),
        json!({ "a": { "b": { "c": "x" } } }),
        json!({ "$and": "x", "": "x", r"back\slash": "x" }),
        json!({ "a": { "01": { "$ok": "x" } } }),
    ];
    let cases = [
        (json!({ "a.b": "x" }), "0"),
        (json!({ r"a\.b": "x" }), "1"),
        (json!({ "a.1": "x" }), "2 3"),
        (json!({ "a.b.c": "x" }), "4"),
        (json!({ "a.b": { "c": "x" } }), "4"),
        (json!({ r"\$and": "x" }), "5"),
        (json!({ "": "x" }), "5"),
        (json!({ r"back\\slash": "x" }), "5"),
        (json!({ "a.01.$ok": "x" }), "6"),
    ];
    check(maker, &values, &cases).await
}

pub(super) async fn wrong_filters_are_refused(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let search = |filter| store.search(SearchQuery::new(["n"]).filter(filter));
    refusal("an order of lists", search(Filter::gt("k", vec![1])).await)?;
    refusal("it inside a join", search(Filter::any([Filter::lt("k", Value::Null)]).negated()).await)?;
    Ok(())
}

pub(super) async fn a_filter_comes_before_the_limit(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let put = |number: u32| StoreOp::put(["n"], number.to_string(), json!({ "odd": number % 2 == 1, "n": number }));
    store.batch((0..700).map(put).collect()).await?;
    let odd = || SearchQuery::new(["n"]).filter(Filter::eq("odd", true));
    same("odd ones", find(&store, odd().limit(3).offset(1)).await?, "n/3 n/5 n/7".to_owned())?;
    same("odd ones at the end", find(&store, odd().offset(348)).await?, "n/697 n/699".to_owned())?;
    let last = SearchQuery::new(["n"]).filter(Filter::gt("n", 698));
    same("the last one", find(&store, last).await?, "n/699".to_owned())
}
