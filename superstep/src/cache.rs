//! Where the results of cached nodes are kept: bytes under a namespace and a key, for a time.
//!
//! A cache may forget anything at any time, so a miss is never an error. What it returns is what was set, and not
//! expired.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::Instant;

/// A place to keep results that are costly to compute again.
///
/// ```
/// use std::time::Duration;
///
/// use bytes::Bytes;
/// use superstep::{Cache, CacheError, CacheKey, MemoryCache};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), CacheError> {
/// let cache: Box<dyn Cache> = Box::new(MemoryCache::new());
/// let (plan, act) = (CacheKey::new(["plan"], "1"), CacheKey::new(["act"], "1"));
/// cache.set(vec![(plan.clone(), Bytes::from("tea"), Some(Duration::from_secs(60)))]).await?;
///
/// assert_eq!(cache.get(&[plan, act]).await?, [Some(Bytes::from("tea")), None]);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Cache: Send + Sync + 'static {
    /// What is kept under `keys`, each in its place; `None` for a key that was never set, was cleared or has expired.
    async fn get(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>, CacheError>;

    /// Keeps each value under its key for its time to live, or until cleared if it has none.
    ///
    /// A key that is already there is overwritten, its time to live too; of several entries for one key the last wins.
    async fn set(&self, entries: Vec<(CacheKey, Bytes, Option<Duration>)>) -> Result<(), CacheError>;

    /// Forgets the keys of exactly these namespaces, or everything for `None`.
    async fn clear(&self, namespaces: Option<&[Vec<String>]>) -> Result<(), CacheError>;
}

#[async_trait]
impl<C: Cache + ?Sized> Cache for Arc<C> {
    async fn get(&self, keys: &[CacheKey]) -> Result<Vec<Option<Bytes>>, CacheError> {
        (**self).get(keys).await
    }

    async fn set(&self, entries: Vec<(CacheKey, Bytes, Option<Duration>)>) -> Result<(), CacheError> {
        (**self).set(entries).await
    }

    async fn clear(&self, namespaces: Option<&[Vec<String>]>) -> Result<(), CacheError> {
        (**self).clear(namespaces).await
    }
}

/// The name of one cached result.
///
/// ```
/// use superstep::CacheKey;
///
/// let key = CacheKey::new(["graph", "plan"], "9f2c");
/// assert_eq!(key.namespace, ["graph", "plan"]);
/// assert_eq!(key.key, "9f2c");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey {
    /// What the result belongs to, and what [`Cache::clear`] goes by.
    pub namespace: Vec<String>,
    /// Its name there, made from the input.
    pub key: String,
}

impl CacheKey {
    /// The key `key` in `namespace`.
    pub fn new(namespace: impl IntoIterator<Item = impl Into<String>>, key: impl Into<String>) -> Self {
        Self { namespace: namespace.into_iter().map(Into::into).collect(), key: key.into() }
    }
}

/// Why a cache failed.
///
/// ```
/// use std::error::Error;
///
/// use superstep::CacheError;
///
/// let error = CacheError::backend("connection refused");
/// assert_eq!(error.to_string(), "the cache's backend failed");
/// assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("connection refused"));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The database behind a cache failed; see [`CacheError::backend`].
    #[error("the cache's backend failed")]
    Backend(#[source] Box<dyn Error + Send + Sync>),
}

impl CacheError {
    /// Wraps the error of the database behind a cache.
    pub fn backend(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Backend(source.into())
    }
}

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
