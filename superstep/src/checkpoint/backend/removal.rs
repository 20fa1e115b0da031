//! Which checkpoints go.

use std::collections::{BTreeMap, HashSet};
use std::time::SystemTime;

use crate::checkpoint::prune::Kept;
use crate::checkpoint::{CheckpointRecord, Prune, TaskRecord};
use crate::id::CheckpointId;

/// What goes from a namespace: checkpoints with all that was written under them, and what a run wrote under those that
/// stay.
///
/// ```
/// use superstep::checkpoint::backend::Deletion;
/// use superstep::{CheckpointId, TaskId, TaskRecord};
/// let id = CheckpointId::from_u128(1 << 64);
/// let deletion = Deletion::of([id]).written_by("run 1");
/// assert!(deletion.takes(id));
/// let task = |run: &str| TaskRecord::new(TaskId::from_u128(7), "path").with_run(Some(run.into()));
/// assert!(deletion.takes_writes(&task("run 1")) && !deletion.takes_writes(&task("run 2")));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deletion {
    checkpoints: HashSet<CheckpointId>,
    run: Option<String>,
}

impl Deletion {
    /// These checkpoints.
    pub fn of(checkpoints: impl IntoIterator<Item = CheckpointId>) -> Self {
        Self { checkpoints: checkpoints.into_iter().collect(), run: None }
    }

    /// Also what this run wrote under checkpoints that stay.
    #[must_use]
    pub fn written_by(self, run: impl Into<String>) -> Self {
        Self { run: Some(run.into()), ..self }
    }

    /// The checkpoints that go, whether they are there or not.
    pub fn checkpoints(&self) -> &HashSet<CheckpointId> {
        &self.checkpoints
    }

    /// The run whose writes go.
    pub fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Whether a checkpoint goes.
    pub fn takes(&self, checkpoint: CheckpointId) -> bool {
        self.checkpoints.contains(&checkpoint)
    }

    /// Whether this record goes from under a checkpoint that stays.
    pub fn takes_writes(&self, task: &TaskRecord) -> bool {
        self.run.is_some() && self.run() == task.run()
    }
}

/// A checkpoint without what is in it.
///
/// ```
/// use superstep::checkpoint::backend::CheckpointSummary;
/// use superstep::{CheckpointId, CheckpointRecord, Source};
/// let record = CheckpointRecord::new(CheckpointId::from_u128(1 << 64), Source::Input, -1);
/// assert_eq!(CheckpointSummary::from(&record).id, record.id());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointSummary {
    /// Its id.
    pub id: CheckpointId,
    /// The root graph's checkpoint that it was made under.
    pub root: Option<CheckpointId>,
    /// When it was made.
    pub created_at: SystemTime,
}

impl From<&CheckpointRecord> for CheckpointSummary {
    fn from(record: &CheckpointRecord) -> Self {
        Self { id: record.id(), root: record.parents().get("").copied(), created_at: record.created_at() }
    }
}

/// Which checkpoints of a thread go by a rule, by namespace; they come oldest first.
///
/// ```
/// use std::collections::BTreeMap;
/// use superstep::checkpoint::backend::{CheckpointSummary, plan_prune};
/// use superstep::{CheckpointId, CheckpointRecord, Prune, Source};
/// let summary = |number: u128| {
///     CheckpointSummary::from(&CheckpointRecord::new(CheckpointId::from_u128(number << 64), Source::Loop, number as i64))
/// };
/// let thread = BTreeMap::from([(String::new(), vec![summary(1), summary(2)])]);
/// assert_eq!(plan_prune(&thread, &Prune::keep_last(1))[""], [summary(1).id]);
/// ```
pub fn plan_prune(
    thread: &BTreeMap<String, Vec<CheckpointSummary>>,
    prune: &Prune,
) -> BTreeMap<String, Vec<CheckpointId>> {
    let root: Vec<_> = thread.get("").into_iter().flatten().map(|row| (row.id, row.created_at)).collect();
    let root = prune.kept(&root);
    let kept = Kept::new(&root);
    let goes = |namespace: &str, row: &CheckpointSummary, latest: Option<CheckpointId>| match namespace {
        "" => !root.contains(&row.id),
        inner => !kept.keeps(inner, Some(row.id) == latest, row.root),
    };
    let of_namespace = |(name, rows): (&String, &Vec<CheckpointSummary>)| {
        let latest = rows.last().map(|row| row.id);
        let gone: Vec<_> = rows.iter().filter(|row| goes(name, row, latest)).map(|row| row.id).collect();
        (name.clone(), gone)
    };
    thread.iter().map(of_namespace).filter(|(_, gone)| !gone.is_empty()).collect()
}
