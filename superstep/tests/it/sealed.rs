//! Sealed databases through their life: encryption is turned on, keys are changed, old ones are taken away.

use bytes::Bytes;
use superstep::{AgentState, Cache, CacheKey, Checkpointer, CompiledStateGraph, EchoAgent, Message, START, StateGraph};
use superstep_storage::{Key, Keys, Seal};

fn keys(id: &str, byte: u8) -> Keys {
    Keys::new(id, Key::from([byte; 32]))
}

fn echo(saver: impl Checkpointer) -> CompiledStateGraph<AgentState> {
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("echo", EchoAgent).add_edge(START, "echo");
    graph.checkpointer(saver).compile().unwrap()
}

/// The names of a graph are kept once for all threads, and were never sealed again: when the first thread and its key
/// were gone, no other thread could be read.
async fn threads_outlive<C: Checkpointer>(saver: impl Fn(Seal) -> C, seals: [Seal; 3]) {
    let [before, both, after] = seals;
    let hello = || AgentState { messages: vec![Message::user("hello")] };
    echo(saver(before)).invoke(hello()).thread("old").await.unwrap();
    let app = echo(saver(both));
    assert_eq!(app.invoke(hello()).thread("old").await.unwrap().state.messages.len(), 4);
    app.invoke(hello()).thread("new").await.unwrap();
    app.delete_thread("old").await.unwrap();
    let app = echo(saver(after));
    assert_eq!(app.thread("new").state().await.unwrap().state.messages.len(), 2);
    assert_eq!(app.invoke(hello()).thread("new").await.unwrap().state.messages.len(), 4);
}

/// Copies had the values under the new key, and the names of the graph under the old one.
async fn copies_need_the_new_key_only<C: Checkpointer>(saver: impl Fn(Seal) -> C, seals: [Seal; 3]) {
    let [before, both, after] = seals;
    let hello = || AgentState { messages: vec![Message::user("hello")] };
    let app = echo(saver(before));
    for _ in 0..3 {
        app.invoke(hello()).thread("t").await.unwrap();
    }
    let app = echo(saver(both));
    for (from, to) in [("t", "again"), ("again", "t")] {
        app.copy_thread(from, to).await.unwrap();
        app.delete_thread(from).await.unwrap();
    }
    let app = echo(saver(after));
    assert_eq!(app.thread("t").history().await.unwrap().len(), 9);
    assert_eq!(app.invoke(hello()).thread("t").await.unwrap().state.messages.len(), 8);
}

/// A program that had forgotten its seal, or had a wrong key, sealed the names of a graph anew, and no other thread of the
/// graph could be read any more.
async fn nobody_spoils_threads<C: Checkpointer>(saver: impl Fn(Seal) -> C) {
    let hello = || AgentState { messages: vec![Message::user("hello")] };
    let sealed = || echo(saver(Seal::new().encrypt(keys("key", 1))));
    sealed().invoke(hello()).thread("sealed").await.unwrap();
    for (thread, seal) in [("plain", Seal::new()), ("wrong", Seal::new().encrypt(keys("key", 2)))] {
        let app = echo(saver(seal));
        app.thread("sealed").state().await.unwrap_err();
        app.invoke(hello()).thread(thread).await.unwrap();
        assert_eq!(app.thread(thread).state().await.unwrap().state.messages.len(), 2);
        assert_eq!(sealed().thread("sealed").state().await.unwrap().state.messages.len(), 2, "beside {thread}");
    }
    assert_eq!(sealed().invoke(hello()).thread("sealed").await.unwrap().state.messages.len(), 4);
}

fn rotation() -> [Seal; 3] {
    [
        Seal::new().encrypt(keys("old", 1)),
        Seal::new().encrypt(keys("new", 2).also_reads("old", Key::from([1; 32]))),
        Seal::new().encrypt(keys("new", 2)),
    ]
}

fn turning_on() -> [Seal; 3] {
    [Seal::new(), Seal::new().encrypt(keys("new", 2)).allow_plain(), Seal::new().encrypt(keys("new", 2))]
}

/// A value that cannot be opened is one that is not there, so that no cache has to be cleared when keys change.
async fn cached_results_are_sealed<C: Cache>(cache: impl Fn(Seal) -> C) {
    let [old, both, new] = rotation();
    let key = CacheKey::new(["plan"], "1");
    cache(old.clone()).set(vec![(key.clone(), Bytes::from("secret"), None)]).await.unwrap();
    let found = async |seal: &Seal| cache(seal.clone()).get(std::slice::from_ref(&key)).await.unwrap().remove(0);
    assert_eq!(found(&old).await.unwrap(), "secret");
    assert_eq!(found(&both).await.unwrap(), "secret");
    assert_eq!(found(&new).await, None);
    assert_eq!(found(&Seal::new()).await, None);
    cache(new.clone()).set(vec![(key.clone(), Bytes::from("again"), None)]).await.unwrap();
    assert_eq!(found(&new).await.unwrap(), "again");
}

