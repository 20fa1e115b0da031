//! Stores and caches in PostgreSQL: what several processes share.

use std::time::Duration;

use bytes::Bytes;
use superstep::{Cache, CacheKey, Store, StoreError};
use superstep_postgres::{Clock, PostgresCache, PostgresDatabase, PostgresStore};

use crate::address;

const MINUTE: Duration = Duration::from_mins(1);

/// A connection of its own to a schema that the test names.
async fn database(schema: &str) -> PostgresDatabase {
    let schema = format!("servers_{schema}_{}", std::process::id());
    PostgresDatabase::builder(address()).schema(schema).connect().await.expect("the server can be reached")
}

#[tokio::test]
async fn those_who_share_a_schema_share_items_and_versions() -> Result<(), StoreError> {
    let (one, other) = (PostgresStore::new(&database("shared").await), PostgresStore::new(&database("shared").await));
    one.put(["n"], "k", 1).await?;
    let item = other.get(["n"], "k").await?.expect("it was put");
    assert_eq!((item.value.as_u64(), item.version), (Some(1), 1));
    other.put(["n"], "k", 2).await?;
    assert_eq!(one.get(["n"], "k").await?.expect("it was put").version, 2);
    let apart = PostgresStore::new(&database("apart").await);
    assert!(apart.get(["n"], "k").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_store_and_a_cache_share_a_schema() -> Result<(), Box<dyn std::error::Error>> {
    let database = database("both").await;
    let (store, cache) = (PostgresStore::new(&database), PostgresCache::new(&database));
    let key = CacheKey::new(["n"], "k");
    store.put(["n"], "k", "stored").await?;
    cache.set(vec![(key.clone(), Bytes::from("cached"), None)]).await?;
    cache.clear(None).await?;
    assert_eq!(cache.get(&[key]).await?, [None]);
    assert_eq!(store.get_as::<String>(["n"], "k").await?.as_deref(), Some("stored"));
    Ok(())
}

#[tokio::test]
async fn sweep_says_how_many_items_it_removed() -> Result<(), StoreError> {
    let clock = Clock::manual();
    let store = PostgresStore::new(&database("sweep").await).with_clock(clock.clone());
    for (key, minutes) in [("a", 1), ("b", 1), ("c", 2)] {
        store.put_with(["n"], key, 1, minutes * MINUTE).await?;
    }
    assert_eq!(store.sweep().await?, 0);
    clock.advance(MINUTE);
    assert_eq!((store.sweep().await?, store.sweep().await?), (2, 0));
    Ok(())
}
