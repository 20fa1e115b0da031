//! Clauses on saves that nobody waits for, for checkpointers that [keep their order](Checkpointer::keeps_order).

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use super::super::{Checked, ensure, equal};
use super::draft::{Draft, tail, task};
use super::stage::{Author, Stage};
use crate::checkpoint::{CheckpointError, Checkpointer};
use crate::id::CheckpointId;

/// A save that has begun.
type Saving = Pin<Box<dyn Future<Output = Result<(), CheckpointError>> + Send>>;

/// Begins a save as a run does: it is polled once.
async fn begin(save: impl Future<Output = Result<(), CheckpointError>> + Send + 'static) -> Saving {
    let mut saving: Saving = Box::pin(save);
    match poll_fn(|cx| Poll::Ready(saving.as_mut().poll(cx))).await {
        Poll::Ready(result) => Box::pin(std::future::ready(result)),
        Poll::Pending => saving,
    }
}

async fn begin_put(author: &mut Author, draft: &Draft) -> Saving {
    let (by, record) = (author.clone(), draft.0.clone().with_head(author.head));
    (author.head, author.step) = (Some(draft.id()), author.step + 1);
    begin(async move { by.stage.saver.put(by.lease(), record).await }).await
}

async fn begin_write(author: &Author, at: CheckpointId, number: u128) -> Saving {
    let (by, record) = (author.clone(), task(number, &format!("/{number}")).wrote("log", number.to_string()));
    begin(async move { by.write(at, record).await }).await
}

pub(super) async fn saves_that_nobody_waits_for_take_effect_in_order(stage: Stage) -> Checked {
    const STEPS: usize = 150;
    if !stage.saver.keeps_order() {
        return Ok(());
    }
    let mut author = stage.claim("thread").await?;
    let mut savings = Vec::new();
    for step in 0..STEPS {
        let mut draft = author.draft().tail("log", [step.to_string()]);
        if let (Some(at), 0) = (author.head, step % 3) {
            savings.push(begin_write(&author, at, step as u128).await);
        } else if author.head.is_some() {
            draft = draft.with(task(step as u128, "/with").wrote("log", step.to_string()));
        }
        savings.push(begin_put(&mut author, &draft).await);
    }
    for saving in savings.into_iter().rev() {
        saving.await?;
    }
    let ids = stage.ids("thread", "").await?;
    equal("how many were saved", &ids.len(), &STEPS)?;
    equal("the latest", &ids.first().copied(), &author.head)?;
    let latest = stage.get("thread", ids[0]).await?;
    let expected = tail("log", None, (0..STEPS).map(|step| step.to_string()));
    equal("its values", &latest.fields.iter().map(|field| &field.tail).collect::<Vec<_>>(), &vec![&expected.tail])?;
    for id in &ids[1..] {
        equal("how many tasks wrote under each but the latest", &stage.get("thread", *id).await?.writes.len(), &1)?;
    }
    Ok(())
}

pub(super) async fn a_save_whose_predecessor_failed_fails_too(stage: Stage) -> Checked {
    if !stage.saver.keeps_order() {
        return Ok(());
    }
    let mut author = stage.claim("thread").await?;
    let first = author.draft().whole("value", "first");
    let first_saving = begin_put(&mut author, &first).await;
    let homeless = author.draft().after(Some(stage.id())).whole("value", "homeless");
    let refused = begin_put(&mut author, &homeless).await;
    let after = author.draft().whole("value", "after");
    let after_saving = begin_put(&mut author, &after).await;
    let written = begin_write(&author, homeless.id(), 1).await;
    first_saving.await?;
    ensure!(refused.await.is_err(), "a checkpoint was saved that builds on one that is not there");
    ensure!(after_saving.await.is_err(), "a checkpoint was saved after one that was refused");
    ensure!(written.await.is_err(), "what a task wrote was saved under a checkpoint that was refused");
    equal("what is left", &stage.ids("thread", "").await?, &vec![first.id()])
}
