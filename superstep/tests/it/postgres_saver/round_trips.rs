//! How often a saver asks the server.

use std::time::Duration;

use superstep::{Checkpointer, Durability, ListQuery};

use super::wire::{Traffic, Wire};
use super::{Author, Place, THREAD, echo, says};

#[tokio::test]
async fn a_step_is_one_round_trip_and_one_statement() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let mut author = Author::claim(&wire.saver(&place).await).await;
    for _ in 0..20 {
        let (traffic, saved) = wire.during(author.put()).await;
        saved.unwrap();
        assert_eq!(traffic, Traffic { round_trips: 1, statements: 1, named: 0 });
    }
    let record = author.next().with_writes((0..10).map(|number| author.task(number)).collect());
    let (traffic, saved) = wire.during(author.saver.put(author.lease(), record)).await;
    saved.unwrap();
    assert_eq!(traffic, Traffic { round_trips: 1, statements: 1, named: 0 }, "with what ten tasks wrote");
}

#[tokio::test]
async fn what_a_task_wrote_is_one_round_trip() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let mut author = Author::claim(&wire.saver(&place).await).await;
    let id = author.put().await.unwrap();
    for number in 0..5 {
        let saving = author.saver.put_writes(author.lease(), id, author.task(number));
        let (traffic, saved) = wire.during(saving).await;
        saved.unwrap();
        assert_eq!(traffic, Traffic { round_trips: 1, statements: 1, named: 0 });
    }
    assert_eq!(author.saver.get(THREAD, "", None).await.unwrap().unwrap().writes().len(), 5);
}

/// Each step of a run that does not wait for its saves had a round trip and a commit of its own.
#[tokio::test]
async fn saves_that_nobody_waits_for_share_round_trips() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let mut author = Author::claim(&wire.saver(&place).await).await;
    author.put().await.unwrap();
    let mut saves = Vec::new();
    for _ in 0..50 {
        let record = author.next();
        author.head = Some(record.id());
        saves.push(author.begin(author.lease(), record));
    }
    let (traffic, ()) = wire
        .during(async {
            for save in saves {
                save.await.unwrap().unwrap();
            }
        })
        .await;
    assert_eq!(traffic, Traffic { round_trips: 1, statements: 1, named: 0 });
    assert_eq!(author.ids().await.len(), 51);
}

#[tokio::test]
async fn a_turn_of_a_graph_is_a_claim_and_its_checkpoints() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let saver = wire.saver(&place).await;
    let app = echo(saver.clone());
    let turn = || app.invoke(says("hello")).thread(THREAD).durability(Durability::Sync);
    turn().await.unwrap();
    let before = saver.list(THREAD, "", &ListQuery::new()).await.unwrap().len();
    let (traffic, done) = wire.during(turn().into_future()).await;
    done.unwrap();
    let made = saver.list(THREAD, "", &ListQuery::new()).await.unwrap().len() - before;
    assert_eq!(traffic.round_trips, 1 + made, "{traffic:?}");
    assert_eq!(traffic.named, 0);
}

#[tokio::test]
async fn claims_and_reads_are_one_round_trip() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let saver = wire.saver(&place).await;
    let mut author = Author::claim(&saver).await;
    for _ in 0..100 {
        author.put().await.unwrap();
    }
    let (traffic, claim) = wire.during(saver.claim(THREAD, "", None)).await;
    assert_eq!(claim.unwrap().head, author.head);
    assert_eq!((traffic.round_trips, traffic.named), (1, 0));

    let expiring = saver.clone().ttl(Duration::from_hours(1));
    let (traffic, claim) = wire.during(expiring.claim(THREAD, "", None)).await;
    assert_eq!(claim.unwrap().head, author.head);
    assert_eq!((traffic.round_trips, traffic.named), (1, 0));

    let one = Traffic { round_trips: 1, statements: 1, named: 0 };
    let (traffic, found) = wire.during(saver.get(THREAD, "", None)).await;
    assert!(found.unwrap().is_some());
    assert_eq!(traffic, one);
    let (traffic, listed) = wire.during(saver.list(THREAD, "", &ListQuery::new())).await;
    assert_eq!(listed.unwrap().len(), 100);
    assert_eq!(traffic, one);
    assert_eq!(wire.during(saver.threads(None, 10)).await.0, one);
    assert_eq!(wire.during(saver.namespaces(THREAD)).await.0, one);
}

#[tokio::test]
async fn outlines_are_rare() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let mut author = Author::claim(&wire.saver(&place).await).await;
    let (traffic, ()) = wire
        .during(async {
            for _ in 0..200 {
                author.put().await.unwrap();
            }
        })
        .await;
    assert!(traffic.round_trips <= 200 + 3 * 6, "{traffic:?}");
    let admin = place.admin().await;
    assert_eq!(admin.ask::<i64>("SELECT count(*) FROM superstep_checkpoints WHERE outline IS NOT NULL").await, 3);
    assert!(admin.ask::<i32>("SELECT max(depth) FROM superstep_checkpoints").await < 64);
}
