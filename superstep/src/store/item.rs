//! What a store keeps under one key.

use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Namespace, StoreError};

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
}

impl Item {
    /// An item as a store returns it; for those who write a [`Store`](crate::Store). Both times are `at`.
    pub fn new(namespace: impl Into<Namespace>, key: impl Into<String>, value: Value, at: SystemTime) -> Self {
        Self { namespace: namespace.into(), key: key.into(), value, created_at: at, updated_at: at }
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
