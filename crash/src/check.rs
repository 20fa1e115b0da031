//! Compares the log with the database.

use std::collections::{HashMap, HashSet};
use std::fmt;

use superstep::{CheckpointId, Checkpointer, Durability, ListQuery, MemorySaver, SavedCheckpoint};

use crate::Result;
use crate::backend::Savers;
use crate::harness::Trial;
use crate::told::{Shown, Told};
use crate::workload::{THREADS, Tally, durability, graph, input, thread_name};

/// What was seen.
pub(crate) struct Found {
    pub(crate) told: Told,
    threads: usize,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { violations, acknowledged, started, saved, fenced, events, hit_tasks, hit_saves, .. } = &self.told;
        let (threads, acknowledged) = (self.threads, acknowledged.values().map(HashMap::len).sum::<usize>());
        write!(
            f,
            "{hit_tasks} kills hit running tasks, {hit_saves} hit saves; {threads} threads, {acknowledged} acknowledged \
             checkpoints, {saved} saved tasks of {started} started, {fenced} refused writes, {events} promised events; {} \
             violations",
            violations.len()
        )
    }
}

pub(crate) async fn check(trial: &Trial, batches: &[String]) -> Result<Found> {
    let mut told = Told::read(&std::fs::read_to_string(&trial.log)?)?;
    let saver = Savers::open(&trial.backend, &trial.place).await?.usual;
    let undisturbed = undisturbed().await?;
    let app = graph(saver.clone(), None)?;
    for batch in batches {
        for (number, expected) in undisturbed.iter().enumerate() {
            let thread = thread_name(batch, number);
            let acknowledged = told.acknowledged.remove(&thread).unwrap_or_default();
            let shown = told.shown.remove(&thread).unwrap_or_default();
            let history = check_history(&*saver, &thread, &acknowledged, &mut told.violations).await?;
            check_shown(&history, &thread, &shown, durability(number), &mut told.violations);
            told.acknowledged.insert(thread.clone(), acknowledged);
            let state = app.thread(thread.as_str()).state().await?;
            if *state.state != *expected || !state.is_done() {
                let (notes, wanted) = (state.state.notes.len(), expected.notes.len());
                told.violations.push(format!("{thread}: ended with {notes} notes, not with the same {wanted}"));
            }
        }
    }
    Ok(Found { told, threads: batches.len() * undisturbed.len() })
}

/// Every acknowledged checkpoint is there, and all are one chain whose epochs rise.
async fn check_history(
    saver: &dyn Checkpointer,
    thread: &str,
    acknowledged: &HashMap<CheckpointId, u64>,
    violations: &mut Vec<String>,
) -> Result<Vec<SavedCheckpoint>> {
    let mut history: Vec<SavedCheckpoint> = saver.list(thread, "", &ListQuery::new()).await?;
    history.reverse();
    let there: HashSet<CheckpointId> = history.iter().map(|saved| saved.record().id()).collect();
    for lost in acknowledged.keys().filter(|id| !there.contains(id)) {
        violations.push(format!("{thread}: checkpoint {lost} was acknowledged and is not there"));
    }
    for pair in history.windows(2) {
        let [before, after] = pair else { continue };
        if after.record().parent() != Some(before.record().id()) {
            violations.push(format!(
                "{thread}: checkpoint {} does not follow {}",
                after.record().id(),
                before.record().id()
            ));
        }
        let epoch = |saved: &SavedCheckpoint| acknowledged.get(&saved.record().id());
        if let (Some(earlier), Some(later)) = (epoch(before), epoch(after))
            && earlier > later
        {
            violations.push(format!(
                "{thread}: checkpoint {} was written in epoch {later} after {earlier}",
                after.record().id()
            ));
        }
    }
    Ok(history)
}

/// Every checkpoint that was shown and promised is there, and the result of every task. With durability `exit` those of
/// the steps on the way are never saved; their states are.
fn check_shown(
    history: &[SavedCheckpoint],
    thread: &str,
    shown: &Shown,
    durability: Durability,
    violations: &mut Vec<String>,
) {
    let there: HashSet<String> = history.iter().map(|saved| saved.record().id().to_string()).collect();
    for lost in shown.checkpoints.difference(&there) {
        violations.push(format!("{thread}: checkpoint {lost} was shown and is not there"));
    }
    if durability == Durability::Exit {
        return;
    }
    let finished = history.iter().flat_map(SavedCheckpoint::writes).filter(|task| task.is_finished());
    let there: HashSet<String> = finished.map(|task| task.task().to_string()).collect();
    for lost in shown.tasks.difference(&there) {
        violations.push(format!("{thread}: the end of task {lost} was shown, and its result is not there"));
    }
}

/// The final states of the threads when nobody disturbs them.
async fn undisturbed() -> Result<Vec<Tally>> {
    let app = graph(MemorySaver::new(), None)?;
    let mut states = Vec::with_capacity(THREADS);
    for number in 0..THREADS {
        states.push(app.invoke(input(number)).thread(number.to_string()).await?.state.clone());
    }
    Ok(states)
}
