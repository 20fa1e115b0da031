//! What tasks wrote, in several records of the same task.

use std::collections::HashMap;
use std::hash::Hash;

use crate::checkpoint::TaskRecord;

/// Takes a later record of the same task in: what was written first stays; its error, questions and answers are replaced.
///
/// ```
/// use superstep::checkpoint::backend::merge_task;
/// use superstep::{Interrupt, TaskId, TaskRecord};
/// let asked = |what: &str| TaskRecord::new(TaskId::from_u128(7), "path").with_interrupts(Some(vec![Interrupt::new("id", what)]));
/// let mut task = asked("first?");
/// merge_task(&mut task, asked("second?"));
/// assert_eq!(task.interrupts().unwrap()[0].value, "second?");
/// ```
pub fn merge_task(known: &mut TaskRecord, later: TaskRecord) {
    let first = known.writes.len();
    known.writes.extend(later.writes.into_iter().skip(first));
    known.error = later.error.or(known.error.take());
    known.handled |= later.handled;
    known.interrupts = later.interrupts.or(known.interrupts.take());
    known.resume = later.resume.or(known.resume.take());
}

/// Puts the records of each task together, as a checkpoint reads; they come in the order in which they were saved. What
/// one run wrote stands together, in the place of the first of it.
///
/// ```
/// use superstep::checkpoint::backend::merge_tasks;
/// use superstep::{TaskId, TaskRecord};
/// let task = |number| TaskRecord::new(TaskId::from_u128(number), "path");
/// assert_eq!(merge_tasks([task(1), task(2), task(1)]), [task(1), task(2)]);
/// ```
pub fn merge_tasks(records: impl IntoIterator<Item = TaskRecord>) -> Vec<TaskRecord> {
    merge_by(merge_runs(records), |record| record.task)
}

/// Puts the records of each task and run together: so they are to be kept, because a run may be deleted.
///
/// ```
/// use superstep::checkpoint::backend::merge_runs;
/// use superstep::{TaskId, TaskRecord};
/// let by = |run: &str| TaskRecord::new(TaskId::from_u128(1), "path").with_run(Some(run.into()));
/// assert_eq!(merge_runs([by("first"), by("second"), by("first")]), [by("first"), by("second")]);
/// ```
pub fn merge_runs(records: impl IntoIterator<Item = TaskRecord>) -> Vec<TaskRecord> {
    merge_by(records, |record| (record.task, record.run.clone()))
}

fn merge_by<K: Hash + Eq>(
    records: impl IntoIterator<Item = TaskRecord>,
    key: impl Fn(&TaskRecord) -> K,
) -> Vec<TaskRecord> {
    let mut merged: Vec<TaskRecord> = Vec::new();
    let mut places = HashMap::new();
    for record in records {
        let place = *places.entry(key(&record)).or_insert(merged.len());
        match merged.get_mut(place) {
            Some(known) => merge_task(known, record),
            None => merged.push(record),
        }
    }
    merged
}
