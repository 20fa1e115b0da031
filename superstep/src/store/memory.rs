//! A store in memory.
//!
//! Two invariants: a namespace is in the map only while it holds an item, and `deadlines` has exactly one entry for
//! each item that can expire. Every batch first removes what is due, so nothing after that has to look at the clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use serde_json::Value;
use tokio::time::Instant;

use super::{Item, Namespace, SearchQuery, Store, StoreError, StoreOp, StoreReply, Ttl};

/// A [`Store`] that lives in this process and ends with it. Clones share their items.
///
/// ```
/// use superstep::{MemoryStore, Store, StoreError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new();
/// store.clone().put(["users"], "ada", "tea").await?;
/// assert_eq!(store.get_as::<String>(["users"], "ada").await?.as_deref(), Some("tea"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    ttl: TtlConfig,
    items: Arc<Mutex<Items>>,
}

impl MemoryStore {
    /// An empty store with the default [`TtlConfig`]: items live until deleted, unless their put says otherwise.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with its own rules for how long items live.
    pub fn with_ttl(ttl: TtlConfig) -> Self {
        Self { ttl, items: Arc::default() }
    }

    /// Removes the items whose time has passed and says how many.
    ///
    /// Reads never return such an item and each batch removes them, so this is for a store that is idle.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use superstep::{MemoryStore, Store, StoreError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let store = MemoryStore::new();
    /// store.put_with(["codes"], "login", "481516", Duration::ZERO).await?;
    /// assert_eq!(store.sweep(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sweep(&self) -> usize {
        self.lock().sweep(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, Items> {
        // No caller's code runs under the lock, so a poisoned lock still guards whole items.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long the items of a store live.
///
/// ```
/// use std::time::Duration;
///
/// use superstep::{MemoryStore, TtlConfig};
///
/// let a_day = Duration::from_secs(24 * 60 * 60);
/// let store = MemoryStore::with_ttl(TtlConfig { default: Some(a_day), refresh_on_read: false });
/// # drop(store);
/// assert!(TtlConfig::default().refresh_on_read);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtlConfig {
    /// How long an item lives whose put does not say; `None`, the default, for until it is deleted.
    pub default: Option<Duration>,
    /// Whether a read restarts an item's time, unless the read says otherwise; true by default.
    pub refresh_on_read: bool,
}

impl Default for TtlConfig {
    fn default() -> Self {
        Self { default: None, refresh_on_read: true }
    }
}

impl TtlConfig {
    fn resolve(self, ttl: Ttl) -> Option<Duration> {
        match ttl {
            Ttl::Default => self.default,
            Ttl::Never => None,
            Ttl::After(duration) => Some(duration),
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreReply>, StoreError> {
        ops.iter().try_for_each(StoreOp::validate)?;
        let now = Instant::now();
        let mut items = self.lock();
        items.sweep(now);
        // Reads first, so that they see the state before the batch.
        let replies = ops.iter().map(|op| items.read(op, now, self.ttl)).collect();
        for op in ops {
            items.write(op, now, self.ttl);
        }
        Ok(replies)
    }
}

#[derive(Debug, Default)]
struct Items {
    by_namespace: BTreeMap<Namespace, BTreeMap<String, Entry>>,
    deadlines: BTreeMap<(Instant, Place), (Namespace, String)>,
    next_place: Place,
}

/// The rank of an item in the order of first puts, never given twice.
type Place = u64;

#[derive(Debug)]
struct Entry {
    place: Place,
    value: Value,
    created_at: SystemTime,
    updated_at: SystemTime,
    ttl: Option<Duration>,
    expires_at: Option<Instant>,
}

impl Items {
    fn read(&mut self, op: &StoreOp, now: Instant, ttl: TtlConfig) -> StoreReply {
        match op {
            StoreOp::Get { namespace, key, refresh_ttl } => {
                // As in LangGraph, a namespace that was only read is listed too.
                self.by_namespace.entry(namespace.clone()).or_default();
                let item = self.get(namespace, key);
                if refresh_ttl.unwrap_or(ttl.refresh_on_read) {
                    self.refresh(&item, now);
                }
                StoreReply::Item(item)
            }
            StoreOp::Search(query) => {
                let found = self.search(query);
                if query.refresh_ttl.unwrap_or(ttl.refresh_on_read) {
                    self.refresh(&found, now);
                }
                StoreReply::Items(found)
            }
            StoreOp::ListNamespaces(query) => StoreReply::Namespaces(query.pick(self.by_namespace.keys())),
            StoreOp::Put { .. } | StoreOp::Delete { .. } => StoreReply::Done,
        }
    }

    fn write(&mut self, op: StoreOp, now: Instant, config: TtlConfig) {
        match op {
            StoreOp::Put { namespace, key, value, ttl } => self.put(&namespace, &key, value, config.resolve(ttl), now),
            StoreOp::Delete { namespace, key } => self.remove(&namespace, &key),
            StoreOp::Get { .. } | StoreOp::Search(_) | StoreOp::ListNamespaces(_) => {}
        }
    }

    fn get(&self, namespace: &Namespace, key: &str) -> Option<Item> {
        let entry = self.by_namespace.get(namespace)?.get(key)?;
        Some(entry.to_item(namespace, key))
    }

    fn search(&self, query: &SearchQuery) -> Vec<Item> {
        // Namespaces under one prefix are neighbours in the map.
        let under_prefix = self.by_namespace.range(&query.prefix..);
        let mut found: Vec<_> = under_prefix
            .take_while(|(namespace, _)| namespace.starts_with(&query.prefix))
            .flat_map(|(namespace, entries)| entries.iter().map(move |(key, entry)| (namespace, key, entry)))
            .filter(|(_, _, entry)| query.filter.accepts(&entry.value))
            .collect();
        found.sort_unstable_by_key(|(_, _, entry)| entry.place);
        let page = found.into_iter().skip(query.offset).take(query.limit);
        page.map(|(namespace, key, entry)| entry.to_item(namespace, key)).collect()
    }

    fn put(&mut self, namespace: &Namespace, key: &str, value: Value, ttl: Option<Duration>, now: Instant) {
        let written_at = SystemTime::now();
        let entries = self.by_namespace.entry(namespace.clone()).or_default();
        let entry = entries.entry(key.to_owned()).or_insert_with(|| {
            self.next_place += 1;
            Entry::new(self.next_place, written_at)
        });
        entry.value = value;
        entry.updated_at = written_at;
        entry.ttl = ttl;
        self.schedule(namespace, key, now);
    }

    fn remove(&mut self, namespace: &Namespace, key: &str) {
        let Some(entries) = self.by_namespace.get_mut(namespace) else {
            return;
        };
        let removed = entries.remove(key);
        if entries.is_empty() {
            self.by_namespace.remove(namespace);
        }
        if let Some(deadline) = removed.and_then(|entry| entry.deadline()) {
            self.deadlines.remove(&deadline);
        }
    }

    fn refresh<'a>(&mut self, items: impl IntoIterator<Item = &'a Item>, now: Instant) {
        for item in items {
            self.schedule(&item.namespace, &item.key, now);
        }
    }

    /// Sets the deadline of an item to its time to live from `now`.
    fn schedule(&mut self, namespace: &Namespace, key: &str, now: Instant) {
        let entry = self.by_namespace.get_mut(namespace).and_then(|entries| entries.get_mut(key));
        let Some(entry) = entry else { return };
        if let Some(deadline) = entry.deadline() {
            self.deadlines.remove(&deadline);
        }
        // A deadline past the end of the clock is no deadline.
        entry.expires_at = entry.ttl.and_then(|ttl| now.checked_add(ttl));
        if let Some(deadline) = entry.deadline() {
            self.deadlines.insert(deadline, (namespace.clone(), key.to_owned()));
        }
    }

    fn sweep(&mut self, now: Instant) -> usize {
        let mut removed = 0;
        while let Some(due) = self.deadlines.first_entry().filter(|first| first.key().0 <= now) {
            let (namespace, key) = due.remove();
            self.remove(&namespace, &key);
            removed += 1;
        }
        removed
    }
}

impl Entry {
    fn new(place: Place, created_at: SystemTime) -> Self {
        Self { place, value: Value::Null, created_at, updated_at: created_at, ttl: None, expires_at: None }
    }

    fn deadline(&self) -> Option<(Instant, Place)> {
        self.expires_at.map(|at| (at, self.place))
    }

    fn to_item(&self, namespace: &Namespace, key: &str) -> Item {
        Item {
            namespace: namespace.clone(),
            key: key.to_owned(),
            value: self.value.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}
