//! What a store is asked and what it answers, as data.
//!
//! Each kind of op has one kind of reply; the pairing is in the docs of [`StoreReply`].

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::{Item, Namespace, NamespaceQuery, SearchQuery, StoreError};

/// One operation of a [`Store::batch`](crate::Store::batch).
///
/// ```
/// use serde_json::json;
/// use superstep::{MemoryStore, Store, StoreError, StoreOp};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new();
/// let moves = vec![StoreOp::delete(["inbox"], "7"), StoreOp::put(["done"], "7", json!("call Bob"))];
/// store.batch(moves).await?;
/// assert!(store.get(["done"], "7").await?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StoreOp {
    /// Read one item.
    Get {
        /// Its namespace.
        namespace: Namespace,
        /// Its key.
        key: String,
        /// Whether the read restarts the item's time to live; `None` leaves it to the store.
        refresh_ttl: Option<bool>,
    },
    /// Write one item.
    Put {
        /// Its namespace.
        namespace: Namespace,
        /// Its key.
        key: String,
        /// The value as JSON.
        value: Value,
        /// How long it lives.
        ttl: Ttl,
    },
    /// Delete one item.
    Delete {
        /// Its namespace.
        namespace: Namespace,
        /// Its key.
        key: String,
    },
    /// Find items.
    Search(SearchQuery),
    /// List the namespaces that hold items.
    ListNamespaces(NamespaceQuery),
}

impl StoreOp {
    /// Reads the item under `key`.
    pub fn get(namespace: impl Into<Namespace>, key: impl Into<String>) -> Self {
        Self::Get { namespace: namespace.into(), key: key.into(), refresh_ttl: None }
    }

    /// Puts `value` under `key`, with the store's own time to live.
    pub fn put(namespace: impl Into<Namespace>, key: impl Into<String>, value: Value) -> Self {
        Self::Put { namespace: namespace.into(), key: key.into(), value, ttl: Ttl::Default }
    }

    /// Deletes the item under `key`.
    pub fn delete(namespace: impl Into<Namespace>, key: impl Into<String>) -> Self {
        Self::Delete { namespace: namespace.into(), key: key.into() }
    }

    /// Checks the namespaces and the filter of this op. Every store calls it before it runs a batch.
    ///
    /// ```
    /// use superstep::StoreOp;
    ///
    /// let refused = StoreOp::get(["users", ""], "ada").validate().expect_err("a label is empty");
    /// assert_eq!(refused.to_string(), "label 1 of namespace `users.` is empty; give every label a name");
    /// ```
    pub fn validate(&self) -> Result<(), StoreError> {
        match self {
            Self::Get { namespace, .. } | Self::Delete { namespace, .. } => namespace.validate(),
            Self::Put { namespace, key, .. } => namespace.validate_for_put(key),
            Self::Search(query) => query.validate(),
            Self::ListNamespaces(query) => query.validate(),
        }
    }
}

/// A put of any serializable value.
pub(super) fn encode_put(
    namespace: Namespace,
    key: String,
    value: &impl Serialize,
    ttl: Ttl,
) -> Result<StoreOp, StoreError> {
    match serde_json::to_value(value) {
        Ok(value) => Ok(StoreOp::Put { namespace, key, value, ttl }),
        Err(source) => Err(StoreError::Encode { key, source }),
    }
}

/// How long a put item lives.
///
/// ```
/// use std::time::Duration;
///
/// use superstep::Ttl;
///
/// assert_eq!(Ttl::from(Duration::from_secs(60)), Ttl::After(Duration::from_secs(60)));
/// assert_eq!(Ttl::default(), Ttl::Default);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ttl {
    /// As long as the store is set up for.
    #[default]
    Default,
    /// Until it is deleted.
    Never,
    /// This long after the put, or after the last read that refreshes it.
    After(Duration),
}

impl From<Duration> for Ttl {
    fn from(duration: Duration) -> Self {
        Self::After(duration)
    }
}

/// The answer to one [`StoreOp`].
///
/// ```
/// use superstep::{MemoryStore, SearchQuery, Store, StoreError, StoreOp};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new();
/// store.put(["users"], "ada", "tea").await?;
///
/// let ops = vec![StoreOp::get(["users"], "ada"), StoreOp::Search(SearchQuery::new(["users"]))];
/// let mut replies = store.batch(ops).await?.into_iter();
/// let (one, all) = (replies.next().expect("a get"), replies.next().expect("a search"));
/// assert_eq!(one.into_item()?.expect("it was put").value, "tea");
/// assert_eq!(all.into_items()?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StoreReply {
    /// To [`StoreOp::Get`].
    Item(Option<Item>),
    /// To [`StoreOp::Put`] and [`StoreOp::Delete`].
    Done,
    /// To [`StoreOp::Search`].
    Items(Vec<Item>),
    /// To [`StoreOp::ListNamespaces`].
    Namespaces(Vec<Namespace>),
}

impl StoreReply {
    /// The reply to a get.
    pub fn into_item(self) -> Result<Option<Item>, StoreError> {
        match self {
            Self::Item(item) => Ok(item),
            other => Err(other.instead_of("Item")),
        }
    }

    /// The reply to a put or a delete.
    pub fn into_done(self) -> Result<(), StoreError> {
        match self {
            Self::Done => Ok(()),
            other => Err(other.instead_of("Done")),
        }
    }

    /// The reply to a search.
    pub fn into_items(self) -> Result<Vec<Item>, StoreError> {
        match self {
            Self::Items(items) => Ok(items),
            other => Err(other.instead_of("Items")),
        }
    }

    /// The reply to a listing of namespaces.
    pub fn into_namespaces(self) -> Result<Vec<Namespace>, StoreError> {
        match self {
            Self::Namespaces(namespaces) => Ok(namespaces),
            other => Err(other.instead_of("Namespaces")),
        }
    }

    fn instead_of(&self, wanted: &'static str) -> StoreError {
        let got = match self {
            Self::Item(_) => "Item",
            Self::Done => "Done",
            Self::Items(_) => "Items",
            Self::Namespaces(_) => "Namespaces",
        };
        StoreError::UnexpectedReply { wanted, got }
    }
}
