//! What every cache promises.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use async_trait::async_trait;
//! use superstep::conformance::cache::{self, CacheMaker};
//! use superstep::{Cache, MemoryCache};
//!
//! struct Memory;
//!
//! #[async_trait]
//! impl CacheMaker for Memory {
//!     async fn make(&self) -> Arc<dyn Cache> {
//!         Arc::new(MemoryCache::new())
//!     }
//!
//!     async fn advance(&self, time: Duration) {
//!         tokio::time::advance(time).await;
//!     }
//! }
//!
//! # fn main() -> Result<(), std::io::Error> {
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
//! runtime.block_on(cache::check(Memory)).assert();
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::claims::{clauses, holds, same};
use super::{Broken, Checked, Report};
use crate::{Cache, CacheKey};

const ALMOST_A_MINUTE: Duration = Duration::from_millis(59_999);
const MINUTE: Duration = Duration::from_mins(1);

/// Makes the caches that are checked.
#[async_trait]
pub trait CacheMaker: Send + Sync + 'static {
    /// An empty cache.
    async fn make(&self) -> Arc<dyn Cache>;

    /// Lets so much time pass for the caches it made.
    async fn advance(&self, time: Duration);
}

/// Checks all clauses, each on a cache of its own.
pub async fn check(maker: impl CacheMaker) -> Report {
    let maker: Arc<dyn CacheMaker> = Arc::new(maker);
    let mut report = Report::default();
    clauses!(report, maker: get_answers_each_key_in_its_place, a_key_belongs_to_its_namespace,
        the_last_of_two_sets_wins, bytes_come_back_as_they_were, an_entry_lives_until_its_ttl,
        a_new_set_replaces_the_ttl, clear_forgets_exactly_the_named_namespaces, clear_forgets_everything,
        hostile_keys_are_taken_literally, clones_have_one_identity);
    report
}

type Entry = (CacheKey, Bytes, Option<Duration>);

fn entry(namespace: &str, key: &str, value: &str, ttl: Option<Duration>) -> Entry {
    (CacheKey::new([namespace], key), Bytes::copy_from_slice(value.as_bytes()), ttl)
}

/// What is kept under each `namespace/key`, `-` for nothing.
async fn read(cache: &Arc<dyn Cache>, names: &[&str]) -> Result<String, Broken> {
    let key = |name: &&str| {
        let (namespace, key) = name.split_once('/').expect("a name has a namespace and a key");
        CacheKey::new([namespace], key)
    };
    let found = cache.get(&names.iter().map(key).collect::<Vec<_>>()).await?;
    let shown = found.iter().map(|bytes| bytes.as_ref().map_or("-".into(), |b| String::from_utf8_lossy(b)));
    Ok(shown.collect::<Vec<_>>().join(" "))
}

async fn get_answers_each_key_in_its_place(maker: &dyn CacheMaker) -> Checked {
    let cache = maker.make().await;
    cache.set(vec![entry("n", "1", "tea", None), entry("n", "2", "milk", None)]).await?;
    same("entries", read(&cache, &["n/2", "n/3", "n/1", "n/2"]).await?, "milk - tea milk".to_owned())?;
    same("of no keys", cache.get(&[]).await?.len(), 0)
}

async fn a_key_belongs_to_its_namespace(maker: &dyn CacheMaker) -> Checked {
    let cache = maker.make().await;
    cache.set(vec![entry("n", "1", "tea", None)]).await?;
    same("entries", read(&cache, &["m/1", "n/1"]).await?, "- tea".to_owned())?;
    let others = [
        CacheKey::new(["n", "1"], "1"),
        CacheKey::new(["n", ""], "1"),
        CacheKey::new(Vec::<String>::new(), "1"),
        CacheKey::new(["n\",\"1"], "1"),
    ];
    same("others", cache.get(&others).await?, vec![None; 4])
}

async fn the_last_of_two_sets_wins(maker: &dyn CacheMaker) -> Checked {
    let cache = maker.make().await;
    cache.set(vec![entry("n", "1", "tea", None), entry("n", "1", "milk", None)]).await?;
    same("entry", read(&cache, &["n/1"]).await?, "milk".to_owned())?;
    cache.set(vec![entry("n", "1", "jam", None)]).await?;
    same("entry", read(&cache, &["n/1"]).await?, "jam".to_owned())
}

