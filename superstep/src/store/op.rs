//! What a store is asked and what it answers, as data.
//!
//! Each kind of op has one kind of reply; the pairing is in the docs of [`StoreReply`].

use serde::Serialize;
use serde_json::Value;

use super::{Item, Namespace, NamespaceQuery, NewItem, SearchPage, SearchQuery, StoreError, limits};

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
    Put(NewItem),
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
        Self::Put(NewItem::new(namespace, key, value))
    }

    /// Deletes the item under `key`.
    pub fn delete(namespace: impl Into<Namespace>, key: impl Into<String>) -> Self {
        Self::Delete { namespace: namespace.into(), key: key.into() }
    }

    /// Checks the namespace, key, value and filter of this op. Every store calls it before it runs a batch.
    ///
    /// ```
    /// use superstep::StoreOp;
    ///
    /// let refused = StoreOp::get(["users", ""], "ada").validate().expect_err("a label is empty");
    /// assert_eq!(refused.to_string(), "label 1 of namespace `users.` is empty; give every label a name");
    /// ```
    pub fn validate(&self) -> Result<(), StoreError> {
        match self {
            Self::Get { namespace, key, .. } | Self::Delete { namespace, key } => {
                namespace.validate()?;
                limits::key(key)
            }
            Self::Put(item) => {
                item.namespace.validate_for_put(&item.key)?;
                limits::key(&item.key)?;
                limits::value(&item.key, &item.value)
            }
            Self::Search(query) => query.validate(),
            Self::ListNamespaces(query) => query.validate(),
        }
    }
}

/// A new item of any serializable value.
pub(super) fn encode_item(namespace: Namespace, key: String, value: &impl Serialize) -> Result<NewItem, StoreError> {
    match serde_json::to_value(value) {
        Ok(value) => Ok(NewItem::new(namespace, key, value)),
        Err(source) => Err(StoreError::Encode { key, source }),
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
    /// To [`StoreOp::Put`]: the version of the item.
    Stored(u64),
    /// To [`StoreOp::Delete`].
    Done,
    /// To [`StoreOp::Search`].
    Page(SearchPage),
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

    /// The reply to a put: the version of the item.
    pub fn into_version(self) -> Result<u64, StoreError> {
        match self {
            Self::Stored(version) => Ok(version),
            other => Err(other.instead_of("Stored")),
        }
    }

    /// The reply to a delete.
    pub fn into_done(self) -> Result<(), StoreError> {
        match self {
            Self::Done => Ok(()),
            other => Err(other.instead_of("Done")),
        }
    }

    /// The reply to a search.
    pub fn into_page(self) -> Result<SearchPage, StoreError> {
        match self {
            Self::Page(page) => Ok(page),
            other => Err(other.instead_of("Page")),
        }
    }

    /// The items in the reply to a search.
    pub fn into_items(self) -> Result<Vec<Item>, StoreError> {
        Ok(self.into_page()?.items)
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
            Self::Stored(_) => "Stored",
            Self::Done => "Done",
            Self::Page(_) => "Page",
            Self::Namespaces(_) => "Namespaces",
        };
        StoreError::UnexpectedReply { wanted, got }
    }
}
