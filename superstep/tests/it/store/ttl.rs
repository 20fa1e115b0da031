//! Time to live in memory: what is left of what has expired. When it expires is a matter of the suite.

use superstep::{MemoryStore, SearchQuery, Store};
use tokio::time::advance;

use super::{Done, MINUTE, find};

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
