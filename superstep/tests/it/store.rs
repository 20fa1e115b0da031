//! The store through its public face: what is kept, found, listed, and for how long.

#[cfg(feature = "conformance")]
mod broken;
mod conditions;
#[cfg(feature = "conformance")]
mod conformance;
mod cursor;
mod differential;
mod embedder;
mod filter;
mod limits;
mod ttl;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{Item, MemoryStore, Namespace, NamespaceQuery, SearchQuery, Store, StoreError, StoreOp, StoreReply};

const MINUTE: Duration = Duration::from_mins(1);

type Done = Result<(), StoreError>;

/// A store with `namespace/key` items, labels joined by dots, each with its own name as value.
async fn store_of(paths: &[&str]) -> Result<MemoryStore, StoreError> {
    let store = MemoryStore::new();
    for path in paths {
        let (namespace, key) = path.split_once('/').expect("a path is `namespace/key`");
        store.put(labels(namespace), key, json!({ "path": path })).await?;
    }
    Ok(store)
}

fn labels(dotted: &str) -> Namespace {
    dotted.split('.').map(str::to_owned).collect::<Vec<_>>().into()
}

/// The found items as `namespace/key`, separated by spaces.
async fn find(store: &MemoryStore, query: SearchQuery) -> Result<String, StoreError> {
    let paths: Vec<_> = store.search(query).await?.iter().map(path_of).collect();
    Ok(paths.join(" "))
}

fn path_of(item: &Item) -> String {
    format!("{}/{}", item.namespace, item.key)
}

async fn holds(store: &MemoryStore, key: &str) -> Result<bool, StoreError> {
    // The look must not prolong what it looks at.
    let look = StoreOp::Get { namespace: ["n"].into(), key: key.into(), refresh_ttl: Some(false) };
    Ok(only(store.batch(vec![look]).await?).into_item()?.is_some())
}

fn only(replies: Vec<StoreReply>) -> StoreReply {
    let [reply] = <[StoreReply; 1]>::try_from(replies).expect("one op has one reply");
    reply
}

async fn refused(op: StoreOp) -> String {
    MemoryStore::new().batch(vec![op]).await.expect_err("the op is wrong").to_string()
}

// Single items.

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Profile {
    name: String,
    age: u8,
}

#[tokio::test]
async fn typed_values_go_in_and_come_out() -> Done {
    let store = MemoryStore::new();
    let ada = Profile { name: "Ada".into(), age: 36 };
    store.put(["users"], "ada", &ada).await?;
    assert_eq!(store.get_as::<Profile>(["users"], "ada").await?, Some(ada));
    assert_eq!(store.get_as::<Profile>(["users"], "bob").await?, None);
    Ok(())
}

#[tokio::test]
async fn a_value_of_another_type_is_named_in_the_error() -> Done {
    let store = store_of(&["users/ada"]).await?;
    let error = store.get_as::<u8>(["users"], "ada").await.expect_err("an object is no number");
    assert_eq!(error.to_string(), "the value of key `ada` is not a `u8`; read it as JSON with `get`");
    assert!(error.source().is_some());
    Ok(())
}

#[tokio::test]
async fn a_value_that_is_not_json_is_refused() {
    let pairs = std::collections::HashMap::from([((1, 2), 3)]);
    let error = MemoryStore::new().put(["n"], "pairs", pairs).await.expect_err("JSON keys are strings");
    assert_eq!(error.to_string(), "the value for key `pairs` cannot be written as JSON");
    assert!(error.source().is_some());
}

#[tokio::test]
async fn clones_share_their_items() -> Done {
    let store = MemoryStore::new();
    store.clone().put(["n"], "k", 1).await?;
    assert!(holds(&store, "k").await?);
    Ok(())
}

