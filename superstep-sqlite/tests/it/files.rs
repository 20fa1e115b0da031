//! Stores and caches in SQLite files: what outlives a process, and what several share.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use superstep::{Cache, CacheKey, PutIf, SearchQuery, Store, StoreError};
use superstep_sqlite::{Clock, SqliteCache, SqliteDatabase, SqliteStore};

const MINUTE: Duration = Duration::from_mins(1);

type Done = Result<(), Box<dyn std::error::Error>>;

/// A file in a folder of its own, which is gone in the end.
struct Fresh(PathBuf);

impl Fresh {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("superstep-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("agents.db")
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the folder can be removed");
    }
}

#[tokio::test]
async fn what_was_put_is_there_when_the_file_is_opened_again() -> Done {
    let file = Fresh::new("again");
    let before = {
        let store = SqliteStore::open(file.path())?;
        store.put(["users"], "ada", "Ada likes tea").await?;
        store.get(["users"], "ada").await?
    };
    let store = SqliteStore::open(file.path())?;
    assert_eq!(store.get(["users"], "ada").await?, before);
    assert_eq!(store.search(SearchQuery::new(["users"]).words("tea")).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn what_was_cached_is_there_when_the_file_is_opened_again() -> Done {
    let file = Fresh::new("cached");
    let key = CacheKey::new(["plan"], "1");
    SqliteCache::open(file.path())?.set(vec![(key.clone(), Bytes::from("tea"), None)]).await?;
    assert_eq!(SqliteCache::open(file.path())?.get(&[key]).await?, [Some(Bytes::from("tea"))]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_open_one_file_lose_no_update_to_each_other() -> Done {
    async fn count_up(store: SqliteStore) -> Result<(), StoreError> {
        let mut done = 0;
        while done < 25 {
            let item = store.get(["n"], "count").await?.expect("it was put");
            let next = item.value_as::<u64>()? + 1;
            done += u32::from(store.put_if(["n"], "count", next, PutIf::Version(item.version)).await?.is_applied());
        }
        Ok(())
    }
    let file = Fresh::new("two");
    let (one, other) = (SqliteStore::open(file.path())?, SqliteStore::open(file.path())?);
    one.put(["n"], "count", 0).await?;
    let (first, second) = (tokio::spawn(count_up(one.clone())), tokio::spawn(count_up(other)));
    first.await??;
    second.await??;
    assert_eq!(one.get_as::<u64>(["n"], "count").await?, Some(50));
    Ok(())
}

#[tokio::test]
async fn a_store_and_a_cache_share_a_database() -> Done {
    let database = SqliteDatabase::memory()?;
    let (store, cache) = (SqliteStore::new(&database), SqliteCache::new(&database));
    let key = CacheKey::new(["n"], "k");
    store.put(["n"], "k", "stored").await?;
    cache.set(vec![(key.clone(), Bytes::from("cached"), None)]).await?;
    cache.clear(None).await?;
    assert_eq!(cache.get(&[key]).await?, [None]);
    assert_eq!(store.get_as::<String>(["n"], "k").await?.as_deref(), Some("stored"));
    Ok(())
}

#[tokio::test]
async fn sweep_says_how_many_items_it_removed() -> Done {
    let clock = Clock::manual();
    let store = SqliteStore::new(&SqliteDatabase::memory()?).with_clock(clock.clone());
    for (key, minutes) in [("a", 1), ("b", 1), ("c", 2)] {
        store.put_with(["n"], key, 1, minutes * MINUTE).await?;
    }
    assert_eq!(store.sweep().await?, 0);
    clock.advance(MINUTE);
    assert_eq!((store.sweep().await?, store.sweep().await?), (2, 0));
    Ok(())
}

#[tokio::test]
async fn the_clock_of_the_machine_goes_by_itself() -> Done {
    let clock = Clock::system();
    let before = clock.now();
    clock.advance(Duration::from_hours(1000));
    assert!(clock.now().duration_since(before)? < Duration::from_hours(1000));
    Ok(())
}
