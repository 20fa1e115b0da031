//! Compares the log with the database.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use superstep::{CheckpointId, Checkpointer, ListQuery, MemorySaver, SavedCheckpoint};

use crate::harness::Trial;
use crate::workload::{THREADS, Tally, graph, input, thread_name};
use crate::{Result, backend};

/// What was seen.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) violations: Vec<String>,
    pub(crate) fenced: usize,
    acknowledged: usize,
    saved_tasks: usize,
    started: usize,
    threads: usize,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { violations, fenced, acknowledged, saved_tasks, started, threads } = self;
        write!(
            f,
            "{threads} threads, {acknowledged} acknowledged checkpoints, {saved_tasks} saved tasks of {started} started, \
             {fenced} refused writes; {} violations",
            violations.len()
        )
    }
}

/// What the log says of one thread.
#[derive(Default)]
struct Told {
    /// Acknowledged checkpoints with the epoch that they were written in.
    acknowledged: HashMap<CheckpointId, u64>,
}

pub(crate) async fn check(trial: &Trial, batches: &[String]) -> Result<Found> {
    let mut found = Found::default();
    let told = read_log(&std::fs::read_to_string(&trial.log)?, &mut found)?;
    let saver = backend::open(&trial.backend, &trial.place).await?;
    let undisturbed = undisturbed().await?;
    let app = graph(saver.clone(), None)?;
    for batch in batches {
        for (number, expected) in undisturbed.iter().enumerate() {
            let thread = thread_name(batch, number);
            found.threads += 1;
            let empty = Told::default();
            check_history(&*saver, &thread, told.get(&thread).unwrap_or(&empty), &mut found.violations).await?;
            let state = app.thread(thread.as_str()).state().await?;
            if *state.state != *expected || !state.is_done() {
                let (notes, wanted) = (state.state.notes.len(), expected.notes.len());
                found.violations.push(format!("{thread}: ended with {notes} notes, not with the same {wanted}"));
            }
        }
    }
    Ok(found)
}

/// Reads the log; a task that starts after its result was acknowledged is a violation.
fn read_log(text: &str, found: &mut Found) -> Result<HashMap<String, Told>> {
    let mut told: HashMap<String, Told> = HashMap::new();
    let mut saved: HashSet<&str> = HashSet::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["start", thread, task] => {
                found.started += 1;
                // A zombie starts what it thinks is next, until its first write is refused.
                if saved.contains(task) && !thread.starts_with("zombie") {
                    found.violations.push(format!("{thread}: task {task} ran again after its result was saved"));
                }
            }
            ["saved", _, task] => {
                found.saved_tasks += 1;
                saved.insert(task);
            }
            ["ack", thread, checkpoint, epoch] => {
                found.acknowledged += 1;
                let told = told.entry(thread.to_owned()).or_default();
                told.acknowledged.insert(checkpoint.parse()?, epoch.parse()?);
            }
            ["fenced", _] => found.fenced += 1,
            _ => return Err(format!("the log has a line `{line}`").into()),
        }
    }
    Ok(told)
}

/// Every acknowledged checkpoint is there, and all are one chain whose epochs rise.
async fn check_history(
    saver: &dyn Checkpointer,
    thread: &str,
    told: &Told,
    violations: &mut Vec<String>,
) -> Result<()> {
    let mut history: Vec<SavedCheckpoint> = saver.list(thread, "", &ListQuery::new()).await?;
    history.reverse();
    let there: HashSet<CheckpointId> = history.iter().map(|saved| saved.record.id).collect();
    for lost in told.acknowledged.keys().filter(|id| !there.contains(id)) {
        violations.push(format!("{thread}: checkpoint {lost} was acknowledged and is not there"));
    }
    for pair in history.windows(2) {
        let [before, after] = pair else { continue };
        if after.record.parent != Some(before.record.id) {
            violations.push(format!("{thread}: checkpoint {} does not follow {}", after.record.id, before.record.id));
        }
        let epoch = |saved: &SavedCheckpoint| told.acknowledged.get(&saved.record.id);
        if let (Some(earlier), Some(later)) = (epoch(before), epoch(after))
            && earlier > later
        {
            violations
                .push(format!("{thread}: checkpoint {} was written in epoch {later} after {earlier}", after.record.id));
        }
    }
    Ok(())
}

/// The final states of the threads when nobody disturbs them.
async fn undisturbed() -> Result<Vec<Tally>> {
    let app = graph(MemorySaver::new(), None)?;
    let mut states = Vec::with_capacity(THREADS);
    for number in 0..THREADS {
        states.push(Arc::new(app.invoke(input(number)).thread(number.to_string()).await?.state.clone()));
    }
    Ok(states.into_iter().map(Arc::unwrap_or_clone).collect())
}
