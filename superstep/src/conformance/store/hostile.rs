//! Names and values that mean something to a database: each is taken literally or refused in words, never run.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{StoreMaker, find, names, plain, refusal};
use crate::conformance::Checked;
use crate::conformance::claims::{holds, same};
use crate::{FieldPath, Filter, Namespace, NamespaceQuery, SearchQuery, Store, StoreOp};

/// What is put between two words, at their start and at their end, alone and doubled: 500 names.
const PIECES: [&str; 50] = [
    "'",
    "\"",
    "`",
    ";",
    "--",
    "/*",
    "*/",
    "%",
    "_",
    "\\",
    "\\'",
    "''",
    "$1",
    "$$",
    "?1",
    ":a",
    "@a",
    "{}",
    "{0}",
    "[*]",
    "' OR '1'='1",
    "'; TRUNCATE superstep_store_items; --",
    "\" OR \"\"=\"",
    "') UNION SELECT 1 --",
    "1; SELECT pg_sleep(9)",
    "NULL",
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "$.a",
    "$eq",
    "->>'a'",
    "#>>",
    "@>",
    "{\"a\":1}",
    "\\u0000",
    "\u{1}",
    "\u{7f}",
    "\n",
    "\r\n\t",
    " ",
    "\u{a0}",
    "\u{200b}",
    "\u{202e}",
    "\u{feff}",
    "\u{fffd}",
    "\u{1f375}",
    "E'\\x41'",
];

fn names_of_ill_will() -> Vec<String> {
    let around = |piece: &str| {
        let forms = [
            piece.to_owned(),
            format!("a{piece}"),
            format!("{piece}a"),
            format!("a{piece}b"),
            format!("{piece}{piece}"),
            format!("a{piece}{piece}b"),
            format!("'{piece}'"),
            format!("\"{piece}\""),
            format!("A{piece}B"),
            format!("{piece} {piece}"),
        ];
        forms.to_vec()
    };
    PIECES.iter().flat_map(|piece| around(piece)).collect()
}

/// As many ops at once as keeps a run short and a failure small.
async fn put_all(store: &Arc<dyn Store>, puts: Vec<StoreOp>) -> Checked {
    for some in puts.chunks(100) {
        store.batch(some.to_vec()).await?;
    }
    Ok(())
}

pub(super) async fn hostile_keys_are_taken_literally(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let keys = names_of_ill_will();
    put_all(&store, keys.iter().map(|key| StoreOp::put(["n"], key, json!(key))).collect()).await?;
    let replies = store.batch(keys.iter().map(|key| StoreOp::get(["n"], key)).collect()).await?;
    for (key, reply) in keys.iter().zip(replies) {
        same("value", reply.into_item()?.map(|item| (item.key, item.value)), Some((key.clone(), json!(key))))?;
    }
    let distinct = keys.iter().collect::<BTreeSet<_>>().len();
    same("items", store.search(SearchQuery::new(["n"]).limit(1000)).await?.len(), distinct)?;
    put_all(&store, keys.iter().map(|key| StoreOp::delete(["n"], key)).collect()).await?;
    same("what is left", find(&store, SearchQuery::default()).await?, String::new())
}

pub(super) async fn hostile_namespaces_are_taken_literally(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let is_label = |name: &String| !name.contains('.');
    let (labels, dotted): (Vec<String>, Vec<String>) = names_of_ill_will().into_iter().partition(is_label);
    for label in dotted {
        refusal("a label with a dot", store.put(["root", &label], "k", 1).await)?;
    }
    put_all(&store, labels.iter().map(|label| StoreOp::put(["root", label], "k", json!(label))).collect()).await?;
    let mut wanted: Vec<Namespace> = labels.iter().map(|label| ["root", label].into()).collect();
    wanted.sort();
    wanted.dedup();
    same("namespaces", store.list_namespaces(NamespaceQuery::new().limit(1000)).await?, wanted)?;
    for label in &labels {
        let found = store.search(SearchQuery::new(["root", label])).await?;
        same("found", names(&found), format!("root.{label}/k"))?;
    }
    Ok(())
}

pub(super) async fn hostile_filters_are_taken_literally(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let names: BTreeSet<String> = names_of_ill_will().into_iter().collect();
    let names: Vec<String> = names.into_iter().collect();
    for (number, some) in names.chunks(25).enumerate() {
        let namespace = Namespace::from(["n".to_owned(), number.to_string()]);
        let value = |name: &String| json!({ name: name, "in": { name: [name] } });
        store.batch(some.iter().map(|name| StoreOp::put(&namespace, name, value(name))).collect()).await?;
        for name in some {
            let search = |filter| StoreOp::Search(SearchQuery::new(&namespace).filter(filter));
            for reply in store.batch(filters_for(name).map(search).into()).await? {
                let found = reply.into_items()?;
                let keys: Vec<&str> = found.iter().map(|item| item.key.as_str()).collect();
                same("found", keys, vec![name.as_str()])?;
            }
        }
    }
    Ok(())
}

/// Filters that accept only the value of this name.
fn filters_for(name: &str) -> [Filter; 4] {
    let key = || FieldPath::from(vec![name.to_owned()]);
    let inside = FieldPath::from(vec!["in".to_owned(), name.to_owned(), "0".to_owned()]);
    [
        Filter::eq(key(), name),
        Filter::matching(key(), name).and(Filter::gte(key(), name)),
        Filter::one_of(key(), [Value::from("x"), Value::from(name)]),
        Filter::eq(inside, name),
    ]
}

pub(super) async fn hostile_searches_are_taken_literally(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.put(["n"], "k", "some tea").await?;
    for name in names_of_ill_will() {
        let found = store.search(SearchQuery::new(["n"]).words(format!("{name} tea"))).await?;
        same("found", names(&found), "n/k".to_owned())?;
    }
    Ok(())
}

pub(super) async fn what_cannot_be_kept_is_refused(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let long = "x".repeat(1025);
    refusal("a key with a NUL", store.put(["n"], "a\0b", 1).await)?;
    refusal("a label with a NUL", store.put(["a\0b"], "k", 1).await)?;
    refusal("a long key", store.put(["n"], &long, 1).await)?;
    refusal("a long label", store.put([long.as_str()], "k", 1).await)?;
    refusal("an empty label", store.put([""], "k", 1).await)?;
    refusal("no namespace", store.put(Namespace::default(), "k", 1).await)?;
    refusal("a reserved root", store.put(["superstep"], "k", 1).await)?;
    let deep = (0..121).fold(json!(1), |value, _| json!([value]));
    refusal("a deep value", store.put(["n"], "k", deep).await)?;
    store.put([&long[..511], &long[..511]], &long[..1024], &long).await?;
    store.put(["n"], "", 1).await?;
    holds("an empty key is a key", store.get(["n"], "").await?.is_some())?;
    let nul = Filter::eq(["\0"], "\0").or(Filter::eq("k", "a\0b"));
    same("a filter with a NUL", find(&store, SearchQuery::new(["n"]).filter(nul)).await?, String::new())
}