#[tokio::test]
async fn a_boxed_or_shared_trait_object_has_every_method() -> Done {
    let shared: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let boxed: Box<dyn Store> = Box::new(Arc::clone(&shared));
    boxed.put(["n"], "k", "tea").await?;
    boxed.put_with(["n"], "gone", "tea", Duration::ZERO).await?;
    assert_eq!(shared.get_as::<String>(["n"], "k").await?.as_deref(), Some("tea"));
    assert_eq!(shared.search(SearchQuery::new(["n"])).await?.len(), 1);
    assert_eq!(shared.list_namespaces(NamespaceQuery::new()).await?, [Namespace::from(["n"])]);
    shared.delete(["n"], "k").await?;
    assert!(boxed.get(["n"], "k").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn every_call_can_be_made_from_a_spawned_task() -> Done {
    async fn all_calls(store: impl Store) -> Result<usize, StoreError> {
        let user = String::from("ada");
        store.put(["n", user.as_str()], "k", json!(1)).await?;
        store.put_with(["n", user.as_str()], user.as_str(), &user, MINUTE).await?;
        store.delete(["n", user.as_str()], "k").await?;
        store.get_as::<String>(["n", user.as_str()], user.as_str()).await?;
        store.list_namespaces(NamespaceQuery::new().prefix(["n", user.as_str()])).await?;
        Ok(store.search(SearchQuery::new(["n", user.as_str()])).await?.len())
    }
    let shared: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let inline = Arc::clone(&shared);
    let first = tokio::spawn(async move { inline.put(["n"], "k", Value::Null).await });
    first.await.expect("the task does not panic")?;
    let found = tokio::spawn(all_calls(shared)).await.expect("the task does not panic")?;
    assert_eq!(found, 1);
    Ok(())
}

// Namespaces.

#[tokio::test]
async fn wrong_labels_are_refused_everywhere() {
    let message = "namespace label `a.b` holds a `.`; split it into two labels";
    assert_eq!(refused(StoreOp::put(["a.b"], "k", json!(1))).await, message);
    assert_eq!(refused(StoreOp::get(["a.b"], "k")).await, message);
    assert_eq!(refused(StoreOp::delete(["a.b"], "k")).await, message);
    assert_eq!(refused(StoreOp::Search(SearchQuery::new(["a.b"]))).await, message);
    assert_eq!(refused(StoreOp::ListNamespaces(NamespaceQuery::new().prefix(["a.b"]))).await, message);
    assert_eq!(refused(StoreOp::ListNamespaces(NamespaceQuery::new().suffix(["a.b"]))).await, message);
}

#[tokio::test]
async fn an_empty_label_is_refused() {
    let message = refused(StoreOp::get(["users", ""], "k")).await;
    assert_eq!(message, "label 1 of namespace `users.` is empty; give every label a name");
}

#[tokio::test]
async fn a_nul_in_a_label_is_refused() {
    let message = refused(StoreOp::get(["a\0b"], "k")).await;
    assert_eq!(message, r"namespace label `a\0b` holds a NUL character; remove it");
}

#[tokio::test]
async fn a_put_needs_a_namespace() {
    let message = refused(StoreOp::put(Namespace::default(), "k", json!(1))).await;
    assert_eq!(message, r#"put of key `k` has an empty namespace; give it at least one label, as in `["memories"]`"#);
}

#[tokio::test]
async fn reserved_root_labels_are_refused_and_only_at_the_root() -> Done {
    for root in ["langgraph", "superstep"] {
        let message = refused(StoreOp::put([root, "x"], "k", json!(1))).await;
        let expected = format!("root label `{root}` is reserved; start the namespace with a label of your own");
        assert_eq!(message, expected);
        MemoryStore::new().put(["mine", root], "k", 1).await?;
    }
    Ok(())
}

#[test]
fn a_namespace_is_made_from_arrays_slices_and_vectors() {
    let expected = Namespace::from(["a", "b"]);
    let owned = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(Namespace::from(["a".to_owned(), "b".to_owned()]), expected);
    assert_eq!(Namespace::from(["a", "b"].as_slice()), expected);
    assert_eq!(Namespace::from(owned.as_slice()), expected);
    assert_eq!(Namespace::from(owned), expected);
    assert_eq!(Namespace::from(&expected), expected);
    assert_eq!(Namespace::from(["a"]).child("b"), expected);
}

#[test]
fn a_namespace_is_written_as_a_list_of_labels() -> Result<(), serde_json::Error> {
    let namespace = Namespace::from(["a", "b"]);
    assert_eq!(serde_json::to_value(&namespace)?, json!(["a", "b"]));
    assert_eq!(serde_json::from_value::<Namespace>(json!(["a", "b"]))?, namespace);
    assert!(!namespace.is_empty());
    Ok(())
}

// Batches.

#[tokio::test]
async fn a_batch_with_a_wrong_op_changes_nothing() -> Done {
    let store = MemoryStore::new();
    let ops = vec![StoreOp::put(["n"], "k", json!(1)), StoreOp::put(["a.b"], "k", json!(1))];
    store.batch(ops).await.expect_err("the second namespace is wrong");
    assert!(!holds(&store, "k").await?);
    Ok(())
}

// Stores of others.

/// A store that gives the same replies whatever it is asked.
struct Stuck(Vec<StoreReply>);

#[async_trait]
impl Store for Stuck {
    async fn batch(&self, _: Vec<StoreOp>) -> Result<Vec<StoreReply>, StoreError> {
        Ok(self.0.clone())
    }
}

#[tokio::test]
async fn a_reply_of_the_wrong_kind_is_an_error() {
    let advice = "its `batch` must answer each op in its place";
    let says = |got: &str, due: &str| format!("the store answered with `{got}` where `{due}` was due; {advice}");
    let done = Stuck(vec![StoreReply::Done]);
    let item = Stuck(vec![StoreReply::Item(None)]);
    assert_eq!(message(done.get(["n"], "k").await), says("Done", "Item"));
    assert_eq!(message(item.put(["n"], "k", 1).await), says("Item", "Stored"));
    assert_eq!(message(item.delete(["n"], "k").await), says("Item", "Done"));
    assert_eq!(message(item.search(SearchQuery::default()).await), says("Item", "Page"));
    assert_eq!(message(item.list_namespaces(NamespaceQuery::new()).await), says("Item", "Namespaces"));
}

#[tokio::test]
async fn a_missing_or_surplus_reply_is_an_error() {
    for count in [0, 2] {
        let store = Stuck(vec![StoreReply::Item(None); count]);
        let advice = "its `batch` must answer each op in its place";
        let expected = format!("the store gave `{count}` replies where `1` were due; {advice}");
        assert_eq!(message(store.get(["n"], "k").await), expected);
    }
}

fn message<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    result.expect_err("the store misbehaves").to_string()
}

#[test]
fn a_backend_error_keeps_its_source() {
    let error = StoreError::backend("disk full");
    assert_eq!(error.to_string(), "the store's backend failed");
    assert_eq!(error.source().expect("it wraps an error").to_string(), "disk full");
}

#[tokio::test]
async fn a_reply_is_taken_as_what_it_is_only() -> Done {
    let store = store_of(&["a.b/k"]).await?;
    let ops = || {
        vec![
            StoreOp::get(["a", "b"], "k"),
            StoreOp::put(["c"], "k", json!(1)),
            StoreOp::delete(["d"], "k"),
            StoreOp::Search(SearchQuery::new(["a"])),
            StoreOp::ListNamespaces(NamespaceQuery::new().prefix(["a"])),
        ]
    };
    let replies = store.batch(ops()).await?;
    let fits = |reply: &StoreReply| {
        [
            reply.clone().into_item().is_ok(),
            reply.clone().into_version().is_ok(),
            reply.clone().into_done().is_ok(),
            reply.clone().into_page().is_ok(),
            reply.clone().into_namespaces().is_ok(),
        ]
    };
    for (ix, reply) in replies.iter().enumerate() {
        let expected: Vec<bool> = (0..5).map(|kind| kind == ix).collect();
        assert_eq!(fits(reply).to_vec(), expected, "{reply:?}");
    }
    let namespaces = replies[4].clone().into_namespaces()?;
    assert_eq!(namespaces.iter().map(Namespace::labels).collect::<Vec<_>>(), [["a", "b"]]);
    assert!(ops().iter().all(|op| op.validate().is_ok()));
    assert!(StoreOp::put([""; 1], "k", json!(1)).validate().is_err());
    Ok(())
}
