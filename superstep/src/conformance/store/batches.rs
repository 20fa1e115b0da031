//! Batches: order, and all or nothing.

use serde_json::json;

use super::{StoreMaker, find, names, plain, refusal};
use crate::conformance::claims::{holds, same};
use crate::conformance::{Broken, Checked};
use crate::{NamespaceQuery, SearchQuery, Store, StoreOp};

pub(super) async fn replies_come_in_the_order_of_ops(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.put(["a"], "1", json!(1)).await?;
    let ops = vec![
        StoreOp::ListNamespaces(NamespaceQuery::new()),
        StoreOp::put(["b"], "2", json!(2)),
        StoreOp::get(["a"], "1"),
        StoreOp::delete(["a"], "9"),
        StoreOp::Search(SearchQuery::new(["a"])),
    ];
    let mut replies = store.batch(ops).await?.into_iter();
    let mut next = || replies.next().ok_or_else(|| Broken("a reply is missing".into()));
    same("namespaces", next()?.into_namespaces()?.len(), 1)?;
    holds("a put gives a version", next()?.into_version()? > 0)?;
    holds("the item is found", next()?.into_item()?.is_some())?;
    next()?.into_done()?;
    same("found items", names(&next()?.into_items()?), "a/1".to_owned())?;
    same("replies to no ops", store.batch(Vec::new()).await?.len(), 0)
}

pub(super) async fn reads_see_the_state_before_the_batch(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.put(["n"], "old", 1).await?;
    let ops = vec![
        StoreOp::put(["n"], "new", json!(1)),
        StoreOp::delete(["n"], "old"),
        StoreOp::get(["n"], "new"),
        StoreOp::Search(SearchQuery::new(["n"])),
    ];
    let replies = store.batch(ops).await?;
    holds("the new item is not there yet", replies[2].clone().into_item()?.is_none())?;
    same("found items", names(&replies[3].clone().into_items()?), "n/old".to_owned())?;
    same("what is left", find(&store, SearchQuery::default()).await?, "n/new".to_owned())
}

pub(super) async fn the_last_write_to_a_key_wins(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.batch(vec![StoreOp::put(["n"], "k", json!(1)), StoreOp::put(["n"], "k", json!(2))]).await?;
    same("value", store.get_as::<u8>(["n"], "k").await?, Some(2))?;
    store.batch(vec![StoreOp::put(["n"], "k", json!(3)), StoreOp::delete(["n"], "k")]).await?;
    same("value", store.get_as::<u8>(["n"], "k").await?, None)?;
    store.batch(vec![StoreOp::delete(["n"], "k"), StoreOp::put(["n"], "k", json!(4))]).await?;
    same("value", store.get_as::<u8>(["n"], "k").await?, Some(4))
}

pub(super) async fn a_wrong_op_refuses_the_batch(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let ops = vec![StoreOp::put(["n"], "k", json!(1)), StoreOp::put(["a.b"], "k", json!(1))];
    let words = refusal("a label with a dot", store.batch(ops).await)?;
    holds("the label is named", words.contains("`a.b`"))?;
    same("what is there", find(&store, SearchQuery::default()).await?, String::new())
}

/// Writers change two items together; a batch that reads both must never see one of them changed and the other not.
pub(super) async fn reads_of_a_batch_see_one_state(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let both = |value: u32| vec![StoreOp::put(["n"], "a", json!(value)), StoreOp::put(["n"], "b", json!(value))];
    store.batch(both(0)).await?;
    let writer = store.clone();
    let writing = tokio::spawn(async move {
        for value in 1..=40 {
            writer.batch(both(value)).await?;
        }
        Ok::<_, Broken>(())
    });
    for _ in 0..40 {
        let replies = store.batch(vec![StoreOp::get(["n"], "a"), StoreOp::get(["n"], "b")]).await?;
        let values: Result<Vec<_>, _> = replies.into_iter().map(|reply| reply.into_item()).collect();
        let values: Vec<_> = values?.into_iter().map(|item| item.map(|item| item.value)).collect();
        same("the two values", &values[0], &values[1])?;
    }
    writing.await.map_err(|error| Broken(error.to_string()))?
}
