//! A cache in memory.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::Instant;

use super::{Cache, CacheError, CacheKey};

/// A [`Cache`] that lives in this process and ends with it. Clones share their entries.
///
/// ```
/// use bytes::Bytes;
/// use superstep::{Cache, CacheError, CacheKey, MemoryCache};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), CacheError> {
/// let cache = MemoryCache::new();
/// cache.set(vec![(CacheKey::new(["plan"], "1"), Bytes::from("tea"), None)]).await?;
/// assert_eq!(cache.len(), 1);
///
/// cache.clear(None).await?;
/// assert!(cache.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryCache(Arc<Mutex<Entries>>);

impl MemoryCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many entries are held, counting expired ones until the next read or write purges them.
    pub fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Whether no entries are held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // No caller's code runs under the lock, so a poisoned lock still guards whole entries.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Cache for MemoryCache {
    async fn get(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>, CacheError> {
        let mut entries = self.lock();
        entries.purge(Instant::now());
        Ok(keys.iter().map(|key| entries.by_key.get(key).map(|entry| entry.value.clone())).collect())
    }

    async fn set(&self, new: Vec<(CacheKey, Bytes, Option<Duration>)>) -> Result<(), CacheError> {
        let now = Instant::now();
        let mut entries = self.lock();
        entries.purge(now);
        for (key, value, ttl) in new {
            // A deadline past the end of the clock is no deadline.
            let expires_at = ttl.and_then(|ttl| now.checked_add(ttl));
            entries.insert(key, Entry { value, expires_at });
        }
        Ok(())
    }

    async fn clear(&self, namespaces: Option<&[Vec<String>]>) -> Result<(), CacheError> {
        self.lock().clear(namespaces);
        Ok(())
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// `deadlines` has exactly one element for each entry that can expire.
#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<CacheKey, Entry>,
    deadlines: BTreeSet<(Instant, CacheKey)>,
}

#[derive(Debug)]
struct Entry {
    value: Bytes,
    expires_at: Option<Instant>,
}

impl Entries {
    fn insert(&mut self, key: CacheKey, entry: Entry) {
        let expires_at = entry.expires_at;
        let replaced = self.by_key.insert(key.clone(), entry);
        if let Some(at) = replaced.and_then(|entry| entry.expires_at) {
            self.deadlines.remove(&(at, key.clone()));
        }
        if let Some(at) = expires_at {
            self.deadlines.insert((at, key));
        }
    }

    fn purge(&mut self, now: Instant) {
        while self.deadlines.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = self.deadlines.pop_first() {
                self.by_key.remove(&key);
            }
        }
    }

    fn clear(&mut self, namespaces: Option<&[Vec<String>]>) {
        let is_kept = |key: &CacheKey| namespaces.is_some_and(|cleared| !cleared.contains(&key.namespace));
        self.by_key.retain(|key, _| is_kept(key));
        self.deadlines.retain(|(_, key)| is_kept(key));
    }
}
