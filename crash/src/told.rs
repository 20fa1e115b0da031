//! What the log says, and what it shows to be wrong without a look at the database.

use std::collections::{HashMap, HashSet};

use superstep::CheckpointId;

use crate::Result;
use crate::workload::batch_of;

/// What the log says.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) violations: Vec<String>,
    /// Acknowledged checkpoints of each thread, with the epoch that they were written in.
    pub(crate) acknowledged: HashMap<String, HashMap<CheckpointId, u64>>,
    pub(crate) started: usize,
    pub(crate) saved: usize,
    pub(crate) fenced: usize,
    /// Kills that came between the start of a task and the word that its result is saved.
    pub(crate) hit_tasks: usize,
    /// Kills that came between a question for a save and its answer.
    pub(crate) hit_saves: usize,
    /// The latest epoch that each thread was claimed in.
    newest: HashMap<String, u64>,
    tasks: HashMap<String, Task>,
    /// Writes that were asked for, by id and epoch, if that was after a newer claim: with its epoch.
    stale: HashMap<(String, u64), u64>,
    /// What the worker of each batch has under way.
    under_way: HashMap<String, UnderWay>,
}

#[derive(Default)]
struct Task {
    /// The latest epoch in which it started.
    started: Option<u64>,
    /// The earliest epoch in which its result was acknowledged.
    saved: Option<u64>,
}

#[derive(Default)]
struct UnderWay {
    tasks: HashSet<String>,
    saves: HashSet<String>,
}

