//! Listing namespaces.

use std::sync::Arc;

use super::{StoreMaker, plain, put_all};
use crate::conformance::claims::same;
use crate::conformance::{Broken, Checked};
use crate::{NamespaceQuery, Store, StoreOp};

async fn list(store: &Arc<dyn Store>, query: NamespaceQuery) -> Result<String, Broken> {
    let found = store.list_namespaces(query).await?;
    Ok(found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
}

async fn check(store: &Arc<dyn Store>, query: NamespaceQuery, wanted: &str) -> Checked {
    same(&format!("{query:?}"), list(store, query).await?, wanted.to_owned())
}

pub(super) async fn namespaces_are_sorted_and_named_once(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    put_all(&store, &["b/1", "a.c/1", "a!/1", "a/1", "a/2", "B/1", "\u{e9}/1"]).await?;
    check(&store, NamespaceQuery::new(), "B a a.c a! b \u{e9}").await?;
    check(&store, NamespaceQuery::new().limit(2).offset(1), "a a.c").await?;
    check(&store, NamespaceQuery::new().limit(0), "").await
}

pub(super) async fn a_hundred_come_unless_told(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let put = |label: u32| StoreOp::put([format!("n{label}")], "1", serde_json::json!(1));
    store.batch((0..101).map(put).collect()).await?;
    same("without a limit", store.list_namespaces(NamespaceQuery::default()).await?.len(), 100)?;
    same("with a limit of 200", store.list_namespaces(NamespaceQuery::new().limit(200)).await?.len(), 101)
}

pub(super) async fn patterns(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    put_all(&store, &["u.ada.notes/1", "u.ada.tasks/1", "u.bob.notes/1", "u/1", "us.ada.notes/1"]).await?;
    let query = NamespaceQuery::new;
    check(&store, query().prefix(["u"]), "u u.ada.notes u.ada.tasks u.bob.notes").await?;
    check(&store, query().prefix(["u", "*", "notes"]), "u.ada.notes u.bob.notes").await?;
    check(&store, query().prefix(["*", "ada"]), "u.ada.notes u.ada.tasks us.ada.notes").await?;
    check(&store, query().suffix(["notes"]), "u.ada.notes u.bob.notes us.ada.notes").await?;
    check(&store, query().suffix(["ada", "*"]), "u.ada.notes u.ada.tasks us.ada.notes").await?;
    check(&store, query().prefix(["u"]).suffix(["bob", "*"]), "u.bob.notes").await?;
    check(&store, query().prefix(["*", "*", "*", "*"]), "").await
}

pub(super) async fn depth(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    put_all(&store, &["u.ada.notes/1", "u.ada.tasks/1", "u.bob/1", "v/1", "w/1"]).await?;
    check(&store, NamespaceQuery::new().max_depth(2), "u.ada u.bob v w").await?;
    check(&store, NamespaceQuery::new().max_depth(1).suffix(["tasks"]), "u").await?;
    check(&store, NamespaceQuery::new().max_depth(1).offset(1).limit(1), "v").await
}

pub(super) async fn an_empty_namespace_is_not_listed(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    put_all(&store, &["a/1", "b/1"]).await?;
    store.delete(["a"], "1").await?;
    check(&store, NamespaceQuery::new(), "b").await
}
