//! Clauses on what tasks wrote before their step was saved.

use serde_json::json;

use super::super::Checked;
use super::draft::{task, whole};
use super::stage::{Author, Stage, fenced, refused};
use crate::checkpoint::{SavedCheckpoint, TaskRecord};

/// A thread with one checkpoint.
async fn one(stage: &Stage) -> Checked<(Author, SavedCheckpoint)> {
    let mut author = stage.claim("t").await?;
    let saved = author.add("first").await?;
    Ok((author, saved))
}

/// The only checkpoint of the thread has these writes.
async fn has(author: &Author, mut saved: SavedCheckpoint, writes: Vec<TaskRecord>) -> Checked {
    saved.writes = writes;
    author.holds(&[saved]).await
}

pub(super) async fn writes_are_given_back_in_the_order_of_paths(stage: Stage) -> Checked {
    let (author, saved) = one(&stage).await?;
    let large = vec![9; 100_000];
    let first = task(u128::MAX, "").wrote("a", b"").overwrote("b", &large).wrote("a", b"again");
    let [second, third] = [task(7, "a").wrote("größe \u{1f980}", b"2"), task(3, "b").wrote("a", b"3")];
    let [fourth, fifth] = [task(4, "b").wrote("a", b"4").handled(), task(1, "~c, 0000000002").wrote("a", b"5")];
    for record in [&fourth, &first, &fifth, &third, &second] {
        author.write(saved.record.id, record.clone()).await?;
    }
    has(&author, saved, vec![first, second, third, fourth, fifth]).await
}

pub(super) async fn of_ordinary_writes_the_first_stay(stage: Stage) -> Checked {
    let (author, saved) = one(&stage).await?;
    for values in [&["1", "2"][..], &["x"], &["x", "x", "3"], &["x", "x", "x", "4"]] {
        let record = values.iter().fold(task(1, "a"), |record, value| record.wrote("log", value));
        author.write(saved.record.id, record).await?;
    }
    let kept = ["1", "2", "3", "4"].iter().fold(task(1, "a"), |record, value| record.wrote("log", value));
    has(&author, saved, vec![kept]).await
}

pub(super) async fn errors_questions_and_answers_are_replaced(stage: Stage) -> Checked {
    let (author, saved) = one(&stage).await?;
    let first = task(1, "a").failed("first").asked(&["sure?"]).answered(json!(["yes"]));
    let second = task(1, "a").failed("second").asked(&["really?", "now?"]).answered(json!(["yes", { "no": null }]));
    author.write(saved.record.id, first).await?;
    author.write(saved.record.id, second.clone()).await?;
    has(&author, saved, vec![second]).await
}

pub(super) async fn what_a_later_record_leaves_out_stays(stage: Stage) -> Checked {
    let (author, saved) = one(&stage).await?;
    let full = task(1, "a").wrote("log", b"1").failed("first").asked(&[]).answered(json!(null)).handled();
    author.write(saved.record.id, full.clone()).await?;
    author.write(saved.record.id, task(1, "another path")).await?;
    author.write(saved.record.id, task(2, "b").asked(&["sure?"])).await?;
    author.write(saved.record.id, task(2, "b").answered(json!([1]))).await?;
    author.write(saved.record.id, task(2, "b").wrote("log", b"2")).await?;
    let second = task(2, "b").wrote("log", b"2").asked(&["sure?"]).answered(json!([1]));
    has(&author, saved, vec![full, second]).await
}

pub(super) async fn writes_of_old_checkpoints_can_be_added(stage: Stage) -> Checked {
    let (mut author, mut first) = one(&stage).await?;
    let mut second = author.add("second").await?;
    let third = author.add("third").await?;
    first.writes = vec![task(1, "a").wrote("value", b"1")];
    second.writes = vec![task(1, "a").wrote("value", b"2")];
    for saved in [&first, &second] {
        author.write(saved.record.id, saved.writes[0].clone()).await?;
    }
    author.holds(&[third, second, first]).await
}

pub(super) async fn writes_for_a_checkpoint_that_is_not_there_are_refused(stage: Stage) -> Checked {
    let (author, saved) = one(&stage).await?;
    let record = || task(1, "a").wrote("value", b"1");
    refused("writes for an unknown checkpoint", author.write(stage.id(), record()).await)?;
    let inner = author.inside("inner");
    refused("writes for a checkpoint of another namespace", inner.write(saved.record.id, record()).await)?;
    let other = stage.claim("other").await?;
    refused("writes for a checkpoint of another thread", other.write(saved.record.id, record()).await)?;
    author.holds(&[saved]).await
}

pub(super) async fn writes_that_come_with_a_checkpoint_belong_to_its_base(stage: Stage) -> Checked {
    let (mut author, mut first) = one(&stage).await?;
    author.write(first.record.id, task(2, "b").wrote("log", b"old").asked(&["sure?"])).await?;
    let with = [task(1, "a").wrote("value", b"2"), task(2, "b").wrote("log", b"x").wrote("log", b"new")];
    let [one, two] = with;
    let draft = author.draft().whole("value", b"2").with(two).with(one.clone());
    author.put(&draft).await?;
    let two = task(2, "b").wrote("log", b"old").wrote("log", b"new").asked(&["sure?"]);
    first.writes = vec![one, two];
    author.holds(&[draft.saved([whole("value", b"2")]), first]).await
}

pub(super) async fn writes_that_come_with_a_refused_checkpoint_are_not_kept(stage: Stage) -> Checked {
    let (mut author, first) = one(&stage).await?;
    let mut late = author.clone();
    let second = author.add("second").await?;
    let draft = late.draft().with(task(1, "a").wrote("value", b"lost"));
    fenced("a checkpoint behind one that is not the latest", late.put(&draft).await)?;
    let mut stale = author.clone();
    let author = stage.claim("t").await?;
    let draft = stale.draft().with(task(1, "a").wrote("value", b"lost"));
    fenced("a checkpoint of an older claimant", stale.put(&draft).await)?;
    author.holds(&[second, first]).await
}

pub(super) async fn writes_of_a_base_are_not_inherited(stage: Stage) -> Checked {
    let (mut author, mut first) = one(&stage).await?;
    first.writes = vec![task(1, "a").wrote("value", b"1")];
    author.write(first.record.id, first.writes[0].clone()).await?;
    let second = author.add("second").await?;
    let fork = author.draft().after(Some(first.record.id));
    author.put(&fork).await?;
    author.holds(&[fork.saved(first.fields.clone()), second, first]).await
}
