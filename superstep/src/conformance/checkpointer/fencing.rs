//! Clauses on leases: who claims last writes, and nobody else.

use super::super::{Checked, ensure};
use super::draft::{Draft, task};
use super::stage::{Stage, fenced};
use crate::checkpoint::{Epoch, Lease};

pub(super) async fn who_claims_later_has_a_greater_epoch(stage: Stage) -> Checked {
    let mut last = stage.claim("t").await?.epoch;
    for namespace in ["", "inner", "", "another"] {
        let epoch = stage.claim_in("t", namespace).await?.epoch;
        ensure!(epoch > last, "epoch {epoch} came after epoch {last}");
        last = epoch;
    }
    Ok(())
}

pub(super) async fn an_older_claimant_can_write_nothing(stage: Stage) -> Checked {
    let mut first = stage.claim("t").await?;
    let mut saved = first.add("first").await?;
    let mut second = stage.claim("t").await?;
    let draft = first.draft().whole("value", b"lost");
    fenced("an older claimant's checkpoint", first.put(&draft).await)?;
    fenced("an older claimant's writes", first.write(saved.record.id, task(1, "a").wrote("value", b"lost")).await)?;
    let again = Draft(saved.record.clone()).whole("value", b"lost");
    fenced("an older claimant's repeated checkpoint", first.put(&again).await)?;
    second.holds(std::slice::from_ref(&saved)).await?;
    saved.writes = vec![task(1, "a").wrote("value", b"kept")];
    second.write(saved.record.id, saved.writes[0].clone()).await?;
    let newer = second.add("newer").await?;
    second.holds(&[newer, saved]).await
}

pub(super) async fn a_claim_of_one_namespace_fences_all(stage: Stage) -> Checked {
    let mut root = stage.claim("t").await?;
    let mut inner = root.inside("inner");
    let (in_root, in_inner) = (root.add("root").await?, inner.add("inner").await?);
    let other = stage.claim_in("t", "another").await?;
    fenced("in the root", root.put(&root.draft()).await)?;
    fenced("in a namespace", inner.put(&inner.draft()).await)?;
    fenced("in a new namespace", root.inside("third").put(&Draft::new(stage.id())).await)?;
    other.holds(&[]).await?;
    root.holds(&[in_root]).await?;
    inner.holds(&[in_inner]).await
}

pub(super) async fn a_claim_fences_no_other_thread(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let first = author.add("first").await?;
    for thread in ["T", "t ", "tt", "t|inner"] {
        stage.claim(thread).await?;
    }
    let second = author.add("second").await?;
    author.holds(&[second, first]).await
}

pub(super) async fn a_checkpoint_must_go_on_from_the_latest(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let first = author.add("first").await?;
    let second = author.add("second").await?;
    for head in [None, Some(first.record.id), Some(stage.id())] {
        let mut wrong = author.clone();
        wrong.head = head;
        let draft = author.draft();
        fenced(&format!("a checkpoint that expects {head:?} as the latest"), wrong.put(&draft).await)?;
    }
    let mut inner = author.inside("inner");
    inner.head = Some(second.record.id);
    fenced("a first checkpoint that expects another namespace's", inner.put(&Draft::new(stage.id())).await)?;
    let third = author.add("third").await?;
    author.holds(&[third, second, first]).await
}

pub(super) async fn a_checkpoint_must_be_newer_than_the_latest(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let early = stage.id();
    let saved = author.add("first").await?;
    let draft = Draft::new(early).after(author.head);
    fenced("a checkpoint with a smaller id than the latest", author.put(&draft).await)?;
    author.holds(&[saved]).await
}

pub(super) async fn an_unclaimed_thread_takes_no_writes(stage: Stage) -> Checked {
    for epoch in [0, 1, 7] {
        let lease = Lease::new("t", "", Epoch::from_u64(epoch));
        fenced("a checkpoint without a claim", stage.saver.put(lease, Draft::new(stage.id()).0).await)?;
        fenced("writes without a claim", stage.saver.put_writes(lease, stage.id(), task(1, "a")).await)?;
    }
    stage.holds("t", "", &[]).await
}

pub(super) async fn deleting_a_thread_fences_its_claimants(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let saved = author.add("first").await?;
    let mut idle = stage.claim("idle").await?;
    for thread in ["t", "idle"] {
        stage.saver.delete_thread(thread).await?;
    }
    fenced("a checkpoint after the thread was deleted", author.put(&author.draft()).await)?;
    fenced("writes after the thread was deleted", author.write(saved.record.id, task(1, "a")).await)?;
    author.head = None;
    fenced("a first checkpoint after the thread was deleted", author.put(&Draft::new(stage.id())).await)?;
    fenced("a first checkpoint after an empty thread was deleted", idle.put(&Draft::new(stage.id())).await)?;
    author.holds(&[]).await?;
    idle.holds(&[]).await
}

pub(super) async fn a_thread_made_again_does_not_know_its_old_claimants(stage: Stage) -> Checked {
    let mut old = Vec::new();
    for round in 0..5 {
        let mut author = stage.claim("t").await?;
        ensure!(author.head.is_none(), "a deleted thread still has a latest checkpoint");
        let saved = author.add(&format!("round {round}")).await?;
        for (epoch, head) in &old {
            let mut late = author.clone();
            (late.epoch, late.head) = (*epoch, *head);
            fenced("a checkpoint by someone who claimed the deleted thread", late.put(&author.draft()).await)?;
            late.head = author.head;
            fenced("the same behind the new latest one", late.put(&author.draft()).await)?;
            fenced("writes by them", late.write(saved.record.id, task(1, "a")).await)?;
        }
        author.holds(&[saved]).await?;
        old.push((author.epoch, author.head));
        stage.saver.delete_thread("t").await?;
    }
    Ok(())
}
