//! Several who write to a thread at once. An administrator holds rows, so that who comes next has to wait there.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use superstep::{
    AgentState, AgentStateUpdate, CheckpointError, CheckpointId, Checkpointer, Durability, ErrorKind, ListQuery,
    Message, Prune, START, StateGraph, Swept,
};
use superstep_storage::DatabaseError;

use super::{Author, Place, THREAD, echo, says};

fn assert_fenced(result: Result<(), CheckpointError>, words: &str) {
    let error = result.unwrap_err();
    assert!(error.is_fenced(), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test]
async fn a_save_that_waited_for_a_claim_is_fenced() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    let id = author.put().await.unwrap();
    let admin = place.admin().await;
    admin.run("BEGIN; UPDATE superstep_threads SET epoch = DEFAULT").await;
    let saving = author.spawn(author.next());
    let writing = author.spawn_writes(id, author.task(1));
    place.admin().await.waits(2).await;
    let rows = admin.rows().await;
    admin.run("COMMIT").await;
    assert_fenced(saving.await.unwrap(), "was taken over");
    assert_fenced(writing.await.unwrap(), "was taken over");
    assert_eq!(admin.rows().await, rows);
}

/// Every name that was ever claimed stayed in the table of threads. One that is written to while it is swept stays.
#[tokio::test]
async fn a_claim_that_came_to_nothing_is_swept_after_a_day() {
    let place = Place::new();
    let saver = place.saver().await;
    for thread in ["old", "new"] {
        saver.claim(thread, "", None).await.unwrap();
    }
    let mut author = Author::claim(&saver).await;
    let admin = place.admin().await;
    admin.run("UPDATE superstep_threads SET claimed_at = now() - interval '25 hours' WHERE name <> 'new'").await;
    admin.run("BEGIN; SELECT FROM superstep_threads WHERE name = 'old' FOR UPDATE").await;
    let sweeping = tokio::spawn({
        let saver = saver.clone();
        async move { saver.sweep().await }
    });
    place.admin().await.waits(1).await;
    author.put().await.unwrap();
    admin.run("COMMIT").await;
    assert_eq!(sweeping.await.unwrap().unwrap(), Swept::default());
    let left: String = admin.ask("SELECT string_agg(name, ' ' ORDER BY name) FROM superstep_threads").await;
    assert_eq!(left, "new t");
}

/// Whoever held a thread and stopped kept all others waiting for ever.
#[tokio::test]
async fn a_claim_and_a_prune_do_not_wait_for_ever() {
    let place = Place::new();
    let saver = place.saver().await;
    let mut author = Author::claim(&saver).await;
    let id = author.put().await.unwrap();
    let admin = place.admin().await;
    admin.run("BEGIN; SELECT FROM superstep_threads FOR UPDATE").await;
    let prune = Prune::keep_last(1);
    let (claimed, pruned) = tokio::join!(saver.claim(THREAD, "", None), saver.prune(THREAD, &prune));
    for error in [claimed.map(drop).unwrap_err(), pruned.map(drop).unwrap_err()] {
        let cause = error.source().and_then(|cause| cause.downcast_ref());
        assert!(matches!(cause, Some(DatabaseError::Busy { .. })), "{error}");
    }
    admin.run("ROLLBACK").await;
    assert_eq!(saver.claim(THREAD, "", None).await.unwrap().head, Some(id));
}

#[tokio::test]
async fn a_save_that_waited_for_a_claim_that_failed_is_done() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    author.put().await.unwrap();
    let admin = place.admin().await;
    admin.run("BEGIN; UPDATE superstep_threads SET epoch = DEFAULT").await;
    let saving = author.spawn(author.next());
    place.admin().await.waits(1).await;
    admin.run("ROLLBACK").await;
    saving.await.unwrap().unwrap();
    assert_eq!(author.ids().await.len(), 2);
}

