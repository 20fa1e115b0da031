//! Every store and cache of superstep passes the suites that anyone's must pass.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use superstep::conformance::cache::{self, CacheMaker};
use superstep::conformance::store::{self, StoreMaker, StoreSetup};
use superstep::{Cache, MemoryCache, MemoryStore, Store};

struct Memory;

#[async_trait]
impl StoreMaker for Memory {
    async fn make(&self, setup: StoreSetup) -> Arc<dyn Store> {
        Arc::new(MemoryStore::new().with_ttl(setup.ttl).with_index(setup.index))
    }

    async fn advance(&self, time: Duration) {
        tokio::time::advance(time).await;
    }
}

#[async_trait]
impl CacheMaker for Memory {
    async fn make(&self) -> Arc<dyn Cache> {
        Arc::new(MemoryCache::new())
    }

    async fn advance(&self, time: Duration) {
        tokio::time::advance(time).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_store_in_memory_conforms() {
    store::check(Memory).await.assert();
}

#[tokio::test(start_paused = true)]
async fn the_cache_in_memory_conforms() {
    cache::check(Memory).await.assert();
}

mod sqlite {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use superstep_sqlite::{SqliteCache, SqliteDatabase, SqliteStore};
    use superstep_storage::Clock;

    use super::*;

    /// Databases in memory, or in files of a folder that is gone in the end.
    struct Sqlite {
        clock: Clock,
        folder: Option<PathBuf>,
        made: AtomicUsize,
    }

    impl Sqlite {
        fn in_memory() -> Self {
            Self { clock: Clock::manual(), folder: None, made: AtomicUsize::new(0) }
        }

        fn in_files(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("superstep-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("the folder can be made");
            Self { clock: Clock::manual(), folder: Some(folder), made: AtomicUsize::new(0) }
        }

        fn database(&self) -> SqliteDatabase {
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            let opened = match &self.folder {
                None => SqliteDatabase::memory(),
                Some(folder) => SqliteDatabase::open(folder.join(format!("{number}.db"))),
            };
            opened.expect("the database opens")
        }
    }

    impl Drop for Sqlite {
        fn drop(&mut self) {
            if let Some(folder) = &self.folder {
                std::fs::remove_dir_all(folder).expect("the folder can be removed");
            }
        }
    }

    #[async_trait]
    impl StoreMaker for Sqlite {
        async fn make(&self, setup: StoreSetup) -> Arc<dyn Store> {
            let store = SqliteStore::new(&self.database()).with_clock(self.clock.clone());
            Arc::new(store.with_ttl(setup.ttl).with_index(setup.index))
        }

        async fn advance(&self, time: Duration) {
            self.clock.advance(time);
        }
    }

    #[async_trait]
    impl CacheMaker for Sqlite {
        async fn make(&self) -> Arc<dyn Cache> {
            Arc::new(SqliteCache::new(&self.database()).with_clock(self.clock.clone()))
        }

        async fn advance(&self, time: Duration) {
            self.clock.advance(time);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_store_in_sqlite_conforms() {
        store::check(Sqlite::in_memory()).await.assert();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_store_in_a_sqlite_file_conforms() {
        store::check(Sqlite::in_files("stores")).await.assert();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_cache_in_sqlite_conforms() {
        cache::check(Sqlite::in_memory()).await.assert();
        cache::check(Sqlite::in_files("caches")).await.assert();
    }
}

mod postgres {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use superstep_postgres::{PostgresCache, PostgresDatabase, PostgresStore};
    use superstep_storage::Clock;

    use super::*;

    /// Each store and cache in a schema of its own.
    struct Postgres {
        clock: Clock,
        address: String,
    }

    impl Postgres {
        fn new() -> Self {
            Self { clock: Clock::manual(), address: crate::support::postgres::address() }
        }

        async fn database(&self) -> PostgresDatabase {
            static MADE: AtomicUsize = AtomicUsize::new(0);
            let schema = format!("suite_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
            let builder = PostgresDatabase::builder(&self.address).schema(schema).pool_size(4);
            builder.connect().await.expect("the server can be reached")
        }
    }

    #[async_trait]
    impl StoreMaker for Postgres {
        async fn make(&self, setup: StoreSetup) -> Arc<dyn Store> {
            let store = PostgresStore::new(&self.database().await).with_clock(self.clock.clone());
            Arc::new(store.with_ttl(setup.ttl).with_index(setup.index))
        }

        async fn advance(&self, time: Duration) {
            self.clock.advance(time);
        }
    }

    #[async_trait]
    impl CacheMaker for Postgres {
        async fn make(&self) -> Arc<dyn Cache> {
            Arc::new(PostgresCache::new(&self.database().await).with_clock(self.clock.clone()))
        }

        async fn advance(&self, time: Duration) {
            self.clock.advance(time);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_store_in_postgres_conforms() {
        store::check(Postgres::new()).await.assert();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_cache_in_postgres_conforms() {
        cache::check(Postgres::new()).await.assert();
    }
}
