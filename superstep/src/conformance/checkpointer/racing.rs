//! Clauses on many who write at once.

use super::super::{Broken, Checked, ensure, equal};
use super::draft::tail;
use super::stage::{Author, Stage, fenced};
use crate::checkpoint::{ListQuery, Prune};
use crate::id::CheckpointId;

async fn all<T: Send + 'static>(
    tasks: impl IntoIterator<Item = impl Future<Output = Checked<T>> + Send + 'static>,
) -> Checked<Vec<T>> {
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.map_err(|panicked| Broken(panicked.to_string()))??);
    }
    Ok(results)
}

pub(super) async fn many_tasks_write_to_many_threads(stage: Stage) -> Checked {
    const THREADS: usize = 16;
    const STEPS: usize = 25;
    let write = |number: usize| {
        let stage = stage.clone();
        async move {
            let mut author = stage.claim(&format!("thread {number}")).await?;
            for step in 0..STEPS {
                let draft = author.draft().tail("log", [format!("{number}: {step}")]);
                author.put(&draft).await?;
                tokio::task::yield_now().await;
            }
            Ok(())
        }
    };
    all((0..THREADS).map(write)).await?;
    for number in 0..THREADS {
        let thread = format!("thread {number}");
        equal("how many were saved", &stage.ids(&thread, "").await?.len(), &STEPS)?;
        let latest = stage.saver.get(&thread, "", None).await?.ok_or_else(|| Broken(format!("`{thread}` is empty")))?;
        let expected = tail("log", None, (0..STEPS).map(|step| format!("{number}: {step}")));
        let found: Vec<_> = latest.fields.iter().map(|field| &field.tail).collect();
        equal("the values of a thread", &found, &vec![&expected.tail])?;
    }
    Ok(())
}

/// The checkpoints of the thread, oldest first, are a chain: each one's parent is the one before.
async fn chain(stage: &Stage, thread: &str) -> Checked<Vec<CheckpointId>> {
    let listed = stage.list(thread, "", &ListQuery::new()).await?;
    let mut before = None;
    for saved in listed.iter().rev() {
        equal("the parent of a checkpoint in the chain", &saved.record.parent, &before)?;
        ensure!(before < Some(saved.record.id), "the ids of the chain do not rise");
        before = Some(saved.record.id);
    }
    Ok(listed.iter().rev().map(|saved| saved.record.id).collect())
}

pub(super) async fn claimants_of_one_thread_make_a_single_rising_chain(stage: Stage) -> Checked {
    const CLAIMANTS: usize = 4;
    const ATTEMPTS: usize = 25;
    let write = |_| {
        let stage = stage.clone();
        async move {
            let mut won = Vec::new();
            for _ in 0..ATTEMPTS {
                let mut author = stage.claim("t").await?;
                tokio::task::yield_now().await;
                match author.put(&author.draft()).await {
                    Ok(id) => won.push(id),
                    lost => fenced("who lost the race", lost)?,
                }
            }
            Ok(won)
        }
    };
    let mut won: Vec<CheckpointId> = all((0..CLAIMANTS).map(write)).await?.into_iter().flatten().collect();
    won.sort_unstable();
    ensure!(!won.is_empty(), "nobody could save anything, though the last claimant must");
    equal("the checkpoints of those who won", &chain(&stage, "t").await?, &won)
}

pub(super) async fn one_of_many_with_one_lease_wins_each_head(stage: Stage) -> Checked {
    const RACERS: usize = 4;
    const ROUNDS: usize = 20;
    let mut author = stage.claim("t").await?;
    for round in 0..ROUNDS {
        let race = |_| {
            let mut racer: Author = author.clone();
            async move {
                let draft = racer.draft();
                tokio::task::yield_now().await;
                match racer.put(&draft).await {
                    Ok(_) => Ok(Some(racer)),
                    lost => fenced("who lost the race", lost).map(|()| None),
                }
            }
        };
        let mut won: Vec<Author> = all((0..RACERS).map(race)).await?.into_iter().flatten().collect();
        equal("how many won the head", &won.len(), &1)?;
        author = won.remove(0);
        equal("the length of the chain", &chain(&stage, "t").await?.len(), &(round + 1))?;
    }
    Ok(())
}

pub(super) async fn pruning_beside_a_writer_takes_nothing_from_it(stage: Stage) -> Checked {
    const STEPS: usize = 100;
    let mut author = stage.claim("t").await?;
    author.put(&author.draft()).await?;
    let writing = tokio::spawn(async move {
        for step in 0..STEPS {
            let draft = author.draft().tail("log", [step.to_string()]);
            author.put(&draft).await?;
            tokio::task::yield_now().await;
        }
        Checked::Ok(())
    });
    while !writing.is_finished() {
        stage.saver.prune("t", &Prune::keep_last(2)).await?;
        tokio::task::yield_now().await;
    }
    writing.await.map_err(|panicked| Broken(panicked.to_string()))??;
    stage.saver.prune("t", &Prune::keep_last(2)).await?;
    let listed = stage.list("t", "", &ListQuery::new()).await?;
    equal("how many stay", &listed.len(), &2)?;
    let expected = tail("log", None, (0..STEPS).map(|step| step.to_string()));
    let found: Vec<_> = listed[0].fields.iter().map(|field| &field.tail).collect();
    equal("the values of the latest", &found, &vec![&expected.tail])
}
