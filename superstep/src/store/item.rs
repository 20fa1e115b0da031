//! What a store keeps under one key, and what it is given to keep.

use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{FieldPath, Namespace, StoreError, Ttl};

/// A value in a [`Store`](crate::Store), with where and since when it is there.
///
/// ```
/// use superstep::{MemoryStore, Namespace, Store, StoreError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new();
/// store.put(["users"], "ada", "tea").await?;
///
/// let item = store.get(["users"], "ada").await?.expect("it was just put");
/// assert_eq!(item.namespace, Namespace::from(["users"]));
/// assert_eq!(item.value_as::<String>()?, "tea");
/// assert_eq!(item.created_at, item.updated_at);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Item {
    /// The namespace it is under.
    pub namespace: Namespace,
    /// Its key, unique in the namespace.
    pub key: String,
    /// The value as JSON.
    pub value: Value,
    /// When the key was first put.
    pub created_at: SystemTime,
    /// When the key was last put.
    pub updated_at: SystemTime,
    /// Which put this is the result of: each put in a store has a greater version than those before it, also that
    /// of a key that was deleted in between. It is what [`PutIf::Version`] asks for.
    pub version: u64,
    /// How well it fits what was searched for, in a search by words or nearness; greater is better.
    pub score: Option<f64>,
}

impl Item {
    /// An item as a store returns it; for those who write a [`Store`](crate::Store). Both times are `at`, the version
    /// is 0 and there is no score.
    pub fn new(namespace: impl Into<Namespace>, key: impl Into<String>, value: Value, at: SystemTime) -> Self {
        let (namespace, key) = (namespace.into(), key.into());
        Self { namespace, key, value, created_at: at, updated_at: at, version: 0, score: None }
    }

    /// The value as a `T`.
    pub fn value_as<T: DeserializeOwned>(&self) -> Result<T, StoreError> {
        T::deserialize(&self.value).map_err(|source| StoreError::Decode {
            key: self.key.clone(),
            wanted: std::any::type_name::<T>(),
            source,
        })
    }
}

/// A put with everything that can be said about it.
///
/// ```
/// use std::time::Duration;
///
/// use serde_json::json;
/// use superstep::{MemoryStore, NewItem, PutIf, Store, StoreError, StoreOp};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new();
/// let lease = NewItem::new(["leases"], "printer", json!("ada")).ttl(Duration::from_secs(60)).only_if(PutIf::Absent);
/// store.batch(vec![StoreOp::Put(lease.clone())]).await?;
///
/// let refused = store.batch(vec![StoreOp::Put(lease)]).await.expect_err("the lease is taken");
/// assert_eq!(
///     refused.to_string(),
///     "put of key `printer` in namespace `leases` was refused: it was to be absent and has version 1; read it again",
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an item is put by a store"]
#[non_exhaustive]
pub struct NewItem {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its key.
    pub key: String,
    /// The value as JSON.
    pub value: Value,
    /// How long it lives.
    pub ttl: Ttl,
    /// What of it can be searched for.
    pub indexing: Indexing,
    /// When the put is refused.
    pub only_if: PutIf,
}

impl NewItem {
    /// Puts `value` under `key`, with the store's own time to live and index.
    pub fn new(namespace: impl Into<Namespace>, key: impl Into<String>, value: Value) -> Self {
        let (namespace, key) = (namespace.into(), key.into());
        Self { namespace, key, value, ttl: Ttl::Default, indexing: Indexing::Default, only_if: PutIf::Always }
    }

    /// It lives this long.
    pub fn ttl(mut self, ttl: impl Into<Ttl>) -> Self {
        self.ttl = ttl.into();
        self
    }

    /// These parts of it can be searched for by words and nearness.
    pub fn indexing(mut self, indexing: Indexing) -> Self {
        self.indexing = indexing;
        self
    }

    /// Refuses the whole batch unless this holds before it.
    pub fn only_if(mut self, condition: PutIf) -> Self {
        self.only_if = condition;
        self
    }
}

/// Which parts of a put value a search by words or nearness looks at.
///
/// ```
/// use serde_json::json;
/// use superstep::{Indexing, MemoryStore, NewItem, SearchQuery, Store, StoreError, StoreOp};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new();
/// let note = json!({ "title": "tea", "body": "milk first" });
/// let title_only = NewItem::new(["notes"], "1", note).indexing(Indexing::paths(["title"]));
/// store.batch(vec![StoreOp::Put(title_only)]).await?;
///
/// assert_eq!(store.search(SearchQuery::new(["notes"]).words("tea")).await?.len(), 1);
/// assert_eq!(store.search(SearchQuery::new(["notes"]).words("milk")).await?.len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Indexing {
    /// Those that the store is set up for.
    #[default]
    Default,
    /// None: only its key, its namespace and filters find it.
    Never,
    /// These.
    Paths(Vec<FieldPath>),
}

impl Indexing {
    /// These parts, whatever the store is set up for.
    pub fn paths(paths: impl IntoIterator<Item = impl Into<FieldPath>>) -> Self {
        Self::Paths(paths.into_iter().map(Into::into).collect())
    }
}

/// What must hold for a put to be applied. It looks at the state before the batch, as reads do.
///
/// ```
/// use superstep::{MemoryStore, PutIf, Store, StoreError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new();
/// store.put(["counters"], "visits", 41).await?;
///
/// let item = store.get(["counters"], "visits").await?.expect("it was just put");
/// let next = item.value_as::<u64>()? + 1;
/// assert!(store.put_if(["counters"], "visits", next, PutIf::Version(item.version)).await?.is_applied());
/// assert!(!store.put_if(["counters"], "visits", next, PutIf::Version(item.version)).await?.is_applied());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PutIf {
    /// Nothing.
    #[default]
    Always,
    /// There is no item under the key.
    Absent,
    /// The item under the key is of this version.
    Version(u64),
}

impl PutIf {
    /// Checks it against the version that is there; for those who write a [`Store`](crate::Store).
    pub fn check(self, namespace: &Namespace, key: &str, found: Option<u64>) -> Result<(), StoreError> {
        let wanted = match self {
            Self::Always => return Ok(()),
            Self::Absent => None,
            Self::Version(version) => Some(version),
        };
        if found == wanted {
            return Ok(());
        }
        Err(StoreError::Conflict { namespace: namespace.to_string(), key: key.to_owned(), wanted, found })
    }
}

/// What became of a [`Store::put_if`](crate::Store::put_if).
///
/// ```
/// use superstep::{MemoryStore, PutIf, PutOutcome, Store, StoreError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new();
/// assert_eq!(store.put_if(["n"], "k", 1, PutIf::Absent).await?, PutOutcome::Applied { version: 1 });
/// assert_eq!(store.put_if(["n"], "k", 2, PutIf::Absent).await?, PutOutcome::Refused { found: Some(1) });
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The item is there.
    Applied {
        /// Its version.
        version: u64,
    },
    /// The condition did not hold, and nothing was changed.
    Refused {
        /// The version that is there instead.
        found: Option<u64>,
    },
}

impl PutOutcome {
    /// Whether the item is there.
    pub fn is_applied(self) -> bool {
        matches!(self, Self::Applied { .. })
    }
}
