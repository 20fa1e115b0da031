//! A store in memory.
//!
//! Two invariants: a namespace is in the map only while it holds an item or was asked for one, and `deadlines` has
//! exactly one entry for each item that can expire. Every batch first removes what is due, so nothing after that has to
//! look at the clock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use serde_json::Value;
use tokio::time::Instant;

use super::backend::{PageBuilder, PreparedOp, PreparedPut, PreparedSearch, Ranking, Scores, StoreSetup, Verdict};
use super::{
    Cursor, Item, Namespace, SearchPage, SearchQuery, Store, StoreError, StoreIndex, StoreOp, StoreReply, TtlConfig,
};

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
    setup: StoreSetup,
    items: Arc<Mutex<Items>>,
}

impl MemoryStore {
    /// An empty store with the default [`TtlConfig`]: items live until deleted, unless their put says otherwise.
    pub fn new() -> Self {
        Self::default()
    }

    /// Items live as long as `ttl` says, from the next put on.
    #[must_use = "it gives back the store"]
    pub fn with_ttl(mut self, ttl: TtlConfig) -> Self {
        self.setup.ttl = ttl;
        self
    }

    /// Items can be searched for as `index` says, from the next put on.
    #[must_use = "it gives back the store"]
    pub fn with_index(mut self, index: StoreIndex) -> Self {
        self.setup.index = index;
        self
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

#[async_trait]
impl Store for MemoryStore {
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreReply>, StoreError> {
        let ops = self.setup.prepare(ops).await?;
        let now = Instant::now();
        let mut items = self.lock();
        items.sweep(now);
        items.check(&ops)?;
        // Reads first, so that they see the state before the batch.
        let mut replies: Vec<StoreReply> = ops.iter().map(|op| items.read(op, now)).collect();
        for (op, reply) in ops.into_iter().zip(&mut replies) {
            items.write(op, reply, now);
        }
        Ok(replies)
    }
}

#[derive(Debug, Default)]
struct Items {
    by_namespace: BTreeMap<Namespace, BTreeMap<String, Entry>>,
    deadlines: BTreeMap<(Instant, Place), (Namespace, String)>,
    /// The version of the last put.
    last_version: u64,
}

/// The rank of an item in the order of first puts, never given twice: the version of its first put.
type Place = u64;

#[derive(Debug)]
struct Entry {
    place: Place,
    version: u64,
    value: Value,
    words: BTreeSet<String>,
    vectors: Vec<Vec<f32>>,
    created_at: SystemTime,
    updated_at: SystemTime,
    ttl: Option<Duration>,
    expires_at: Option<Instant>,
}

/// An entry and where it is.
type Found<'a> = (&'a Namespace, &'a String, &'a Entry);

impl Items {
    /// Whether the conditions of all puts hold.
    fn check(&self, ops: &[PreparedOp]) -> Result<(), StoreError> {
        ops.iter().try_for_each(|op| match op {
            PreparedOp::Put(put) => {
                let found = self.entry(&put.namespace, &put.key).map(|entry| entry.version);
                put.only_if.check(&put.namespace, &put.key, found)
            }
            _ => Ok(()),
        })
    }

    fn read(&mut self, op: &PreparedOp, now: Instant) -> StoreReply {
        match op {
            PreparedOp::Get { namespace, key, refresh } => {
                // As in LangGraph, a namespace that was only read is listed too.
                self.by_namespace.entry(namespace.clone()).or_default();
                let item = self.entry(namespace, key).map(|entry| entry.to_item(namespace, key));
                if *refresh {
                    self.refresh(&item, now);
                }
                StoreReply::Item(item)
            }
            PreparedOp::Search(search) => {
                let page = self.search(search);
                if search.refresh {
                    self.refresh(&page.items, now);
                }
                StoreReply::Page(page)
            }
            PreparedOp::ListNamespaces(query) => StoreReply::Namespaces(query.pick(self.by_namespace.keys())),
            PreparedOp::Put(_) | PreparedOp::Delete { .. } => StoreReply::Done,
        }
    }

    fn write(&mut self, op: PreparedOp, reply: &mut StoreReply, now: Instant) {
        match op {
            PreparedOp::Put(put) => *reply = StoreReply::Stored(self.put(*put, now)),
            PreparedOp::Delete { namespace, key } => self.remove(&namespace, &key),
            PreparedOp::Get { .. } | PreparedOp::Search(_) | PreparedOp::ListNamespaces(_) => {}
        }
    }

    fn entry(&self, namespace: &Namespace, key: &str) -> Option<&Entry> {
        self.by_namespace.get(namespace)?.get(key)
    }

    fn search(&self, search: &PreparedSearch) -> SearchPage {
        let found = match &search.ranking {
            None => self.in_order_of_puts(&search.query),
            Some(ranking) => self.by_rank(&search.query, ranking),
        };
        let mut page = PageBuilder::new(&search.query);
        for (cursor, (namespace, key, entry)) in found {
            match page.judge(&entry.value) {
                Verdict::Pass => {}
                Verdict::Take => page.take(cursor, entry.to_item(namespace, key)),
                Verdict::Stop => break,
            }
        }
        page.finish()
    }

    fn in_order_of_puts(&self, query: &SearchQuery) -> Vec<(Cursor, Found<'_>)> {
        let is_behind = |(_, _, entry): &Found<'_>| query.after.is_none_or(|cursor| entry.place > cursor.place);
        let mut found: Vec<_> = self.under(&query.prefix).filter(is_behind).collect();
        found.sort_unstable_by_key(|(_, _, entry)| entry.place);
        found.into_iter().map(|found| (Cursor::new(found.2.place, None), found)).collect()
    }

    fn by_rank(&self, query: &SearchQuery, ranking: &Ranking) -> Vec<(Cursor, Found<'_>)> {
        let mut scores = Scores::new(ranking);
        let mut by_place = HashMap::new();
        for found in self.under(&query.prefix) {
            let (_, _, entry) = found;
            let words = ranking.words.iter().flatten().filter(|word| entry.words.contains(*word)).count();
            scores.add_words(entry.place, words);
            entry.vectors.iter().for_each(|vector| scores.add_vector(entry.place, vector));
            by_place.insert(entry.place, found);
        }
        scores.in_order(query.after).into_iter().map(|ranked| (ranked.cursor(), by_place[&ranked.place])).collect()
    }

    fn under(&self, prefix: &Namespace) -> impl Iterator<Item = Found<'_>> {
        // Namespaces under one prefix are neighbours in the map.
        let namespaces = self.by_namespace.range(prefix..);
        namespaces
            .take_while(move |(namespace, _)| namespace.starts_with(prefix))
            .flat_map(|(namespace, entries)| entries.iter().map(move |(key, entry)| (namespace, key, entry)))
    }

    fn put(&mut self, put: PreparedPut, now: Instant) -> u64 {
        let PreparedPut { namespace, key, value, ttl, words, vectors, only_if: _ } = put;
        self.last_version += 1;
        let version = self.last_version;
        let updated_at = SystemTime::now();
        let entries = self.by_namespace.entry(namespace.clone()).or_default();
        let before = entries.get(&key);
        let (place, created_at) = before.map_or((version, updated_at), |entry| (entry.place, entry.created_at));
        let expires_at = before.and_then(|entry| entry.expires_at);
        let entry = Entry { place, version, value, words, vectors, created_at, updated_at, ttl, expires_at };
        entries.insert(key.clone(), entry);
        self.schedule(&namespace, &key, now);
        version
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
            version: self.version,
            score: None,
        }
    }
}