#[tokio::test]
async fn a_claim_that_waited_for_a_save_finds_it() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    author.put().await.unwrap();
    let admin = place.admin().await;
    admin.run("BEGIN; SELECT FROM superstep_spaces FOR UPDATE").await;
    let record = author.next();
    let id = record.id();
    let saving = author.spawn(record);
    let watch = place.admin().await;
    watch.waits(1).await;
    let saver = author.saver.clone();
    let claiming = tokio::spawn(async move { saver.claim(THREAD, "", None).await });
    watch.waits(2).await;
    admin.run("COMMIT").await;
    saving.await.unwrap().unwrap();
    let claim = claiming.await.unwrap().unwrap();
    assert_eq!(claim.head, Some(id));
    assert_eq!(claim.found.unwrap().record().id(), id);
}

#[tokio::test]
async fn of_two_with_one_lease_one_wins_the_head() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    author.put().await.unwrap();
    let admin = place.admin().await;
    admin.run("BEGIN; SELECT FROM superstep_spaces FOR UPDATE").await;
    let records = [1, 2].map(|number| {
        let record = author.next();
        let id = CheckpointId::from_u128(record.id().as_u128() + number);
        record.with_id(id)
    });
    let racing = records.map(|record| author.spawn(record));
    place.admin().await.waits(2).await;
    admin.run("COMMIT").await;
    let mut won = 0;
    for saving in racing {
        match saving.await.unwrap() {
            Ok(()) => won += 1,
            lost => assert_fenced(lost, "moved on"),
        }
    }
    assert_eq!(won, 1);
    assert_eq!(author.ids().await.len(), 2);
}

#[tokio::test]
async fn of_two_with_one_lease_one_makes_the_namespace() {
    let place = Place::new();
    let author = Author::claim(&place.saver().await).await;
    let admin = place.admin().await;
    // Whoever comes first has made the namespace when it finds that it cannot add its checkpoint yet.
    admin.run("BEGIN; LOCK TABLE superstep_shapes IN EXCLUSIVE MODE").await;
    let records = [1, 2].map(|number| {
        let record = author.next();
        let id = CheckpointId::from_u128(record.id().as_u128() + number);
        record.with_id(id)
    });
    let racing = records.map(|record| author.spawn(record));
    place.admin().await.waits(2).await;
    admin.run("COMMIT").await;
    let mut won = 0;
    for saving in racing {
        match saving.await.unwrap() {
            Ok(()) => won += 1,
            lost => assert_fenced(lost, "moved on"),
        }
    }
    assert_eq!(won, 1);
    assert_eq!(author.ids().await.len(), 1);
}

#[tokio::test]
async fn a_save_does_not_build_on_what_was_pruned_while_it_waited() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    let old = author.put().await.unwrap();
    let alone = author.next().with_parent(None).with_base(None);
    author.head = Some(alone.id());
    author.saver.put(author.lease(), alone).await.unwrap();
    let admin = place.admin().await;
    admin.run("BEGIN; SELECT FROM superstep_threads FOR NO KEY UPDATE").await;
    admin.run("DELETE FROM superstep_checkpoints WHERE id < (SELECT head FROM superstep_spaces)").await;
    let fork = author.next().with_parent(Some(old)).with_base(Some(old));
    let saving = author.spawn(fork);
    let writing = author.spawn_writes(old, author.task(1));
    place.admin().await.waits(2).await;
    admin.run("COMMIT").await;
    let refused = [saving.await.unwrap().unwrap_err(), writing.await.unwrap().unwrap_err()].map(|e| e.to_string());
    assert!(refused[0].ends_with("builds on one that is not there"), "{refused:?}");
    assert!(refused[1].starts_with("there is no checkpoint"), "{refused:?}");
    assert_eq!(author.ids().await.len(), 1);
    assert_eq!(admin.ask::<i64>("SELECT count(*) FROM superstep_pending").await, 0);
}

/// Others may wait for what the first one began.
#[tokio::test]
async fn a_save_goes_on_when_whoever_began_it_gives_up() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    author.put().await.unwrap();
    let admin = place.admin().await;
    admin.run("BEGIN; SELECT FROM superstep_threads FOR UPDATE").await;
    let first = author.next();
    author.head = Some(first.id());
    let second = author.next();
    let given_up = author.begin(author.lease().awaited(true), first);
    place.admin().await.waits(1).await;
    let waiting = author.begin(author.lease(), second);
    given_up.abort();
    assert!(given_up.await.unwrap_err().is_cancelled());
    admin.run("COMMIT").await;
    waiting.await.unwrap().unwrap();
    assert_eq!(author.ids().await.len(), 3);
}