async fn bytes_come_back_as_they_were(maker: &dyn CacheMaker) -> Checked {
    let cache = maker.make().await;
    let all: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for bytes in [Bytes::new(), Bytes::from(all)] {
        let key = CacheKey::new(["n"], "k");
        cache.set(vec![(key.clone(), bytes.clone(), None)]).await?;
        holds("the bytes are the same", cache.get(&[key]).await? == [Some(bytes)])?;
    }
    Ok(())
}

async fn an_entry_lives_until_its_ttl(maker: &dyn CacheMaker) -> Checked {
    let cache = maker.make().await;
    let entries = vec![
        entry("n", "1", "tea", Some(MINUTE)),
        entry("n", "2", "milk", None),
        entry("n", "3", "jam", Some(Duration::MAX)),
        entry("n", "4", "ham", Some(Duration::ZERO)),
    ];
    cache.set(entries).await?;
    let names = ["n/1", "n/2", "n/3", "n/4"];
    maker.advance(ALMOST_A_MINUTE).await;
    same("before", read(&cache, &names).await?, "tea milk jam -".to_owned())?;
    maker.advance(Duration::from_millis(1)).await;
    same("after", read(&cache, &names).await?, "- milk jam -".to_owned())
}

async fn a_new_set_replaces_the_ttl(maker: &dyn CacheMaker) -> Checked {
    let cache = maker.make().await;
    cache.set(vec![entry("n", "1", "tea", Some(MINUTE)), entry("n", "2", "tea", None)]).await?;
    cache.set(vec![entry("n", "1", "milk", None), entry("n", "2", "milk", Some(MINUTE))]).await?;
    maker.advance(MINUTE).await;
    same("entries", read(&cache, &["n/1", "n/2"]).await?, "milk -".to_owned())
}

async fn clear_forgets_exactly_the_named_namespaces(maker: &dyn CacheMaker) -> Checked {
    let cache = maker.make().await;
    let below = CacheKey::new(["n", "sub"], "1");
    cache.set(vec![entry("n", "1", "tea", None), entry("m", "1", "milk", None)]).await?;
    cache.set(vec![(below.clone(), Bytes::from("jam"), None)]).await?;
    cache.clear(Some(&[vec!["n".to_owned()]])).await?;
    same("entries", read(&cache, &["n/1", "m/1"]).await?, "- milk".to_owned())?;
    same("below", cache.get(&[below]).await?, vec![Some(Bytes::from("jam"))])?;
    cache.clear(Some(&[])).await?;
    same("entries", read(&cache, &["m/1"]).await?, "milk".to_owned())
}

async fn clear_forgets_everything(maker: &dyn CacheMaker) -> Checked {
    let cache = maker.make().await;
    cache.set(vec![entry("n", "1", "tea", None), entry("m", "1", "milk", Some(MINUTE))]).await?;
    cache.clear(None).await?;
    same("entries", read(&cache, &["n/1", "m/1"]).await?, "- -".to_owned())
}

async fn hostile_keys_are_taken_literally(maker: &dyn CacheMaker) -> Checked {
    let cache = maker.make().await;
    let long = "x".repeat(10_000);
    let names = ["'", "\"", "\0", "", "%", "'; TRUNCATE cache; --", "a,b", "[\"a\"]", "\\", "\u{1f375}", &long];
    let keys: Vec<CacheKey> =
        names.iter().flat_map(|a| names.iter().map(move |b| CacheKey::new([*a, *b], format!("{b}{a}")))).collect();
    let value = |ix: usize| Bytes::from(ix.to_string());
    cache.set(keys.iter().enumerate().map(|(ix, key)| (key.clone(), value(ix), None)).collect()).await?;
    let found = cache.get(&keys).await?;
    holds("each key has its value", found.iter().enumerate().all(|(ix, bytes)| *bytes == Some(value(ix))))?;
    for key in &keys {
        cache.clear(Some(std::slice::from_ref(&key.namespace))).await?;
    }
    holds("all are forgotten", cache.get(&keys).await?.iter().all(Option::is_none))
}

async fn clones_have_one_identity(maker: &dyn CacheMaker) -> Checked {
    let (one, other) = (maker.make().await, maker.make().await);
    same("identity of a clone", one.clone().identity(), one.identity())?;
    holds("caches with entries of their own are told apart", one.identity() != other.identity())
}
