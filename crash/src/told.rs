//! What the log says, and what it shows to be wrong without a look at the database.

use std::collections::{BTreeMap, HashMap, HashSet};

use superstep::CheckpointId;

use crate::Result;
use crate::workload::batch_of;

/// What the log says.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) violations: Vec<String>,
    /// Acknowledged checkpoints of each thread, with the epoch that they were written in.
    pub(crate) acknowledged: HashMap<String, HashMap<CheckpointId, u64>>,
    /// What whoever watched each thread was shown and promised.
    pub(crate) shown: HashMap<String, Shown>,
    pub(crate) events: usize,
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
    progress: HashMap<String, Progress>,
    /// Writes that were asked for, by id and epoch, if that was after a newer claim: with its epoch.
    stale: HashMap<(String, u64), u64>,
    /// What the worker of each batch has under way.
    under_way: HashMap<String, UnderWay>,
}

/// What was shown of a thread.
#[derive(Default)]
pub(crate) struct Shown {
    pub(crate) tasks: HashSet<String>,
    pub(crate) checkpoints: HashSet<String>,
}

/// How far a thread was, by epoch.
#[derive(Default)]
struct Progress {
    /// The furthest state that was shown.
    shown: BTreeMap<u64, usize>,
    /// The earliest state that a task started on.
    started: BTreeMap<u64, usize>,
}