impl Told {
    pub(crate) fn read(log: &str) -> Result<Self> {
        let mut told = Self::default();
        for line in log.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["claimed", thread, epoch] => told.claimed(thread, epoch.parse()?),
                ["start", thread, task, epoch] => told.start(thread, task, epoch.parse()?),
                ["ask", thread, id, epoch] => told.ask(thread, id, epoch.parse()?),
                ["saved", thread, task, epoch] => told.saved(thread, task, epoch.parse()?),
                ["checkpoint", thread, id, epoch] => told.checkpoint(thread, id.parse()?, epoch.parse()?),
                ["taken", thread, id, epoch] => told.taken(thread, id, epoch.parse()?),
                ["fenced", thread, id, _] => told.fenced(thread, id),
                ["killed", batch] => told.killed(batch),
                _ => return Err(format!("the log has a line `{line}`").into()),
            }
        }
        Ok(told)
    }

    fn claimed(&mut self, thread: &str, epoch: u64) {
        let newest = self.newest.entry(thread.to_owned()).or_default();
        *newest = epoch.max(*newest);
    }

    /// A task that starts must not have a result of this epoch or an earlier one. Who was overtaken cannot know of later
    /// ones, and starts what it thinks is next until its first write is refused.
    fn start(&mut self, thread: &str, task: &str, epoch: u64) {
        self.started += 1;
        self.of(thread).tasks.insert(task.to_owned());
        let known = self.tasks.entry(task.to_owned()).or_default();
        known.started = known.started.max(Some(epoch));
        if known.saved.is_some_and(|saved| saved <= epoch) {
            self.violations
                .push(format!("{thread}: task {task} ran again in epoch {epoch} after its result was saved"));
        }
    }

    fn ask(&mut self, thread: &str, id: &str, epoch: u64) {
        self.of(thread).saves.insert(id.to_owned());
        if let Some(newer) = self.newest.get(thread).filter(|newest| **newest > epoch) {
            self.stale.insert((id.to_owned(), epoch), *newer);
        }
    }

    /// A result that was saved before a later claim was seen by it, so that the task did not start again; one that was
    /// not saved by then must be refused. Either way it is wrong to have both, in whatever order they were logged.
    fn saved(&mut self, thread: &str, task: &str, epoch: u64) {
        self.saved += 1;
        self.of(thread).tasks.remove(task);
        let known = self.tasks.entry(task.to_owned()).or_default();
        known.saved = Some(known.saved.map_or(epoch, |saved| saved.min(epoch)));
        if let Some(later) = known.started.filter(|started| *started > epoch) {
            let what =
                format!("{thread}: a result of task {task} was taken in epoch {epoch}, which epoch {later} ran too");
            self.violations.push(what);
        }
    }

    fn checkpoint(&mut self, thread: &str, id: CheckpointId, epoch: u64) {
        self.acknowledged.entry(thread.to_owned()).or_default().insert(id, epoch);
    }

    /// What was asked for before the newer claim may have been saved before it, too, although a worker that was stopped
    /// says so only when it wakes.
    fn taken(&mut self, thread: &str, id: &str, epoch: u64) {
        self.of(thread).saves.remove(id);
        if let Some(newer) = self.stale.get(&(id.to_owned(), epoch)) {
            let what = format!("{thread}: write {id} of epoch {epoch} was taken after epoch {newer} had the thread");
            self.violations.push(what);
        }
    }

    fn fenced(&mut self, thread: &str, id: &str) {
        self.fenced += 1;
        self.of(thread).saves.remove(id);
    }

    fn killed(&mut self, batch: &str) {
        let under_way = self.under_way.remove(batch).unwrap_or_default();
        self.hit_tasks += usize::from(!under_way.tasks.is_empty());
        self.hit_saves += usize::from(!under_way.saves.is_empty());
    }

    fn of(&mut self, thread: &str) -> &mut UnderWay {
        self.under_way.entry(batch_of(thread).to_owned()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Told;

    #[track_caller]
    fn violations(log: &str) -> Vec<String> {
        Told::read(log).expect("a log").violations
    }

    #[test]
    fn a_write_that_was_asked_for_after_a_newer_claim_must_not_be_taken() {
        let log = "claimed z-0 1\nclaimed z-0 2\nask z-0 a 1\n";
        assert!(violations(&format!("{log}fenced z-0 a 1")).is_empty());
        let found = violations(&format!("{log}saved z-0 a 1\ntaken z-0 a 1"));
        assert_eq!(found, ["z-0: write a of epoch 1 was taken after epoch 2 had the thread"]);
    }

    #[test]
    fn a_worker_may_say_late_that_it_saved_before_the_newer_claim() {
        assert!(violations("claimed z-0 1\nask z-0 a 1\nclaimed z-0 2\nsaved z-0 a 1\ntaken z-0 a 1").is_empty());
    }

    #[test]
    fn a_result_of_an_earlier_epoch_must_not_be_taken_when_a_later_one_ran_the_task() {
        let found =
            violations("start z-0 a 1\nask z-0 a 1\nclaimed z-0 2\nstart z-0 a 2\nsaved z-0 a 1\ntaken z-0 a 1");
        assert_eq!(found, ["z-0: a result of task a was taken in epoch 1, which epoch 2 ran too"]);
    }

    #[test]
    fn a_successor_must_not_run_a_saved_task() {
        let found = violations("start z-0 a 1\nsaved z-0 a 1\nclaimed z-0 2\nstart z-0 a 2");
        assert_eq!(found, ["z-0: task a ran again in epoch 2 after its result was saved"]);
    }

    #[test]
    fn who_was_overtaken_may_start_what_a_later_epoch_saved() {
        assert!(violations("claimed z-0 2\nstart z-0 a 2\nsaved z-0 a 2\nstart z-0 a 1").is_empty());
    }

    #[test]
    fn kills_are_counted_by_what_they_hit() {
        let hits = |log: &str| Told::read(log).map(|told| (told.hit_tasks, told.hit_saves)).expect("a log");
        assert_eq!(hits("claimed k-0 1\nkilled k"), (0, 0));
        assert_eq!(hits("start k-0 a 1\nkilled k\nkilled k"), (1, 0));
        assert_eq!(hits("start k-0 a 1\nask k-0 a 1\nkilled k"), (1, 1));
        assert_eq!(hits("start k-0 a 1\nask k-0 a 1\nsaved k-0 a 1\ntaken k-0 a 1\nask k-0 b 1\nkilled k"), (0, 1));
        assert_eq!(hits("start k-0 a 1\nask other-0 b 1\nkilled other"), (0, 1));
    }
}
