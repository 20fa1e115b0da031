//! Connections that are lost in the middle.

use std::error::Error as _;

use superstep::{AgentState, AgentStateUpdate, Checkpointer, Durability, GoOn, Message, START, StateGraph};
use superstep_storage::DatabaseError;

use super::wire::{Cut, Wire};
use super::{Author, Place, THREAD, echo, says};

#[tokio::test]
async fn a_save_that_lost_its_request_or_its_answer_is_saved_once() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let mut author = Author::claim(&wire.saver(&place).await).await;
    author.put().await.unwrap();
    for (round, cut) in [Cut::Request, Cut::Answer, Cut::Request, Cut::Answer].into_iter().enumerate() {
        wire.cut_at(1, cut);
        let id = author.put().await.unwrap();
        assert!(wire.was_cut());
        wire.cut_at(1, cut);
        author.saver.put_writes(author.lease(), id, author.task(1)).await.unwrap();
        assert!(wire.was_cut());
        assert_eq!(author.ids().await.len(), round + 2, "{cut:?}");
        let latest = author.saver.get(THREAD, "", None).await.unwrap().unwrap();
        assert_eq!(latest.writes().len(), 1, "{cut:?}");
        assert_eq!(latest.writes()[0].writes(), author.task.writes(), "{cut:?}");
    }
}

#[tokio::test]
async fn saves_that_went_together_and_lost_their_answer_are_saved_once() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let mut author = Author::claim(&wire.saver(&place).await).await;
    author.put().await.unwrap();
    for (round, cut) in [Cut::Request, Cut::Answer].into_iter().enumerate() {
        wire.cut_at(1, cut);
        let mut saves = Vec::new();
        for _ in 0..5 {
            let record = author.next();
            author.head = Some(record.id());
            saves.push(author.begin(author.lease(), record));
        }
        saves.push(author.begin_writes(author.head.unwrap(), author.task(1)));
        for save in saves {
            save.await.unwrap().unwrap();
        }
        assert!(wire.was_cut());
        assert_eq!(author.ids().await.len(), 5 * (round + 1) + 1, "{cut:?}");
        let latest = author.saver.get(THREAD, "", None).await.unwrap().unwrap();
        assert_eq!(latest.writes().len(), 1, "{cut:?}");
    }
}

#[tokio::test]
async fn a_claim_or_a_read_that_lost_its_answer_is_done_again() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let mut author = Author::claim(&wire.saver(&place).await).await;
    let id = author.put().await.unwrap();
    wire.cut_at(1, Cut::Answer);
    let claim = author.saver.claim(THREAD, "", None).await.unwrap();
    assert!(claim.epoch > author.epoch);
    assert_eq!(claim.head, Some(id));
    author.epoch = claim.epoch;
    author.put().await.unwrap();
    wire.cut_at(1, Cut::Answer);
    assert_eq!(author.ids().await.len(), 2);
    assert!(wire.was_cut());
}

#[tokio::test]
async fn who_cannot_reach_the_server_is_told_and_goes_on_later() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let app = echo(wire.saver(&place).await);
    app.invoke(says("one")).thread(THREAD).await.unwrap();
    // The claim is made, and the first save fails for good.
    wire.cut_from(2, 2, Cut::Request);
    let error = app.invoke(says("two")).thread(THREAD).durability(Durability::Sync).await.unwrap_err();
    assert!(wire.was_cut());
    let mut source = Some(&error as &dyn std::error::Error);
    let mut lost = false;
    while let Some(error) = source {
        lost |= matches!(error.downcast_ref(), Some(DatabaseError::Connection { .. }));
        source = error.source();
    }
    assert!(lost, "{error:?}");
    let out = app.invoke(says("two")).thread(THREAD).await.unwrap();
    assert_eq!(out.state.messages.len(), 4);
}

/// A row that should get an outline is saved even if making the outline fails; the next row gets one instead.
#[tokio::test]
async fn an_outline_that_was_lost_is_made_with_the_next_step() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let mut author = Author::claim(&wire.saver(&place).await).await;
    for _ in 0..63 {
        author.put().await.unwrap();
    }
    let admin = place.admin().await;
    let outlines = "SELECT count(*) FROM superstep_checkpoints WHERE outline IS NOT NULL";
    wire.cut_at(2, Cut::Request);
    author.put().await.unwrap();
    assert!(wire.was_cut());
    assert_eq!(admin.ask::<i64>(outlines).await, 0);
    author.put().await.unwrap();
    assert_eq!(admin.ask::<i64>(outlines).await, 1);
    assert_eq!(author.ids().await.len(), 65);
}

#[tokio::test]
async fn a_run_survives_that_the_server_ends_all_its_connections() {
    let place = Place::new();
    let saver = place.saver().await;
    let admin = std::sync::Arc::new(place.admin().await);
    let node = move |state: AgentState| {
        let admin = admin.clone();
        async move {
            let all = format!(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '{}'",
                admin.schema
            );
            assert!(admin.ask::<i64>(&all).await > 0);
            let text = format!("answer {}", state.messages.len());
            AgentStateUpdate { messages: Some(vec![Message::assistant(text)]) }
        }
    };
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("end", node).add_edge(START, "end");
    let app = graph.checkpointer(saver).compile().unwrap();
    for turn in 1..=5 {
        let out = app.invoke(says("hello")).thread(THREAD).durability(Durability::Sync).await.unwrap();
        assert_eq!(out.state.messages.len(), 2 * turn);
    }
}

#[tokio::test]
async fn a_thread_goes_on_where_a_lost_run_left_it() {
    let place = Place::new();
    let wire = Wire::new(&place).await;
    let app = echo(wire.saver(&place).await);
    // The claim and the input are saved, the step is not.
    wire.cut_from(3, 2, Cut::Request);
    app.invoke(says("one")).thread(THREAD).durability(Durability::Sync).await.unwrap_err();
    assert!(wire.was_cut());
    let out = app.invoke(GoOn).thread(THREAD).await.unwrap();
    assert_eq!(out.state.messages.len(), 2);
}

#[tokio::test]
async fn a_closed_database_is_not_asked_again() {
    let saver = Place::new().saver().await;
    saver.database().close();
    let error = saver.get(THREAD, "", None).await.unwrap_err();
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    assert!(matches!(cause, Some(DatabaseError::Closed { .. })), "{error}");
}