#[derive(Default)]
struct Task {
    /// The latest epoch in which it started.
    started: Option<u64>,
    /// The earliest epoch in which its result was acknowledged.
    saved: Option<u64>,
    /// The earliest epoch in which its end was shown.
    shown: Option<u64>,
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
                ["start", thread, task, epoch, progress] => {
                    told.start(thread, task, epoch.parse()?);
                    told.start_on(thread, epoch.parse()?, progress.parse()?);
                }
                ["shown", thread, "task", task, epoch] => told.shown_task(thread, task, epoch.parse()?),
                ["shown", thread, "state", progress, epoch] => {
                    told.shown_state(thread, progress.parse()?, epoch.parse()?);
                }
                ["shown", thread, "checkpoint", id, _] => {
                    told.shown_of(thread).checkpoints.insert(id.to_owned());
                }
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
        } else if known.shown.is_some_and(|shown| shown <= epoch) {
            self.violations.push(format!("{thread}: task {task} ran again in epoch {epoch} after its end was shown"));
        }
    }

    /// A task must not start on a state that is behind one that was shown before.
    fn start_on(&mut self, thread: &str, epoch: u64, progress: usize) {
        let known = self.progress.entry(thread.to_owned()).or_default();
        let earliest = known.started.entry(epoch).or_insert(progress);
        *earliest = progress.min(*earliest);
        if let Some(shown) =
            known.shown.range(..=epoch).map(|(_, shown)| *shown).max().filter(|shown| *shown > progress)
        {
            let what =
                format!("{thread}: a task of epoch {epoch} started on state {progress} after state {shown} was shown");
            self.violations.push(what);
        }
    }

    /// As with results that were saved: who runs a task later cannot have been shown before that it had ended.
    fn shown_task(&mut self, thread: &str, task: &str, epoch: u64) {
        self.shown_of(thread).tasks.insert(task.to_owned());
        let known = self.tasks.entry(task.to_owned()).or_default();
        let is_new = known.shown.is_none_or(|shown| epoch < shown);
        if is_new {
            known.shown = Some(epoch);
        }
        if let Some(later) = known.started.filter(|started| is_new && *started > epoch) {
            let what =
                format!("{thread}: the end of task {task} was shown in epoch {epoch}, which epoch {later} ran too");
            self.violations.push(what);
        }
    }

    fn shown_state(&mut self, thread: &str, progress: usize, epoch: u64) {
        self.shown_of(thread);
        let known = self.progress.entry(thread.to_owned()).or_default();
        // A worker that was stopped between its claim and its first read finds, and shows, what later epochs have saved.
        if known.started.get(&epoch).is_none_or(|started| *started >= progress) {
            return;
        }
        let furthest = known.shown.entry(epoch).or_insert(progress);
        *furthest = progress.max(*furthest);
        let later = known.started.range(epoch + 1..).find(|(_, started)| **started < progress);
        if let Some((later, started)) = later {
            let what = format!(
                "{thread}: state {progress} was shown in epoch {epoch}, and epoch {later} started on {started}"
            );
            self.violations.push(what);
        }
    }

    fn shown_of(&mut self, thread: &str) -> &mut Shown {
        self.events += 1;
        self.shown.entry(thread.to_owned()).or_default()
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
            violations("start z-0 a 1 0\nask z-0 a 1\nclaimed z-0 2\nstart z-0 a 2 0\nsaved z-0 a 1\ntaken z-0 a 1");
        assert_eq!(found, ["z-0: a result of task a was taken in epoch 1, which epoch 2 ran too"]);
    }

    #[test]
    fn a_successor_must_not_run_a_saved_task() {
        let found = violations("start z-0 a 1 0\nsaved z-0 a 1\nclaimed z-0 2\nstart z-0 a 2 0");
        assert_eq!(found, ["z-0: task a ran again in epoch 2 after its result was saved"]);
    }

    #[test]
    fn who_was_overtaken_may_start_what_a_later_epoch_saved() {
        assert!(violations("claimed z-0 2\nstart z-0 a 2 0\nsaved z-0 a 2\nstart z-0 a 1 0").is_empty());
    }

    #[test]
    fn kills_are_counted_by_what_they_hit() {
        let hits = |log: &str| Told::read(log).map(|told| (told.hit_tasks, told.hit_saves)).expect("a log");
        assert_eq!(hits("claimed k-0 1\nkilled k"), (0, 0));
        assert_eq!(hits("start k-0 a 1 0\nkilled k\nkilled k"), (1, 0));
        assert_eq!(hits("start k-0 a 1 0\nask k-0 a 1\nkilled k"), (1, 1));
        assert_eq!(hits("start k-0 a 1 0\nask k-0 a 1\nsaved k-0 a 1\ntaken k-0 a 1\nask k-0 b 1\nkilled k"), (0, 1));
        assert_eq!(hits("start k-0 a 1 0\nask other-0 b 1\nkilled other"), (0, 1));
    }

    #[test]
    fn a_task_whose_end_was_shown_must_not_run_again() {
        let found = violations("start k-0 a 1 0\nshown k-0 task a 1\nclaimed k-0 2\nstart k-0 a 2 0");
        assert_eq!(found, ["k-0: task a ran again in epoch 2 after its end was shown"]);
        let found = violations("start k-0 a 1 0\nstart k-0 a 2 0\nshown k-0 task a 1\nshown k-0 task a 1");
        assert_eq!(found, ["k-0: the end of task a was shown in epoch 1, which epoch 2 ran too"]);
        assert!(violations("start k-0 a 1 0\nstart k-0 a 2 0\nshown k-0 task a 2\nstart k-0 a 1 0").is_empty());
    }

    #[test]
    fn no_task_must_start_on_a_state_behind_one_that_was_shown() {
        let found = violations("start k-0 a 1 0\nshown k-0 state 1 1\nstart k-0 b 2 0");
        assert_eq!(found, ["k-0: a task of epoch 2 started on state 0 after state 1 was shown"]);
        let found = violations("start k-0 a 1 0\nstart k-0 b 2 0\nshown k-0 state 1 1");
        assert_eq!(found, ["k-0: state 1 was shown in epoch 1, and epoch 2 started on 0"]);
        assert!(violations("start k-0 a 1 0\nshown k-0 state 1 1\nstart k-0 b 2 1\nshown k-0 state 2 2").is_empty());
    }

    /// It was stopped when it had claimed the thread and had read nothing: what it reads when it wakes is from others.
    #[test]
    fn who_comes_late_may_show_what_later_epochs_saved() {
        let later = "claimed z-0 2\nstart z-0 a 2 0\nshown z-0 state 2 2\n";
        assert!(violations(&format!("{later}claimed z-0 1\nshown z-0 state 2 1")).is_empty());
        assert!(violations(&format!("{later}claimed z-0 1\nstart z-0 b 1 2\nshown z-0 state 2 1")).is_empty());
    }
}
