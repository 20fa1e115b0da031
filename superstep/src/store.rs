//! Long-term memory: JSON values under a namespace and a key, shared by all threads of a graph.
//!
//! A store has one operation, [`Store::batch`]; every other method is a batch of one. So what holds for a batch
//! (checked before it is applied, answered in order, reads before writes) holds everywhere.

pub mod backend;
mod cursor;
mod embedder;
mod error;
mod filter;
mod index;
mod item;
mod limits;
mod memory;
mod namespace;
mod op;
mod page;
mod path;
mod prepare;
mod query;
mod rank;
mod ttl;
mod words;

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::cursor::Cursor;
pub use self::embedder::Embedder;
pub use self::error::StoreError;
pub use self::filter::{Clause, Comparison, Condition, Filter};
pub use self::index::{Metric, StoreIndex};
pub use self::item::{Indexing, Item, NewItem, PutIf, PutOutcome};
pub use self::memory::MemoryStore;
pub use self::namespace::Namespace;
pub use self::op::{StoreOp, StoreReply};
pub use self::path::FieldPath;
pub use self::query::{NamespaceQuery, Near, SearchPage, SearchQuery};
pub use self::ttl::{Ttl, TtlConfig};

/// Long-term memory that outlives a thread.
///
/// Implement [`batch`](Store::batch); the other methods come with it. They take their arguments by `impl Into`, so on
/// a trait object they are called through the pointer that owns it: `Arc<dyn Store>` and `Box<dyn Store>` are stores.
///
/// ```
/// use std::sync::Arc;
///
/// use serde_json::json;
/// use superstep::{MemoryStore, Store, StoreError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// store.put(["users", "ada"], "drink", json!({ "name": "tea" })).await?;
///
/// let item = store.get(["users", "ada"], "drink").await?.expect("it was just put");
/// assert_eq!(item.value, json!({ "name": "tea" }));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Runs `ops` and answers each in its place.
    ///
    /// A store keeps these promises:
    /// - it calls [`StoreOp::validate`] on every op first, and applies nothing if one is refused;
    /// - all of it is applied or nothing: a put whose [`PutIf`] does not hold refuses the whole batch with
    ///   [`StoreError::Conflict`], and a crash in the middle leaves nothing of it behind;
    /// - reads and conditions see the state before the batch, whatever their position;
    /// - writes are applied in order, so of several writes to one key the last wins;
    /// - items whose time to live has passed are never returned.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::{MemoryStore, Store, StoreError, StoreOp};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let store = MemoryStore::new();
    /// let put = StoreOp::put(["facts"], "sky", json!("blue"));
    /// let get = StoreOp::get(["facts"], "sky");
    ///
    /// let replies = store.batch(vec![put, get.clone()]).await?;
    /// assert_eq!(replies.len(), 2);
    /// assert!(replies[1].clone().into_item()?.is_none(), "a read sees the state before the batch");
    /// # Ok(())
    /// # }
    /// ```
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreReply>, StoreError>;

    /// The item under `key`, or `None` if there is none or it has expired.
    fn get(
        &self,
        namespace: impl Into<Namespace>,
        key: impl Into<String>,
    ) -> impl Future<Output = Result<Option<Item>, StoreError>> + Send
    where
        Self: Sized,
    {
        let op = StoreOp::get(namespace, key);
        async move { run(self, op).await?.into_item() }
    }

    /// The value under `key` as a `T`.
    ///
    /// Gives [`StoreError::Decode`] if there is a value and it is not a `T`.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use superstep::{MemoryStore, Store, StoreError};
    ///
    /// #[derive(Debug, PartialEq, Serialize, Deserialize)]
    /// struct Profile {
    ///     name: String,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let store = MemoryStore::new();
    /// store.put(["users"], "ada", Profile { name: "Ada".into() }).await?;
    ///
    /// let profile: Option<Profile> = store.get_as(["users"], "ada").await?;
    /// assert_eq!(profile, Some(Profile { name: "Ada".into() }));
    /// # Ok(())
    /// # }
    /// ```
    fn get_as<T: DeserializeOwned>(
        &self,
        namespace: impl Into<Namespace>,
        key: impl Into<String>,
    ) -> impl Future<Output = Result<Option<T>, StoreError>> + Send
    where
        Self: Sized,
    {
        let found = self.get(namespace, key);
        async move { found.await?.map(|item| item.value_as()).transpose() }
    }

    /// Puts `value` under `key`, with the store's own time to live.
    ///
    /// An item that is already there is overwritten; it keeps its [`created_at`](Item::created_at) and its place in
    /// the order of a search.
    fn put(
        &self,
        namespace: impl Into<Namespace>,
        key: impl Into<String>,
        value: impl Serialize,
    ) -> impl Future<Output = Result<(), StoreError>> + Send
    where
        Self: Sized,
    {
        self.put_with(namespace, key, value, Ttl::Default)
    }

    /// Puts `value` under `key`, to live as long as `ttl` says: a [`Duration`](std::time::Duration) or a [`Ttl`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use superstep::{MemoryStore, Store, StoreError, Ttl};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let store = MemoryStore::new();
    /// store.put_with(["codes"], "login", "481516", Duration::from_secs(300)).await?;
    /// store.put_with(["codes"], "recovery", "2342", Ttl::Never).await?;
    /// # Ok(())
    /// # }
    /// ```
    fn put_with(
        &self,
        namespace: impl Into<Namespace>,
        key: impl Into<String>,
        value: impl Serialize,
        ttl: impl Into<Ttl>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send
    where
        Self: Sized,
    {
        // Encode before the first poll: the future need not hold the value, so the value need not be `Send`.
        let item = op::encode_item(namespace.into(), key.into(), &value).map(|item| item.ttl(ttl));
        async move { self.put_item(item?).await.map(drop) }
    }

    /// Puts `value` under `key` if `condition` holds, and says whether it did: compare and set.
    ///
    /// ```
    /// use superstep::{MemoryStore, PutIf, Store, StoreError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let store = MemoryStore::new();
    /// assert!(store.put_if(["leader"], "now", "ada", PutIf::Absent).await?.is_applied());
    /// assert!(!store.put_if(["leader"], "now", "bob", PutIf::Absent).await?.is_applied());
    /// assert_eq!(store.get_as::<String>(["leader"], "now").await?.as_deref(), Some("ada"));
    /// # Ok(())
    /// # }
    /// ```
    fn put_if(
        &self,
        namespace: impl Into<Namespace>,
        key: impl Into<String>,
        value: impl Serialize,
        condition: PutIf,
    ) -> impl Future<Output = Result<PutOutcome, StoreError>> + Send
    where
        Self: Sized,
    {
        let item = op::encode_item(namespace.into(), key.into(), &value).map(|item| item.only_if(condition));
        async move {
            match self.put_item(item?).await {
                Ok(version) => Ok(PutOutcome::Applied { version }),
                Err(StoreError::Conflict { found, .. }) => Ok(PutOutcome::Refused { found }),
                Err(error) => Err(error),
            }
        }
    }

    /// Puts an item with everything said about it, and gives its version.
    fn put_item(&self, item: NewItem) -> impl Future<Output = Result<u64, StoreError>> + Send
    where
        Self: Sized,
    {
        async move { run(self, StoreOp::Put(item)).await?.into_version() }
    }

    /// Deletes the item under `key`; nothing happens if there is none.
    fn delete(
        &self,
        namespace: impl Into<Namespace>,
        key: impl Into<String>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send
    where
        Self: Sized,
    {
        let op = StoreOp::delete(namespace, key);
        async move { run(self, op).await?.into_done() }
    }

    /// The items under a namespace prefix that pass a filter, in the order they were first put, or the best first if
    /// the query has words or nearness.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::{Filter, MemoryStore, SearchQuery, Store, StoreError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let store = MemoryStore::new();
    /// store.put(["notes", "ada"], "1", json!({ "stars": 2 })).await?;
    /// store.put(["notes", "bob"], "2", json!({ "stars": 5 })).await?;
    ///
    /// let found = store.search(SearchQuery::new(["notes"]).filter(Filter::gte("stars", 4))).await?;
    /// assert_eq!(found.len(), 1);
    /// assert_eq!(found[0].key, "2");
    /// # Ok(())
    /// # }
    /// ```
    fn search(&self, query: SearchQuery) -> impl Future<Output = Result<Vec<Item>, StoreError>> + Send
    where
        Self: Sized,
    {
        let op = StoreOp::Search(query);
        async move { run(self, op).await?.into_items() }
    }

    /// The items of a search with the cursor to the next ones.
    ///
    /// ```
    /// use superstep::{MemoryStore, SearchQuery, Store, StoreError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let store = MemoryStore::new();
    /// for number in 0..25 {
    ///     store.put(["numbers"], number.to_string(), number).await?;
    /// }
    /// let mut query = SearchQuery::new(["numbers"]);
    /// let mut seen = 0;
    /// loop {
    ///     let page = store.search_page(query.clone()).await?;
    ///     seen += page.items.len();
    ///     let Some(next) = page.next else { break };
    ///     query = query.after(next);
    /// }
    /// assert_eq!(seen, 25);
    /// # Ok(())
    /// # }
    /// ```
    fn search_page(&self, query: SearchQuery) -> impl Future<Output = Result<SearchPage, StoreError>> + Send
    where
        Self: Sized,
    {
        let op = StoreOp::Search(query);
        async move { run(self, op).await?.into_page() }
    }

    /// The namespaces in use, sorted: those that hold an item and, in memory, those that were asked for one.
    ///
    /// ```
    /// use superstep::{MemoryStore, Namespace, NamespaceQuery, Store, StoreError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let store = MemoryStore::new();
    /// store.put(["users", "ada", "notes"], "1", "tea").await?;
    /// store.put(["users", "bob", "notes"], "1", "milk").await?;
    ///
    /// let users = store.list_namespaces(NamespaceQuery::new().prefix(["users"]).max_depth(2)).await?;
    /// assert_eq!(users, [Namespace::from(["users", "ada"]), Namespace::from(["users", "bob"])]);
    /// # Ok(())
    /// # }
    /// ```
    fn list_namespaces(&self, query: NamespaceQuery) -> impl Future<Output = Result<Vec<Namespace>, StoreError>> + Send
    where
        Self: Sized,
    {
        let op = StoreOp::ListNamespaces(query);
        async move { run(self, op).await?.into_namespaces() }
    }
}

#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreReply>, StoreError> {
        (**self).batch(ops).await
    }
}

#[async_trait]
impl<S: Store + ?Sized> Store for Box<S> {
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreReply>, StoreError> {
        (**self).batch(ops).await
    }
}

async fn run<S: Store>(store: &S, op: StoreOp) -> Result<StoreReply, StoreError> {
    let mut replies = store.batch(vec![op]).await?;
    match replies.len() {
        1 => Ok(replies.remove(0)),
        got => Err(StoreError::ReplyCount { wanted: 1, got }),
    }
}
