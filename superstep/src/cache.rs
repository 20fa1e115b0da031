//! Where the results of cached nodes are kept: bytes under a namespace and a key, for a time.
//!
//! A cache may forget anything at any time, so a miss is never an error. What it returns is what was set, and not
//! expired.

mod flight;
mod memory;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::shown_in_words;

pub(crate) use self::flight::{Flight, Landing, Turn, take_off};
pub use self::memory::MemoryCache;

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

    /// Tells caches of this process apart: those with the same entries have the same identity.
    ///
    /// Tasks that want the same key of the same cache at the same time run once: the others wait for the result. A cache
    /// whose clones share their entries gives the address of what they share; the default is its own address.
    ///
    /// ```
    /// use superstep::{Cache, MemoryCache};
    ///
    /// let cache = MemoryCache::new();
    /// assert_eq!(cache.identity(), cache.clone().identity());
    /// assert_ne!(cache.identity(), MemoryCache::new().identity());
    /// ```
    fn identity(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>().addr()
    }
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

    fn identity(&self) -> usize {
        (**self).identity()
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
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The database behind a cache failed; see [`CacheError::backend`].
    #[error("the cache's backend failed")]
    Backend(#[source] Box<dyn Error + Send + Sync>),
}

shown_in_words!(CacheError);

impl CacheError {
    /// Wraps the error of the database behind a cache.
    pub fn backend(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Backend(source.into())
    }
}
