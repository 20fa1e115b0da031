//! Servers that say nothing any more, and connections on which nothing comes.

use std::error::Error;

use bytes::Bytes;
use superstep::{Cache, CacheKey, Checkpointer, Durability, GoOn, Store};
use superstep_postgres::{PostgresCache, PostgresDatabase, PostgresSaver, PostgresStore};
use superstep_storage::DatabaseError;

use super::wire::{Cut, HURRY, Wire};
use super::{Author, Place, THREAD, echo, says};

/// The words of a silent database, if that is the cause of an error.
fn silence(error: &(dyn Error + 'static)) -> Option<String> {
    match error.downcast_ref() {
        Some(silent @ DatabaseError::Silent { .. }) => {
            assert!(silent.is_transient() && silent.is_retryable());
            Some(silent.to_string())
        }
        _ => silence(error.source()?),
    }
}

/// With the server stopped, a statement waited for its answer for ever, and so did the run.
#[tokio::test]
async fn a_save_that_nobody_answers_is_made_once_on_another_connection() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let mut author = Author::claim(&PostgresSaver::new(&wire.hurried(&place).await)).await;
    author.put().await.unwrap();
    for (round, cut) in [Cut::SilentRequest, Cut::SilentAnswer].into_iter().enumerate() {
        wire.cut_at(1, cut);
        let id = author.put().await.unwrap();
        assert!(wire.was_cut());
        wire.cut_at(1, cut);
        author.saver.put_writes(author.lease(), id, author.task(1)).await.unwrap();
        assert!(wire.was_cut());
        assert_eq!(author.ids().await.len(), round + 2, "{cut:?}");
        let latest = author.saver.get(THREAD, "", None).await.unwrap().unwrap();
        assert_eq!(latest.writes().len(), 1, "{cut:?}");
    }
    wire.cut_at(1, Cut::SilentAnswer);
    let claim = author.saver.claim(THREAD, "", None).await.unwrap();
    assert!(wire.was_cut() && claim.epoch > author.epoch);
}

#[tokio::test]
async fn a_run_whose_database_falls_silent_fails_and_goes_on_later() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let app = echo(PostgresSaver::new(&wire.hurried(&place).await));
    app.invoke(says("one")).thread(THREAD).await.unwrap();
    // The claim and the input are saved, the step is not.
    wire.cut_from(3, 2, Cut::SilentRequest);
    let error = app.invoke(says("two")).thread(THREAD).durability(Durability::Sync).await.unwrap_err();
    assert!(wire.was_cut() && error.is_retryable());
    let words = silence(&error).expect("the database was silent");
    let (database, rest) = words.split_once("` did not answer within 3s; ").expect("the limit is named");
    assert!(database.starts_with("database `postgres://127.0.0.1:"), "{words}");
    assert_eq!(rest, "try again, or allow more with `PostgresBuilder::answer_timeout`");
    let out = app.invoke(GoOn).thread(THREAD).await.unwrap();
    assert_eq!(out.state.messages.len(), 4);
}

/// The pool has one connection: were it given back, whoever comes next would wait for an answer to another's question.
#[tokio::test]
async fn stores_and_caches_give_up_a_silent_connection_too() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let database = wire.hurried(&place).await;
    let (store, cache) = (PostgresStore::new(&database), PostgresCache::new(&database));
    let (traffic, done) = wire.during(store.put(["a"], "first", "tea")).await;
    done.unwrap();
    for (key, round_trip, cut) in [
        ("unheard", 1, Cut::SilentRequest),
        ("in the middle", 2, Cut::SilentAnswer),
        ("committed", traffic.round_trips, Cut::SilentAnswer),
    ] {
        wire.cut_at(round_trip, cut);
        let error = store.put(["a"], key, "tea").await.unwrap_err();
        assert!(wire.was_cut() && silence(&error).is_some(), "{error}");
        // It was answered by nobody, so it may be there or not; it is there if the server has committed it.
        let found = store.get(["a"], key).await.unwrap();
        assert_eq!(found.is_some(), key == "committed", "{key}");
        store.put(["a"], key, "coffee").await.unwrap();
        assert_eq!(store.get(["a"], key).await.unwrap().unwrap().value, "coffee");
    }
    let key = CacheKey::new(["plan"], "1");
    wire.cut_at(1, Cut::SilentRequest);
    let error = cache.get(std::slice::from_ref(&key)).await.unwrap_err();
    assert!(wire.was_cut() && silence(&error).is_some(), "{error}");
    cache.set(vec![(key.clone(), Bytes::from("tea"), None)]).await.unwrap();
    assert_eq!(cache.get(&[key]).await.unwrap(), [Some(Bytes::from("tea"))]);
}

/// Connections are taken by the system of a stopped server, which never says a word on them.
#[tokio::test]
async fn a_server_that_takes_connections_and_says_nothing_is_told() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("postgres://agent@127.0.0.1:{}/agents?sslmode=disable", silent.local_addr().unwrap().port());
    let error = PostgresDatabase::builder(address).answer_timeout(HURRY).connect().await.unwrap_err();
    assert!(matches!(error, DatabaseError::Silent { limit: HURRY, .. }), "{error}");
}

#[tokio::test]
async fn no_time_at_all_is_refused() {
    let database = PostgresDatabase::builder("postgres://agent@127.0.0.1:1/agents");
    let error = database.answer_timeout(std::time::Duration::ZERO).connect().await.unwrap_err().to_string();
    assert!(error.ends_with("no answer comes in no time; use `answer_timeout` with a longer one"), "{error}");
}