#[tokio::test]
async fn two_records_of_one_task_at_once_are_merged() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    let id = author.put().await.unwrap();
    let admin = place.admin().await;
    admin.run("BEGIN; SELECT FROM superstep_spaces FOR UPDATE").await;
    let first = author.task(1).with_writes(Vec::new()).with_resume(Some("yes".into()));
    let second = author.task(1).with_handled(true);
    let saves = [first, second].map(|task| author.spawn_writes(id, task));
    place.admin().await.waits(2).await;
    admin.run("COMMIT").await;
    for saving in saves {
        saving.await.unwrap().unwrap();
    }
    let saved = author.saver.get(THREAD, "", None).await.unwrap().unwrap();
    let [task] = saved.writes() else { panic!("{saved:?}") };
    assert_eq!((task.is_handled(), task.resume()), (true, Some(&"yes".into())));
    assert_eq!(task.writes(), author.task.writes());
}

/// The one that comes with the checkpoint meets the one that is saved alone.
#[tokio::test]
async fn a_record_that_comes_with_a_checkpoint_is_merged_with_one_that_was_first() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    let id = author.put().await.unwrap();
    let admin = place.admin().await;
    admin.run("BEGIN; SELECT FROM superstep_spaces FOR UPDATE").await;
    let alone = author.task(1).with_writes(Vec::new()).with_resume(Some("yes".into()));
    let writing = author.spawn_writes(id, alone);
    let watch = place.admin().await;
    watch.waits(1).await;
    let saving = author.spawn(author.next().with_writes(vec![author.task(1)]));
    watch.waits(2).await;
    admin.run("COMMIT").await;
    writing.await.unwrap().unwrap();
    saving.await.unwrap().unwrap();
    let saved = author.saver.get(THREAD, "", Some(id)).await.unwrap().unwrap();
    let [task] = saved.writes() else { panic!("{saved:?}") };
    assert_eq!(task.resume(), Some(&"yes".into()));
    assert_eq!(task.writes(), author.task.writes());
}

