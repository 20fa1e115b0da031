//! The record of the next checkpoint.

use std::sync::Arc;

use serde_json::Value;

use super::Header;
use crate::checkpoint::{CheckpointRecord, FORMAT, Few, FieldValue, Labels, SharedMap, Source, TaskRecord};
use crate::id::CheckpointId;
use crate::value::Blob;

/// A record that is filled anew for each checkpoint: what stays as it was from one to the next, names above all, is not
/// made again.
pub(crate) struct Draft {
    pub(super) record: CheckpointRecord,
    /// How many tasks in the record have written for the next checkpoint; further ones are of those before.
    tasks: usize,
}

impl Draft {
    pub(crate) fn new(
        labels: &Arc<Labels>,
        run: Option<Arc<str>>,
        metadata: SharedMap<Value>,
        parents: SharedMap<CheckpointId>,
    ) -> Box<Self> {
        let id = CheckpointId::from_u128(1);
        let record = CheckpointRecord {
            format: FORMAT,
            id,
            parent: None,
            base: None,
            head: None,
            run,
            source: Source::Input,
            step: 0,
            created_at: id.created_at(),
            metadata,
            parents,
            shape: labels.shape(),
            control: Blob::default(),
            fields: Few::new(),
            writes: Vec::new(),
        };
        Box::new(Self { record, tasks: 0 })
    }

    /// The record for the next checkpoint, but for its fields and its control part.
    pub(super) fn next(&mut self, header: Header) -> &mut CheckpointRecord {
        let Header { id, parent, base, head, source, step } = header;
        let record = &mut self.record;
        (record.id, record.parent, record.base, record.head) = (id, parent, base, head);
        (record.source, record.step, record.created_at) = (source, step, id.created_at());
        record.writes.truncate(std::mem::take(&mut self.tasks));
        record
    }

    /// Lets go of large values: it may take long until there is a next checkpoint.
    pub(super) fn let_go(&mut self) {
        let CheckpointRecord { control, fields, writes, .. } = &mut self.record;
        let is_large = |blob: &Blob| blob.small().is_none();
        if is_large(control) {
            *control = Blob::default();
        }
        for field in fields {
            if !matches!(&field.value, FieldValue::Whole(whole) if !is_large(whole)) {
                field.value = FieldValue::Absent;
            }
        }
        for task in writes {
            (task.error, task.interrupts, task.resume) = (None, None, None);
            for write in task.writes.iter_mut().filter(|write| is_large(&write.value)) {
                write.value = Blob::default();
            }
        }
    }

    /// What tasks wrote that is saved with the next checkpoint.
    pub(crate) fn set_tasks(&mut self, tasks: Vec<TaskRecord>) {
        (self.tasks, self.record.writes) = (tasks.len(), tasks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{FieldRecord, Texts, WriteRecord};
    use crate::id::TaskId;

    #[test]
    fn large_values_are_let_go_and_names_stay() {
        let texts = Texts { texts: vec!["x".into()], shape: Blob::default() };
        let labels = Labels::new(Arc::new(texts));
        let mut draft = Draft::new(&labels, None, SharedMap::default(), SharedMap::default());
        let (large, small) = (Blob::from(vec![1; 1000]), Blob::from(vec![1; 10]));
        draft.record.control = large.clone();
        for value in
            [FieldValue::Whole(large.clone()), FieldValue::Whole(small.clone()), FieldValue::Tail(vec![large.clone()])]
        {
            draft.record.fields.push(FieldRecord { name: labels.name(0), value });
        }
        let mut task = TaskRecord::new(TaskId::NULL, labels.name(0));
        for value in [large, small.clone()] {
            task.writes.push(WriteRecord { channel: labels.name(0), value, overwrite: false });
        }
        draft.set_tasks(vec![task]);
        draft.let_go();
        let record = &draft.record;
        assert!(record.control.is_empty());
        let values: Vec<_> = record.fields.iter().map(|field| &field.value).collect();
        assert_eq!(values, [&FieldValue::Absent, &FieldValue::Whole(small.clone()), &FieldValue::Absent]);
        let writes: Vec<_> = record.writes[0].writes.iter().map(|write| &write.value).collect();
        assert_eq!(writes, [&Blob::default(), &small]);
        assert!(record.fields.iter().all(|field| &*field.name == "x"));
    }
}
