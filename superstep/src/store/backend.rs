//! What stores have in common, for those who write one.
//!
//! A [`Store`](crate::Store) has one method, `batch`. Most of what it promises is the same wherever items are kept, and
//! is here: [`StoreSetup::prepare`] checks a batch and finds words and vectors, [`Scores`] puts what a search found in
//! order, a [`PageBuilder`] filters and fills the page, a [`NamespaceList`] the list of namespaces. A backend finds
//! candidates (too many, but never too few) and writes.
//!
//! ```
//! use std::sync::Mutex;
//! use std::time::SystemTime;
//!
//! use async_trait::async_trait;
//! use superstep::store::backend::{NamespaceList, PageBuilder, PreparedOp, PreparedSearch, Scores, StoreSetup, Verdict};
//! use superstep::{Cursor, Item, SearchPage, SearchQuery, Store, StoreError, StoreOp, StoreReply};
//!
//! /// Items in the order of their first puts. They never expire.
//! #[derive(Default)]
//! struct ListStore {
//!     setup: StoreSetup,
//!     items: Mutex<Vec<Entry>>,
//! }
//!
//! struct Entry {
//!     item: Item,
//!     place: u64,
//!     words: Vec<String>,
//! }
//!
//! #[async_trait]
//! impl Store for ListStore {
//!     async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreReply>, StoreError> {
//!         let ops = self.setup.prepare(ops).await?;
//!         let mut items = self.items.lock().expect("nothing panics under the lock");
//!         for op in &ops {
//!             let PreparedOp::Put(put) = op else { continue };
//!             let is_it = |entry: &&Entry| entry.item.namespace == put.namespace && entry.item.key == put.key;
//!             put.only_if.check(&put.namespace, &put.key, items.iter().find(is_it).map(|entry| entry.item.version))?;
//!         }
//!         // Reads see what was there before the batch.
//!         let mut replies: Vec<StoreReply> = ops.iter().map(|op| read(&items, op)).collect();
//!         for (op, reply) in ops.into_iter().zip(&mut replies) {
//!             write(&mut items, op, reply);
//!         }
//!         Ok(replies)
//!     }
//! }
//!
//! fn read(items: &[Entry], op: &PreparedOp) -> StoreReply {
//!     match op {
//!         PreparedOp::Get { namespace, key, .. } => {
//!             let found = items.iter().find(|entry| entry.item.namespace == *namespace && entry.item.key == *key);
//!             StoreReply::Item(found.map(|entry| entry.item.clone()))
//!         }
//!         PreparedOp::Search(search) => StoreReply::Page(page(items, search)),
//!         PreparedOp::ListNamespaces(query) => {
//!             let mut namespaces: Vec<_> = items.iter().map(|entry| &entry.item.namespace).collect();
//!             namespaces.sort_unstable();
//!             let mut list = NamespaceList::new(query);
//!             namespaces.iter().all(|namespace| list.offer(namespace));
//!             StoreReply::Namespaces(list.finish())
//!         }
//!         PreparedOp::Put(_) | PreparedOp::Delete { .. } => StoreReply::Done,
//!     }
//! }
//!
//! fn page(items: &[Entry], search: &PreparedSearch) -> SearchPage {
//!     let is_below = |entry: &&Entry| entry.item.namespace.starts_with(&search.query.prefix);
//!     let is_next = |entry: &&Entry| search.query.after.is_none_or(|after| entry.place > after.place());
//!     let order: Vec<(Cursor, &Entry)> = match &search.ranking {
//!         None => {
//!             let found = items.iter().filter(is_below).filter(is_next);
//!             found.map(|entry| (Cursor::new(entry.place, None), entry)).collect()
//!         }
//!         Some(ranking) => {
//!             let mut scores = Scores::new(ranking);
//!             for entry in items.iter().filter(is_below) {
//!                 let words = ranking.words.iter().flatten().filter(|word| entry.words.contains(word));
//!                 scores.add_words(entry.place, words.count());
//!             }
//!             let at = |place| items.iter().find(|entry| entry.place == place).expect("it was found");
//!             scores.in_order(search.query.after).iter().map(|ranked| (ranked.cursor(), at(ranked.place))).collect()
//!         }
//!     };
//!     let mut page = PageBuilder::new(&search.query);
//!     for (cursor, entry) in order {
//!         match page.judge(&entry.item.value) {
//!             Verdict::Pass => {}
//!             Verdict::Take => page.take(cursor, entry.item.clone()),
//!             Verdict::Stop => break,
//!         }
//!     }
//!     page.finish()
//! }
//!
//! fn write(items: &mut Vec<Entry>, op: PreparedOp, reply: &mut StoreReply) {
//!     match op {
//!         PreparedOp::Put(put) => {
//!             let version = 1 + items.iter().map(|entry| entry.item.version).max().unwrap_or(0);
//!             let is_it = |entry: &Entry| entry.item.namespace == put.namespace && entry.item.key == put.key;
//!             let mut item = Item::new(put.namespace.clone(), put.key.clone(), put.value, SystemTime::now());
//!             item.version = version;
//!             let words = put.words.into_iter().collect();
//!             match items.iter().position(is_it) {
//!                 Some(at) => items[at] = Entry { item, words, place: items[at].place },
//!                 None => items.push(Entry { item, words, place: version }),
//!             }
//!             *reply = StoreReply::Stored(version);
//!         }
//!         PreparedOp::Delete { namespace, key } => {
//!             items.retain(|entry| entry.item.namespace != namespace || entry.item.key != key);
//!         }
//!         _ => {}
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StoreError> {
//! let store = ListStore::default();
//! store.put(["notes"], "1", "green tea").await?;
//! store.put(["notes"], "2", "milk").await?;
//! let found = store.search(SearchQuery::new(["notes"]).words("tea")).await?;
//! assert_eq!(found.len(), 1);
//! assert_eq!(found[0].score, Some(1.0));
//! # Ok(())
//! # }
//! ```

pub use super::page::{PageBuilder, Verdict};
pub use super::prepare::{PreparedOp, PreparedPut, PreparedSearch, StoreSetup};
pub use super::query::NamespaceList;
pub use super::rank::{Ranked, Ranking, Scores, millionths};
