//! Time to live: when an item goes, what prolongs it, and what is left of it.

use std::time::Duration;

use superstep::{MemoryStore, NamespaceQuery, SearchQuery, Store, StoreOp, Ttl, TtlConfig};
use tokio::time::advance;

use super::{Done, MINUTE, find, holds, list, store_of};

const ALMOST_A_MINUTE: Duration = Duration::from_millis(59_999);

fn expiring(default: Option<Duration>, refresh_on_read: bool) -> MemoryStore {
    MemoryStore::new().with_ttl(TtlConfig { default, refresh_on_read })
}

#[tokio::test(start_paused = true)]
async fn an_item_lives_until_its_ttl_and_no_longer() -> Done {
    let store = MemoryStore::new();
    store.put_with(["n"], "k", 1, MINUTE).await?;
    advance(ALMOST_A_MINUTE).await;
    assert!(holds(&store, "k").await?);
    advance(Duration::from_millis(1)).await;
    assert!(!holds(&store, "k").await?);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_expired_item_is_neither_found_nor_listed() -> Done {
    let store = store_of(&["m/1"]).await?;
    store.put_with(["n"], "k", 1, MINUTE).await?;
    advance(MINUTE).await;
    assert_eq!(list(&store, NamespaceQuery::new()).await?, "m");
    assert_eq!(find(&store, SearchQuery::default()).await?, "m/1");
    assert!(store.get(["n"], "k").await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_default_ttl_is_for_puts_that_do_not_say() -> Done {
    let store = expiring(Some(MINUTE), true);
    store.put(["n"], "default", 1).await?;
    store.put_with(["n"], "never", 1, Ttl::Never).await?;
    store.put_with(["n"], "longer", 1, 3 * MINUTE).await?;
    advance(2 * MINUTE).await;
    let no_refresh = SearchQuery::new(["n"]).refresh_ttl(false);
    assert_eq!(find(&store, no_refresh.clone()).await?, "n/never n/longer");
    advance(MINUTE).await;
    assert_eq!(find(&store, no_refresh).await?, "n/never");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_default_an_item_stays() -> Done {
    let store = MemoryStore::new();
    store.put(["n"], "k", 1).await?;
    advance(1_000_000 * MINUTE).await;
    assert!(holds(&store, "k").await?);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_get_refreshes_when_the_store_says_so() -> Done {
    for refresh_on_read in [true, false] {
        let store = expiring(Some(MINUTE), refresh_on_read);
        store.put(["n"], "k", 1).await?;
        advance(MINUTE / 2).await;
        store.get(["n"], "k").await?;
        advance(MINUTE / 2).await;
        assert_eq!(holds(&store, "k").await?, refresh_on_read);
        advance(MINUTE / 2).await;
        assert!(!holds(&store, "k").await?);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_get_may_overrule_the_store() -> Done {
    for refresh in [true, false] {
        let store = expiring(Some(MINUTE), !refresh);
        store.put(["n"], "k", 1).await?;
        advance(MINUTE / 2).await;
        let get = StoreOp::Get { namespace: ["n"].into(), key: "k".into(), refresh_ttl: Some(refresh) };
        store.batch(vec![get]).await?;
        advance(MINUTE / 2).await;
        assert_eq!(holds(&store, "k").await?, refresh);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_search_refreshes_when_the_store_or_the_query_says_so() -> Done {
    let query = || SearchQuery::new(["n"]);
    let cases = [
        (true, query(), true),
        (false, query(), false),
        (true, query().refresh_ttl(false), false),
        (false, query().refresh_ttl(true), true),
    ];
    for (refresh_on_read, query, lives) in cases {
        let store = expiring(Some(MINUTE), refresh_on_read);
        store.put(["n"], "k", 1).await?;
        advance(MINUTE / 2).await;
        store.search(query).await?;
        advance(MINUTE / 2).await;
        assert_eq!(holds(&store, "k").await?, lives);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_search_refreshes_only_what_it_returns() -> Done {
    let store = expiring(Some(MINUTE), true);
    store.put(["n"], "returned", 1).await?;
    store.put(["n"], "cut", 1).await?;
    advance(MINUTE / 2).await;
    store.search(SearchQuery::new(["n"]).limit(1)).await?;
    advance(MINUTE / 2).await;
    assert_eq!(find(&store, SearchQuery::new(["n"])).await?, "n/returned");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_new_put_replaces_the_ttl() -> Done {
    let store = MemoryStore::new();
    store.put_with(["n"], "freed", 1, MINUTE).await?;
    store.put(["n"], "bound", 1).await?;
    store.put(["n"], "freed", 2).await?;
    store.put_with(["n"], "bound", 2, MINUTE).await?;
    advance(MINUTE).await;
    assert!(holds(&store, "freed").await?);
    assert!(!holds(&store, "bound").await?);
    Ok(())
}

/// A deadline left behind by a deleted item would take the item that is put next under its key.
#[tokio::test(start_paused = true)]
async fn a_deleted_item_leaves_no_deadline_behind() -> Done {
    let store = MemoryStore::new();
    store.put_with(["n"], "k", 1, MINUTE).await?;
    store.delete(["n"], "k").await?;
    store.put(["n"], "k", 2).await?;
    advance(MINUTE).await;
    assert_eq!(store.sweep(), 0);
    assert!(holds(&store, "k").await?);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_put_over_an_expired_item_is_a_new_item() -> Done {
    let store = MemoryStore::new();
    store.put_with(["n"], "first", 1, MINUTE).await?;
    store.put(["n"], "second", 1).await?;
    advance(MINUTE).await;
    store.put(["n"], "first", 2).await?;
    let item = store.get(["n"], "first").await?.expect("it was put");
    assert_eq!(item.created_at, item.updated_at);
    assert_eq!(find(&store, SearchQuery::default()).await?, "n/second n/first");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn sweep_says_how_many_items_it_removed() -> Done {
    let store = MemoryStore::new();
    for (key, minutes) in [("a", 1), ("b", 1), ("c", 2)] {
        store.put_with(["n"], key, 1, minutes * MINUTE).await?;
    }
    store.put(["n"], "d", 1).await?;
    assert_eq!(store.sweep(), 0);
    advance(MINUTE).await;
    assert_eq!(store.sweep(), 2);
    assert_eq!(store.sweep(), 0);
    assert_eq!(find(&store, SearchQuery::default()).await?, "n/c n/d");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn any_batch_sweeps_what_expired() -> Done {
    let store = MemoryStore::new();
    store.put_with(["n"], "k", 1, MINUTE).await?;
    advance(MINUTE).await;
    store.batch(vec![]).await?;
    assert_eq!(store.sweep(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_ttl_past_the_end_of_the_clock_never_expires() -> Done {
    let store = MemoryStore::new();
    store.put_with(["n"], "k", 1, Duration::MAX).await?;
    advance(MINUTE).await;
    assert!(holds(&store, "k").await?);
    Ok(())
}
