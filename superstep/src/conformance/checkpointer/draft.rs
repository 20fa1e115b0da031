//! Records as the suite makes them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use serde_json::Value;

use crate::checkpoint::{
    CheckpointRecord, FORMAT, Few, FieldRecord, FieldValue, Interrupt, Labels, Name, SavedCheckpoint, SavedField,
    SharedMap, Source, TaskRecord, Texts, WriteRecord,
};
use crate::error::{ErrorKind, TaskError};
use crate::id::{CheckpointId, TaskId};
use crate::value::Blob;

/// The id that is made at a tick of 100 nanoseconds.
pub(super) fn id_at(tick: u64) -> CheckpointId {
    /// In the year 2026.
    const START: u64 = 0x01f0_8f00_0000_0000;
    let ticks = u128::from(START + tick);
    CheckpointId::from_u128(
        (ticks >> 28) << 96 | (ticks >> 12 & 0xffff) << 80 | (0x6000 | ticks & 0x0fff) << 64 | 0x8000 << 48 | 7,
    )
}

/// Names as the engine makes them, of two graphs that have some in common. A checkpointer must not tell them from others.
static GRAPHS: LazyLock<[(Arc<Labels>, Vec<&str>); 3]> = LazyLock::new(|| {
    [vec![], vec!["a", "b", "log", "trigger"], vec!["log", "b", "more", "a"]].map(|names| {
        let texts = names.iter().map(|name| Box::from(*name)).collect();
        (Labels::new(Arc::new(Texts { texts, shape: Blob::from(b"shape".as_slice()) })), names)
    })
});

/// A checkpoint that is to be saved.
#[derive(Debug, Clone)]
pub(super) struct Draft(pub(super) CheckpointRecord);

/// The graph that makes a checkpoint: the same one for some in a row.
fn graph_of(id: CheckpointId) -> &'static (Arc<Labels>, Vec<&'static str>) {
    &GRAPHS[(id.as_u128() >> 64 & 0x0fff) as usize / 4 % GRAPHS.len()]
}

impl Draft {
    pub(super) fn new(id: CheckpointId) -> Self {
        Self(CheckpointRecord {
            format: FORMAT,
            id,
            parent: None,
            base: None,
            head: None,
            run: None,
            source: Source::Loop,
            step: 0,
            created_at: id.created_at(),
            metadata: SharedMap::default(),
            parents: SharedMap::default(),
            shape: graph_of(id).0.shape(),
            control: Blob::from(b"control".as_slice()),
            fields: Few::new(),
            writes: Vec::new(),
        })
    }

    pub(super) fn id(&self) -> CheckpointId {
        self.0.id
    }

    /// Goes on from this checkpoint.
    pub(super) fn after(mut self, base: Option<CheckpointId>) -> Self {
        (self.0.parent, self.0.base) = (base, base);
        self
    }

    pub(super) fn parent(mut self, parent: Option<CheckpointId>) -> Self {
        self.0.parent = parent;
        self
    }

    pub(super) fn step(mut self, step: i64) -> Self {
        self.0.step = step;
        self
    }

    pub(super) fn source(mut self, source: Source) -> Self {
        self.0.source = source;
        self
    }

    pub(super) fn run(mut self, run: &str) -> Self {
        self.0.run = Some(run.into());
        self
    }

    pub(super) fn made_at(mut self, moment: SystemTime) -> Self {
        self.0.created_at = moment;
        self
    }

    pub(super) fn metadata(mut self, key: &str, value: impl Into<Value>) -> Self {
        let mut metadata = self.0.metadata.into_map();
        metadata.insert(key.to_owned(), value.into());
        self.0.metadata = metadata.into();
        self
    }

    /// Ran under this checkpoint of the root.
    pub(super) fn under(mut self, root: CheckpointId) -> Self {
        self.0.parents = BTreeMap::from([(String::new(), root)]).into();
        self
    }

    pub(super) fn field(mut self, name: &str, value: FieldValue) -> Self {
        let name = self.name(name);
        self.0.fields.push(FieldRecord { name, value });
        self
    }

    /// A name of the graph that makes this checkpoint, or of none.
    fn name(&self, name: &str) -> Name {
        let (labels, names) = graph_of(self.id());
        names.iter().position(|known| *known == name).map_or_else(|| name.into(), |place| labels.name(place))
    }

    pub(super) fn whole(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.field(name, FieldValue::Whole(bytes.as_ref().into()))
    }

    pub(super) fn tail<B: AsRef<[u8]>>(self, name: &str, writes: impl IntoIterator<Item = B>) -> Self {
        self.field(name, FieldValue::Tail(writes.into_iter().map(|write| write.as_ref().into()).collect()))
    }

    pub(super) fn absent(self, name: &str) -> Self {
        self.field(name, FieldValue::Absent)
    }

    pub(super) fn with(mut self, mut task: TaskRecord) -> Self {
        task.writes.iter_mut().for_each(|write| write.channel = self.name(&write.channel));
        self.0.writes.push(task);
        self
    }

    /// What comes back: the record with these fields, and nothing pending.
    pub(super) fn saved(&self, fields: impl IntoIterator<Item = SavedField>) -> SavedCheckpoint {
        SavedCheckpoint::new(self.0.clone(), fields.into_iter().collect(), Vec::new())
    }
}

/// A field as it comes back that was saved whole.
pub(super) fn whole(name: &str, bytes: impl AsRef<[u8]>) -> SavedField {
    SavedField::new(name.into(), Some(bytes.as_ref().into()), Vec::new())
}

/// A field as it comes back with writes on top of a whole value, or of nothing.
pub(super) fn tail<B: AsRef<[u8]>>(
    name: &str,
    whole: Option<&[u8]>,
    writes: impl IntoIterator<Item = B>,
) -> SavedField {
    let writes = writes.into_iter().map(|write| write.as_ref().into()).collect();
    SavedField::new(name.into(), whole.map(Into::into), writes)
}

/// What a task wrote.
pub(super) fn task(number: u128, path: &str) -> TaskRecord {
    TaskRecord {
        task: TaskId(number),
        path: path.into(),
        writes: Few::new(),
        error: None,
        handled: false,
        interrupts: None,
        resume: None,
    }
}

impl TaskRecord {
    fn made_with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn wrote(self, channel: &str, value: impl AsRef<[u8]>) -> Self {
        let (channel, value) = (channel.into(), value.as_ref().into());
        self.made_with(|task| task.writes.push(WriteRecord { channel, value, overwrite: false }))
    }

    pub(super) fn overwrote(self, channel: &str, value: impl AsRef<[u8]>) -> Self {
        let (channel, value) = (channel.into(), value.as_ref().into());
        self.made_with(|task| task.writes.push(WriteRecord { channel, value, overwrite: true }))
    }

    pub(super) fn failed(self, words: &str) -> Self {
        self.made_with(|task| task.error = Some(TaskError::new(ErrorKind::Node, words)))
    }

    pub(super) fn asked(self, questions: &[&str]) -> Self {
        let questions = questions.iter().map(|q| Interrupt::new(format!("id of {q}"), *q)).collect();
        self.made_with(|task| task.interrupts = Some(questions))
    }

    pub(super) fn answered(self, answer: impl Into<Value>) -> Self {
        let answer = answer.into();
        self.made_with(|task| task.resume = Some(answer))
    }

    pub(super) fn handled(self) -> Self {
        self.made_with(|task| task.handled = true)
    }
}
