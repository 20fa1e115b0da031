//! What no store keeps: refused by name, the same everywhere.

use serde_json::{Value, json};
use superstep::{Filter, MemoryStore, SearchQuery, Store, StoreOp};

use super::{Done, refused};

#[tokio::test]
async fn a_nul_in_a_key_is_refused() {
    let expected = r"key `a\0b` holds a NUL character; remove it";
    assert_eq!(refused(StoreOp::put(["n"], "a\0b", json!(1))).await, expected);
    assert_eq!(refused(StoreOp::get(["n"], "a\0b")).await, expected);
    assert_eq!(refused(StoreOp::delete(["n"], "a\0b")).await, expected);
}

#[tokio::test]
async fn keys_and_namespaces_have_a_length() -> Done {
    let advice = "is longer than 1024 bytes; shorten it, and keep long names in the value";
    let long = "x".repeat(1025);
    assert_eq!(refused(StoreOp::get(["n"], &long)).await, format!("key `{}..` {advice}", &long[..20]));
    let namespace = [&long[..512], &long[..512]];
    assert_eq!(refused(StoreOp::get(namespace, "k")).await, format!("namespace `{}..` {advice}", &long[..20]));
    MemoryStore::new().put([&long[..511], &long[..511]], &long[..1024], 1).await
}

#[tokio::test]
async fn a_value_has_a_depth() -> Done {
    let nested = |levels| (0..levels).fold(json!(1), |value, _| Value::Array(vec![value]));
    let expected = "the value for key `k` is nested more than 120 levels deep; flatten it";
    assert_eq!(refused(StoreOp::put(["n"], "k", nested(121))).await, expected);
    MemoryStore::new().put(["n"], "k", nested(120)).await
}

#[tokio::test]
async fn a_filter_that_compares_with_a_list_is_refused_by_the_search() {
    let message = refused(StoreOp::Search(SearchQuery::default().filter(Filter::lte("k", vec![1])))).await;
    assert_eq!(message, "operator `$lte` for key `k` needs a number or a string, not `[1]`");
}
