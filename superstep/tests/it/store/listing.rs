//! Listing namespaces: which are named, in which form and order.

use superstep::{NamespaceQuery, Store};

use super::{Done, list, store_of};

#[tokio::test]
async fn namespaces_are_listed_sorted_and_once() -> Done {
    let store = store_of(&["b/1", "a.c/1", "a/1", "a/2"]).await?;
    assert_eq!(list(&store, NamespaceQuery::new()).await?, "a a.c b");
    Ok(())
}

#[tokio::test]
async fn a_namespace_without_items_is_not_listed() -> Done {
    let store = store_of(&["a/1", "b/1"]).await?;
    store.delete(["a"], "1").await?;
    assert_eq!(list(&store, NamespaceQuery::new()).await?, "b");
    Ok(())
}

#[tokio::test]
async fn prefix_and_suffix_go_by_labels_and_take_a_wildcard() -> Done {
    let store = store_of(&["u.ada.notes/1", "u.ada.tasks/1", "u.bob.notes/1", "u/1", "us.ada.notes/1"]).await?;
    let query = NamespaceQuery::new;
    assert_eq!(list(&store, query().prefix(["u"])).await?, "u u.ada.notes u.ada.tasks u.bob.notes");
    assert_eq!(list(&store, query().prefix(["u", "*", "notes"])).await?, "u.ada.notes u.bob.notes");
    assert_eq!(list(&store, query().suffix(["notes"])).await?, "u.ada.notes u.bob.notes us.ada.notes");
    assert_eq!(list(&store, query().suffix(["ada", "*"])).await?, "u.ada.notes u.ada.tasks us.ada.notes");
    assert_eq!(list(&store, query().prefix(["u"]).suffix(["bob", "*"])).await?, "u.bob.notes");
    assert_eq!(list(&store, query().prefix(["*", "*", "*", "*"])).await?, "");
    Ok(())
}

#[tokio::test]
async fn max_depth_cuts_and_names_each_namespace_once() -> Done {
    let store = store_of(&["u.ada.notes/1", "u.ada.tasks/1", "u.bob/1", "v/1"]).await?;
    assert_eq!(list(&store, NamespaceQuery::new().max_depth(2)).await?, "u.ada u.bob v");
    assert_eq!(list(&store, NamespaceQuery::new().max_depth(1).suffix(["tasks"])).await?, "u");
    Ok(())
}

#[tokio::test]
async fn limit_and_offset_count_cut_namespaces() -> Done {
    let store = store_of(&["a.x/1", "a.y/1", "b/1", "c/1", "d/1"]).await?;
    assert_eq!(list(&store, NamespaceQuery::new().max_depth(1).offset(1).limit(2)).await?, "b c");
    Ok(())
}

#[tokio::test]
async fn a_listing_returns_a_hundred_namespaces_unless_told() -> Done {
    let paths: Vec<_> = (0..101).map(|label| format!("n{label}/1")).collect();
    let store = store_of(&paths.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    assert_eq!(store.list_namespaces(NamespaceQuery::default()).await?.len(), 100);
    assert_eq!(store.list_namespaces(NamespaceQuery::new().limit(200)).await?.len(), 101);
    Ok(())
}