#[tokio::test]
async fn deleting_waits_for_a_save_and_leaves_nothing_of_it() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    author.put().await.unwrap();
    let admin = place.admin().await;
    admin.run("BEGIN; SELECT FROM superstep_spaces FOR UPDATE").await;
    let saving = author.spawn(author.next());
    let watch = place.admin().await;
    watch.waits(1).await;
    let saver = author.saver.clone();
    let deleting = tokio::spawn(async move { saver.delete_thread(THREAD).await });
    watch.waits(2).await;
    admin.run("COMMIT").await;
    saving.await.unwrap().unwrap();
    deleting.await.unwrap().unwrap();
    assert_eq!(admin.rows().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn claimants_from_two_pools_make_a_single_chain() {
    let place = Place::new();
    let savers = [place.saver().await, place.saver().await];
    let mut racing = Vec::new();
    for number in 0..8 {
        let saver = savers[number % 2].clone();
        racing.push(tokio::spawn(async move {
            let mut won = Vec::new();
            for _ in 0..20 {
                let mut author = Author::claim(&saver).await;
                match author.put().await {
                    Ok(id) => won.push(id),
                    Err(error) if error.is_fenced() => {}
                    Err(error) => panic!("{error}"),
                }
            }
            won
        }));
    }
    let mut won = Vec::new();
    for racer in racing {
        won.extend(racer.await.unwrap());
    }
    won.sort_unstable();
    let listed = savers[0].list(THREAD, "", &ListQuery::new()).await.unwrap();
    let chain: Vec<_> = listed.iter().rev().map(|saved| saved.record().id()).collect();
    assert_eq!(chain, won, "each who was told that it won is there, once");
    let parents: Vec<_> = listed.iter().rev().map(|saved| saved.record().parent()).collect();
    let before = std::iter::once(None).chain(chain.iter().copied().map(Some));
    assert_eq!(parents, before.take(chain.len()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_beside_pruning_are_refused_or_whole() {
    let place = Place::new();
    let saver = place.saver().await;
    let mut author = Author::claim(&saver).await;
    let first = author.put().await.unwrap();
    let pruner = saver.clone();
    let pruning = tokio::spawn(async move {
        for _ in 0..30 {
            pruner.prune(THREAD, &Prune::keep_last(3)).await.unwrap();
        }
    });
    let mut known = vec![first];
    while !pruning.is_finished() {
        let base = known[known.len().saturating_sub(4)];
        let record = author.next().with_parent(Some(base)).with_base(Some(base));
        let id = record.id();
        match author.saver.put(author.lease(), record).await {
            Ok(()) => {
                author.head = Some(id);
                known.push(id);
            }
            Err(error) => {
                assert!(error.to_string().ends_with("builds on one that is not there"), "{error}");
                author.put().await.unwrap();
                known.extend(author.head);
            }
        }
    }
    pruning.await.unwrap();
    saver.prune(THREAD, &Prune::keep_last(3)).await.unwrap();
    assert_eq!(author.ids().await.len(), 3, "and all of them can be read");
}

/// The thread is then where it was before the run, and the run may not put it anywhere else.
#[tokio::test]
async fn a_run_that_is_deleted_while_it_goes_on_is_fenced() {
    let saver = Place::new().saver().await;
    echo(saver.clone()).invoke(says("one")).thread(THREAD).await.unwrap();
    let deleting = saver.clone();
    let node = move |_: AgentState| {
        let saver = deleting.clone();
        async move {
            assert!(saver.delete_run("second").await.unwrap() > 0);
            AgentStateUpdate { messages: Some(vec![Message::assistant("lost")]) }
        }
    };
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("node", node).add_edge(START, "node");
    let app = graph.checkpointer(saver.clone()).compile().unwrap();
    let run = app.invoke(says("two")).thread(THREAD).run_id("second").durability(Durability::Sync);
    assert_eq!(run.await.unwrap_err().kind(), ErrorKind::Fenced);
    assert_eq!(echo(saver).thread(THREAD).state().await.unwrap().state.messages.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn housekeeping_beside_those_who_write_breaks_nothing() {
    const THREADS: usize = 4;
    const TURNS: usize = 25;
    let place = Place::new();
    let saver = place.saver().await;
    let turns: Arc<[AtomicUsize; THREADS]> = Arc::default();
    let writing: Vec<_> = (0..THREADS)
        .map(|number| {
            let (app, turns) = (echo(saver.clone()), turns.clone());
            tokio::spawn(async move {
                let thread = format!("thread {number}");
                for turn in 1..=TURNS {
                    let run = app.invoke(says("hello")).thread(&*thread).run_id(format!("{thread}, turn {turn}"));
                    assert_eq!(run.await.unwrap().state.messages.len(), 2 * turn);
                    turns[number].store(turn, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let other = place.saver().await.ttl(Duration::from_hours(1));
    let mut round = 0;
    while !writing.iter().all(|writer| writer.is_finished()) {
        let number = round % THREADS;
        let thread = format!("thread {number}");
        round += 1;
        other.prune(&thread, &Prune::keep_last(4)).await.unwrap();
        // Not before another has followed: the latest run takes the latest state with it.
        if turns[number].load(Ordering::SeqCst) > 2 {
            other.delete_run(&format!("{thread}, turn 2")).await.unwrap();
        }
        if other.copy_thread(&thread, "copy").await.is_ok() {
            let copied = other.list("copy", "", &ListQuery::new()).await.unwrap();
            assert!(!copied.is_empty());
            other.delete_thread("copy").await.unwrap();
        }
        assert_eq!(other.sweep().await.unwrap(), Swept::default());
    }
    for writer in writing {
        writer.await.unwrap();
    }
    for number in 0..THREADS {
        let thread = format!("thread {number}");
        other.prune(&thread, &Prune::keep_last(4)).await.unwrap();
        assert_eq!(other.list(&thread, "", &ListQuery::new()).await.unwrap().len(), 4);
        let state = echo(saver.clone()).thread(&*thread).state().await.unwrap().state;
        assert_eq!(state.messages.len(), 2 * TURNS);
        other.delete_thread(&thread).await.unwrap();
    }
    assert_eq!(place.admin().await.rows().await, 0);
}
