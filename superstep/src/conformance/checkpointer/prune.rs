//! Clauses on pruning: what may go, and what those that stay must keep.

use std::time::{Duration, SystemTime};

use super::super::{Checked, equal};
use super::draft::{Draft, tail, task, whole};
use super::stage::{Author, Stage, fenced, refused};
use crate::checkpoint::{Prune, SavedCheckpoint};
use crate::id::CheckpointId;

/// So many checkpoints, newest first.
async fn several(author: &mut Author, count: usize) -> Checked<Vec<CheckpointId>> {
    let mut ids = Vec::new();
    for number in 0..count {
        ids.insert(0, author.add(&number.to_string()).await?.record.id);
    }
    Ok(ids)
}

/// Pruning forgets so many, and these stay.
async fn prunes(stage: &Stage, prune: Prune, forgotten: usize, stay: &[CheckpointId]) -> Checked {
    equal(format!("how many {prune:?} forgot"), &stage.saver.prune("t", &prune).await?, &forgotten)?;
    equal(format!("what stays after {prune:?}"), &stage.ids("t", "").await?, &stay.to_vec())
}

pub(super) async fn the_last_ones_stay(stage: Stage) -> Checked {
    equal("how many of no checkpoints were forgotten", &stage.saver.prune("t", &Prune::keep_last(1)).await?, &0)?;
    let ids = several(&mut stage.claim("t").await?, 10).await?;
    let other = several(&mut stage.claim("other").await?, 10).await?;
    prunes(&stage, Prune::keep_last(usize::MAX), 0, &ids).await?;
    prunes(&stage, Prune::keep_last(10), 0, &ids).await?;
    prunes(&stage, Prune::keep_last(4), 6, &ids[..4]).await?;
    prunes(&stage, Prune::keep_last(4), 0, &ids[..4]).await?;
    prunes(&stage, Prune::keep_last(1), 3, &ids[..1]).await?;
    equal("what another thread has", &stage.ids("other", "").await?, &other)
}

pub(super) async fn the_recent_ones_stay(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    let mut ids = Vec::new();
    for hours in [50, 40, 60, 20, 10] {
        let draft = author.draft().made_at(now - Duration::from_hours(hours));
        ids.insert(0, author.put(&draft).await?);
    }
    let ago = |hours: u64| Prune::before(now - Duration::from_hours(hours));
    prunes(&stage, ago(100), 0, &ids).await?;
    prunes(&stage, ago(50), 1, &[ids[0], ids[1], ids[3], ids[4]]).await?;
    prunes(&stage, ago(30), 2, &ids[..2]).await?;
    prunes(&stage, Prune::older_than(Duration::from_hours(1000 * 365 * 24)), 0, &ids[..2]).await
}

/// Databases count microseconds: a checkpoint that was made in the microsecond of the moment looked older than it.
pub(super) async fn what_was_made_at_the_moment_stays(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let moment = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000) + Duration::from_nanos(5_400);
    let mut ids = Vec::new();
    for nanos in [1_400, 400, 0] {
        ids.insert(0, author.put(&author.draft().made_at(moment - Duration::from_nanos(nanos))).await?);
    }
    prunes(&stage, Prune::before(moment), 1, &ids[..2]).await
}

pub(super) async fn the_latest_always_stays(stage: Stage) -> Checked {
    let ids = several(&mut stage.claim("t").await?, 3).await?;
    prunes(&stage, Prune::before(SystemTime::now() + Duration::from_hours(365 * 24)), 2, &ids[..1]).await?;
    prunes(&stage, Prune::keep_last(0), 0, &ids[..1]).await
}

pub(super) async fn what_stays_keeps_its_values_and_writes(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let first = author.draft().whole("early", b"1").tail("log", [b"1"]).whole("gone", b"1");
    author.put(&first).await?;
    let second = author.draft().tail("log", [b"2"]).absent("gone");
    author.put(&second).await?;
    let fork = author.draft().after(Some(first.id())).tail("log", [b"fork"]);
    author.put(&fork).await?;
    let third = author.draft().after(Some(second.id())).tail("log", [b"3"]);
    author.put(&third).await?;
    let mut fork = fork.saved([whole("early", b"1"), tail("log", None, [&b"1"[..], b"fork"]), whole("gone", b"1")]);
    fork.writes = vec![task(1, "a").wrote("log", b"pending").asked(&["sure?"])];
    author.write(fork.record.id, fork.writes[0].clone()).await?;
    let third = third.saved([whole("early", b"1"), tail("log", None, [b"1", b"2", b"3"])]);
    equal("how many were forgotten", &stage.saver.prune("t", &Prune::keep_last(2)).await?, &2)?;
    author.holds(&[third, fork]).await
}

