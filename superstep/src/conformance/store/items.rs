//! Single items.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{StoreMaker, find, plain, put_all};
use crate::conformance::claims::{holds, same};
use crate::conformance::{Broken, Checked};
use crate::{Item, Namespace, SearchQuery, Store};

pub(super) async fn a_put_value_is_got_back(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.put(["users", "ada"], "drink", json!({ "name": "tea" })).await?;
    let item = get(&store, "drink").await?;
    same("value", item.value, json!({ "name": "tea" }))?;
    same("namespace", item.namespace, Namespace::from(["users", "ada"]))?;
    same("key", item.key, "drink".to_owned())?;
    same("score", item.score, None)?;
    holds("both times are those of the put", item.created_at == item.updated_at)
}

pub(super) async fn a_missing_item_is_none(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    put_all(&store, &["a/1"]).await?;
    holds("key `2` is missing", store.get(["a"], "2").await?.is_none())?;
    holds("namespace `b` is missing", store.get(["b"], "1").await?.is_none())?;
    holds("the root holds nothing", store.get(Namespace::default(), "1").await?.is_none())
}

pub(super) async fn an_overwritten_item_keeps_its_creation_time(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.put(["users", "ada"], "drink", 1).await?;
    let before = get(&store, "drink").await?;
    maker.advance(std::time::Duration::from_secs(5)).await;
    store.put(["users", "ada"], "drink", 2).await?;
    let after = get(&store, "drink").await?;
    same("value", after.value, json!(2))?;
    same("creation time", after.created_at, before.created_at)?;
    holds("the update is not before the creation", after.updated_at >= before.updated_at)?;
    holds("the version grows", after.version > before.version)
}

pub(super) async fn a_deleted_item_is_gone(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    put_all(&store, &["a/1", "a/2"]).await?;
    store.delete(["a"], "1").await?;
    store.delete(["a"], "1").await?;
    store.delete(["b"], "1").await?;
    same("what is left", find(&store, SearchQuery::default()).await?, "a/2".to_owned())
}

pub(super) async fn any_json_value_comes_back_as_it_was(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let deep = (0..120).fold(json!("deep"), |value, level| match level % 2 {
        0 => json!([value]),
        _ => json!({ "k": value }),
    });
    let values = [
        json!(null),
        json!(true),
        json!(""),
        json!("nul \0, quote ', backslash \\, \u{1f375} \u{fffd}\u{202e}"),
        json!(u64::MAX),
        json!(i64::MIN),
        json!([0.1, -0.0, 1e16, 1e300, 5e-324, 1.0, 123_456_789.123_456_79, f64::MAX, 2.5e-8]),
        json!({ "": { "a.b": [], "$x": {}, "\0": 1 } }),
        deep,
    ];
    for value in values {
        store.put(["users", "ada"], "any", &value).await?;
        let item = get(&store, "any").await?;
        same("value", exact(&item.value), exact(&value))?;
    }
    Ok(())
}

/// As text, so that 1 and 1.0, and 0.0 and -0.0, are told apart.
fn exact(value: &Value) -> String {
    value.to_string()
}

pub(super) async fn keys_belong_to_their_namespace(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    put_all(&store, &["a/k", "a.b/k", "b/k"]).await?;
    store.delete(["a"], "k").await?;
    same("what is left", find(&store, SearchQuery::default()).await?, "a.b/k b/k".to_owned())?;
    store.put(["b"], "k", json!(1)).await?;
    let other = store.get(["a", "b"], "k").await?.ok_or_else(|| Broken("`a.b/k` is gone".into()))?;
    same("the other value", other.value, json!({ "name": "a.b/k" }))
}

async fn get(store: &Arc<dyn Store>, key: &str) -> Result<Item, Broken> {
    let found = store.get(["users", "ada"], key).await?;
    found.ok_or_else(|| Broken(format!("`{key}` was put and is not there")))
}
