//! The record of the next checkpoint.

use std::sync::Arc;

use serde_json::Value;

use super::Header;
use crate::checkpoint::{Blob, CheckpointRecord, FORMAT, Few, Labels, Shape, SharedMap, Source, TaskRecord};
use crate::id::{CheckpointId, TaskId};

/// A record that is filled anew for each checkpoint: what stays as it was from one to the next, names above all, is not
/// made again.
pub(crate) struct Draft {
    pub(super) record: CheckpointRecord,
    /// How many tasks in the record have written for the next checkpoint; further ones are of those before.
    pub(super) tasks: usize,
    stays: Stays,
}

/// What is the same in all checkpoints of a run.
struct Stays {
    run: Option<Arc<str>>,
    metadata: SharedMap<Value>,
    parents: SharedMap<CheckpointId>,
    shape: Shape,
}

impl Draft {
    pub(crate) fn new(
        labels: &Arc<Labels>,
        run: Option<Arc<str>>,
        metadata: SharedMap<Value>,
        parents: SharedMap<CheckpointId>,
    ) -> Box<Self> {
        let id = CheckpointId::from_u128(1);
        let stays = Stays { run, metadata, parents, shape: labels.shape() };
        let record = CheckpointRecord {
            format: FORMAT,
            id,
            parent: None,
            base: None,
            head: None,
            run: stays.run.clone(),
            source: Source::Input,
            step: 0,
            created_at: id.created_at(),
            metadata: stays.metadata.clone(),
            parents: stays.parents.clone(),
            shape: stays.shape.clone(),
            control: Blob::default(),
            fields: Few::new(),
            writes: Vec::new(),
        };
        Box::new(Self { record, tasks: 0, stays })
    }

    /// The record for the next checkpoint. Whoever saved it may have taken out anything.
    pub(super) fn next(&mut self, header: Header) -> &mut CheckpointRecord {
        let Header { id, parent, base, head, source, step } = header;
        let Self { record, tasks, stays } = self;
        (record.id, record.parent, record.base, record.head) = (id, parent, base, head);
        (record.source, record.step, record.created_at) = (source, step, id.created_at());
        record.format = FORMAT;
        if record.run.as_ref().map(Arc::as_ptr) != stays.run.as_ref().map(Arc::as_ptr) {
            record.run.clone_from(&stays.run);
        }
        if !record.metadata.shares_with(&stays.metadata) {
            record.metadata = stays.metadata.clone();
        }
        if !record.parents.shares_with(&stays.parents) {
            record.parents = stays.parents.clone();
        }
        if !record.shape.shares_with(&stays.shape) {
            record.shape = stays.shape.clone();
        }
        record.writes.truncate(std::mem::take(tasks));
        record
    }

    /// What tasks wrote that is saved with the next checkpoint.
    pub(crate) fn set_tasks(&mut self, tasks: Vec<TaskRecord>) {
        (self.tasks, self.record.writes) = (tasks.len(), tasks);
    }

    /// The record of a step's only task, as it was the last time.
    pub(crate) fn lone_task(&mut self, labels: &Arc<Labels>) -> &mut TaskRecord {
        let tasks = &mut self.record.writes;
        if tasks.is_empty() {
            tasks.reserve_exact(1);
            tasks.push(TaskRecord::new(TaskId::NULL, labels.name(0)));
        }
        &mut tasks[0]
    }

    /// The record of the only task is that of the next checkpoint.
    pub(crate) fn take_lone_task(&mut self) {
        self.tasks = 1;
    }
}