mod sqlite {
    use superstep_sqlite::{SqliteCache, SqliteDatabase, SqliteSaver};

    use super::*;

    #[tokio::test]
    async fn threads_outlive_the_key_that_was_there_before_them() {
        let saver = SqliteSaver::memory().unwrap();
        threads_outlive(|seal| saver.clone().seal(seal), rotation()).await;
    }

    #[tokio::test]
    async fn a_thread_that_is_copied_is_encrypted_anew() {
        for seals in [rotation(), turning_on()] {
            let saver = SqliteSaver::memory().unwrap();
            copies_need_the_new_key_only(|seal| saver.clone().seal(seal), seals).await;
        }
    }

    #[tokio::test]
    async fn who_has_no_key_or_a_wrong_one_spoils_no_thread() {
        let saver = SqliteSaver::memory().unwrap();
        nobody_spoils_threads(|seal| saver.clone().seal(seal)).await;
    }

    #[tokio::test]
    async fn encryption_can_be_turned_on() {
        let saver = SqliteSaver::memory().unwrap();
        threads_outlive(|seal| saver.clone().seal(seal), turning_on()).await;
    }

    #[tokio::test]
    async fn cached_results_can_be_encrypted() {
        let database = SqliteDatabase::memory().unwrap();
        cached_results_are_sealed(|seal| SqliteCache::new(&database).seal(seal)).await;
    }

    /// Whoever can write to the file could put one result in the place of another.
    #[tokio::test]
    async fn a_cached_result_counts_in_its_own_place_only() {
        let file = std::env::temp_dir().join(format!("superstep-moved-{}.db", std::process::id()));
        let cache = SqliteCache::open(&file).unwrap();
        let [one, two] = ["one", "two"].map(|key| CacheKey::new(["plan"], key));
        cache
            .set(vec![(one.clone(), Bytes::from("tea"), None), (two.clone(), Bytes::from("milk"), None)])
            .await
            .unwrap();
        let other = rusqlite::Connection::open(&file).unwrap();
        let moved =
            "UPDATE superstep_cache SET value = (SELECT value FROM superstep_cache WHERE key = CAST('two' AS BLOB))";
        other.execute(moved, []).unwrap();
        assert_eq!(cache.get(&[one, two]).await.unwrap(), [None, Some(Bytes::from("milk"))]);
        drop((cache, other));
        std::fs::remove_file(&file).unwrap();
    }
}

mod postgres {
    use superstep_postgres::{PostgresCache, PostgresDatabase, PostgresSaver};

    use super::*;
    use crate::support::postgres::address;

    async fn database(name: &str) -> PostgresDatabase {
        let schema = format!("sealed_{}_{name}", std::process::id());
        PostgresDatabase::builder(address()).schema(schema).connect().await.unwrap()
    }

    #[tokio::test]
    async fn threads_outlive_the_key_that_was_there_before_them() {
        let saver = PostgresSaver::new(&database("rotation").await);
        threads_outlive(|seal| saver.clone().seal(seal), rotation()).await;
    }

    #[tokio::test]
    async fn a_thread_that_is_copied_is_encrypted_anew() {
        for (seals, name) in [(rotation(), "copied"), (turning_on(), "copied_on")] {
            let saver = PostgresSaver::new(&database(name).await);
            copies_need_the_new_key_only(|seal| saver.clone().seal(seal), seals).await;
        }
    }

    #[tokio::test]
    async fn who_has_no_key_or_a_wrong_one_spoils_no_thread() {
        let saver = PostgresSaver::new(&database("spoiled").await);
        nobody_spoils_threads(|seal| saver.clone().seal(seal)).await;
    }

    #[tokio::test]
    async fn encryption_can_be_turned_on() {
        let saver = PostgresSaver::new(&database("on").await);
        threads_outlive(|seal| saver.clone().seal(seal), turning_on()).await;
    }

    #[tokio::test]
    async fn cached_results_can_be_encrypted() {
        let database = database("cache").await;
        cached_results_are_sealed(|seal| PostgresCache::new(&database).seal(seal)).await;
    }
}
