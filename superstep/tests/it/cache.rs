//! The cache through its public face: what is kept, for how long, and what clears it.

mod flight;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use superstep::{Cache, CacheError, CacheKey, MemoryCache};
use tokio::time::advance;

const MINUTE: Duration = Duration::from_mins(1);
const ALMOST_A_MINUTE: Duration = Duration::from_millis(59_999);

type Entry = (CacheKey, Bytes, Option<Duration>);

fn entry(node: &str, key: &str, value: &'static str, ttl: Option<Duration>) -> Entry {
    (CacheKey::new([node], key), Bytes::from(value), ttl)
}

/// What is kept under each `node/key`, as text.
async fn read(cache: &dyn Cache, keys: &[(&str, &str)]) -> Vec<Option<String>> {
    let keys: Vec<_> = keys.iter().map(|(node, key)| CacheKey::new([*node], *key)).collect();
    let found = cache.get(&keys).await.expect("a memory cache does not fail");
    found.into_iter().map(|value| value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())).collect()
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| (!value.is_empty()).then(|| (*value).to_owned())).collect()
}

#[tokio::test]
async fn get_answers_each_key_in_its_place() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", None), entry("plan", "2", "milk", None)]).await?;
    let keys = [("plan", "2"), ("plan", "3"), ("plan", "1"), ("plan", "2")];
    assert_eq!(read(&cache, &keys).await, some(&["milk", "", "tea", "milk"]));
    Ok(())
}

#[tokio::test]
async fn a_key_belongs_to_its_namespace() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", None)]).await?;
    assert_eq!(read(&cache, &[("act", "1"), ("plan", "1")]).await, some(&["", "tea"]));
    let deeper = CacheKey::new(["plan", "1"], "1");
    assert_eq!(cache.get(&[deeper]).await?, [None]);
    Ok(())
}

#[tokio::test]
async fn the_last_of_two_sets_wins() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", None), entry("plan", "1", "milk", None)]).await?;
    assert_eq!(read(&cache, &[("plan", "1")]).await, some(&["milk"]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_entry_lives_until_its_ttl_and_no_longer() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", Some(MINUTE)), entry("plan", "2", "milk", None)]).await?;
    advance(ALMOST_A_MINUTE).await;
    assert_eq!(read(&cache, &[("plan", "1"), ("plan", "2")]).await, some(&["tea", "milk"]));
    advance(Duration::from_millis(1)).await;
    assert_eq!(read(&cache, &[("plan", "1"), ("plan", "2")]).await, some(&["", "milk"]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_read_does_not_prolong_an_entry() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", Some(MINUTE))]).await?;
    advance(MINUTE / 2).await;
    assert_eq!(read(&cache, &[("plan", "1")]).await, some(&["tea"]));
    advance(MINUTE / 2).await;
    assert_eq!(read(&cache, &[("plan", "1")]).await, some(&[""]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_new_set_replaces_the_ttl() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", Some(MINUTE)), entry("plan", "2", "tea", None)]).await?;
    cache.set(vec![entry("plan", "1", "milk", None), entry("plan", "2", "milk", Some(MINUTE))]).await?;
    advance(MINUTE).await;
    assert_eq!(read(&cache, &[("plan", "1"), ("plan", "2")]).await, some(&["milk", ""]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_read_purges_all_that_expired() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", Some(MINUTE)), entry("plan", "2", "milk", None)]).await?;
    advance(MINUTE).await;
    assert_eq!(cache.len(), 2);
    read(&cache, &[("act", "9")]).await;
    assert_eq!(cache.len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_set_purges_all_that_expired() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", Some(MINUTE))]).await?;
    advance(MINUTE).await;
    cache.set(vec![entry("plan", "2", "milk", None)]).await?;
    assert_eq!(cache.len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_ttl_past_the_end_of_the_clock_never_expires() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", Some(Duration::MAX))]).await?;
    advance(MINUTE).await;
    assert_eq!(read(&cache, &[("plan", "1")]).await, some(&["tea"]));
    Ok(())
}

#[tokio::test]
async fn clear_forgets_exactly_the_named_namespaces() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    let below = CacheKey::new(["plan", "sub"], "1");
    cache.set(vec![entry("plan", "1", "tea", None), entry("act", "1", "milk", None)]).await?;
    cache.set(vec![(below.clone(), Bytes::from("jam"), None)]).await?;
    cache.clear(Some(&[vec!["plan".to_owned()]])).await?;
    assert_eq!(read(&cache, &[("plan", "1"), ("act", "1")]).await, some(&["", "milk"]));
    assert_eq!(cache.get(&[below]).await?, [Some(Bytes::from("jam"))]);
    Ok(())
}

#[tokio::test]
async fn clear_of_no_namespaces_forgets_nothing() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", None)]).await?;
    cache.clear(Some(&[])).await?;
    assert_eq!(cache.len(), 1);
    Ok(())
}

#[tokio::test]
async fn clear_without_namespaces_forgets_everything() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", None), entry("act", "1", "milk", Some(MINUTE))]).await?;
    cache.clear(None).await?;
    assert!(cache.is_empty());
    Ok(())
}

/// A deadline left behind by a cleared entry would take the entry that is set next under its key.
#[tokio::test(start_paused = true)]
async fn a_cleared_entry_leaves_no_deadline_behind() -> Result<(), CacheError> {
    let cache = MemoryCache::new();
    cache.set(vec![entry("plan", "1", "tea", Some(MINUTE))]).await?;
    cache.clear(None).await?;
    cache.set(vec![entry("plan", "1", "milk", None)]).await?;
    advance(MINUTE).await;
    assert_eq!(read(&cache, &[("plan", "1")]).await, some(&["milk"]));
    Ok(())
}

#[tokio::test]
async fn clones_and_shared_pointers_see_the_same_entries() -> Result<(), CacheError> {
    fn is_a_cache(cache: &impl Cache) -> &dyn Cache {
        cache
    }
    let cache = MemoryCache::new();
    let shared: Arc<dyn Cache> = Arc::new(cache.clone());
    is_a_cache(&shared).set(vec![entry("plan", "1", "tea", None)]).await?;
    assert_eq!(read(&cache, &[("plan", "1")]).await, some(&["tea"]));
    assert_eq!(read(is_a_cache(&shared), &[("plan", "1")]).await, some(&["tea"]));
    is_a_cache(&shared).clear(None).await?;
    assert!(cache.is_empty());
    Ok(())
}

#[test]
fn a_backend_error_keeps_its_source() {
    let error = CacheError::backend("disk full");
    assert_eq!(error.source().expect("it wraps an error").to_string(), "disk full");
}