/// Checkpoints of a namespace that ran under these of the root, newest first.
async fn inner(root: &Author, namespace: &str, under: &[CheckpointId]) -> Checked<Vec<SavedCheckpoint>> {
    let mut author = root.inside(namespace);
    let mut saved: Vec<SavedCheckpoint> = Vec::new();
    for (number, under) in under.iter().enumerate() {
        let draft = author.draft().under(*under).tail("log", [number.to_string()]);
        author.put(&draft).await?;
        let writes = (0..=number).map(|number| number.to_string());
        saved.insert(0, draft.saved([tail("log", None, writes)]));
    }
    Ok(saved)
}

pub(super) async fn checkpoints_of_subgraphs_stay_with_those_they_ran_under(stage: Stage) -> Checked {
    let mut root = stage.claim("t").await?;
    let mut ids = several(&mut root, 3).await?;
    ids.reverse();
    let under = [ids[0], ids[0], ids[1], ids[2], ids[2]];
    let spread = inner(&root, "child:1", &under).await?;
    let deep = inner(&root, "child:1|deep:2", &under).await?;
    let own = inner(&root, "child", &under).await?;
    let own_old = inner(&root, "old child", &[ids[0], ids[0]]).await?;
    inner(&root, "gone:1", &[ids[0]]).await?;
    let lost = root.inside("lost:1").add("it ran under nothing").await?;
    equal(
        "how many were forgotten",
        &stage.saver.prune("t", &Prune::keep_last(2)).await?,
        &(1 + 2 + 2 + 2 + 1 + 1 + 1),
    )?;
    equal("what stays of the root", &stage.ids("t", "").await?, &vec![ids[2], ids[1]])?;
    for (namespace, stay) in [("child:1", &spread), ("child:1|deep:2", &deep), ("child", &own)] {
        stage.holds("t", namespace, &stay[..3]).await?;
    }
    stage.holds("t", "old child", &own_old[..1]).await?;
    stage.holds("t", "gone:1", &[]).await?;
    equal(
        "an inner checkpoint under nothing",
        &stage.saver.get("t", "lost:1", Some(lost.record.id)).await?.is_none(),
        &true,
    )?;
    let spaces = ["", "child", "child:1", "child:1|deep:2", "old child"].map(str::to_owned);
    equal("the namespaces that are left", &stage.saver.namespaces("t").await?, &spaces.to_vec())
}

/// A subgraph may save its first steps before the root's checkpoint that it runs under is saved; pruning took them for
/// those of a checkpoint that is gone.
pub(super) async fn subgraphs_that_run_stay(stage: Stage) -> Checked {
    let mut root = stage.claim("t").await?;
    let first = Draft::new(stage.id());
    let early = inner(&root, "early:1", &[first.id()]).await?;
    equal("how many were forgotten", &stage.saver.prune("t", &Prune::keep_last(1)).await?, &0)?;
    stage.holds("t", "early:1", &early).await?;
    // The checkpoints of the root come after those that ran under them.
    root.put(&first).await?;
    let next = Draft::new(stage.id()).after(root.head);
    let running = inner(&root, "child:1", &[first.id(), next.id()]).await?;
    equal("how many were forgotten", &stage.saver.prune("t", &Prune::keep_last(1)).await?, &0)?;
    stage.holds("t", "child:1", &running).await?;
    root.put(&next).await?;
    equal("how many were forgotten", &stage.saver.prune("t", &Prune::keep_last(1)).await?, &3)?;
    stage.holds("t", "child:1", &running[..1]).await?;
    stage.holds("t", "early:1", &[]).await
}

pub(super) async fn a_thread_goes_on_after_pruning(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    for number in 0..5 {
        let draft = author.draft().tail("log", [number.to_string()]);
        author.put(&draft).await?;
    }
    stage.saver.prune("t", &Prune::keep_last(1)).await?;
    let latest = stage.saver.get("t", "", None).await?;
    let next = author.draft().tail("log", ["5"]);
    author.put(&next).await?;
    let next = next.saved([tail("log", None, ["0", "1", "2", "3", "4", "5"])]);
    let before: Vec<SavedCheckpoint> = latest.into_iter().collect();
    author.holds(&[vec![next], before].concat()).await
}

pub(super) async fn a_pruned_checkpoint_takes_no_writes(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let ids = several(&mut author, 3).await?;
    stage.saver.prune("t", &Prune::keep_last(1)).await?;
    refused("writes for a pruned checkpoint", author.write(ids[1], task(1, "a")).await)?;
    refused("a fork of a pruned checkpoint", author.put(&author.draft().after(Some(ids[1]))).await)?;
    let again = Draft::new(ids[1]);
    fenced("a pruned checkpoint saved again", author.put(&again).await)?;
    equal("what stays", &stage.ids("t", "").await?, &vec![ids[0]])
}
