//! What rows say, as it is written: nothing of a record is copied before it is encoded.
//!
//! The order and the names are those of the types that are read, and golden databases keep those from changing.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use serde_json::Value;
use superstep::{
    Blob, CheckpointId, CheckpointRecord, FieldRecord, FieldValue, Interrupt, TaskError, TaskRecord, WriteRecord,
};

use super::tail_place;

/// A checkpoint.
#[derive(Serialize)]
pub(super) struct NewBody<'a> {
    format: u8,
    /// Seconds and nanoseconds since 1970.
    created_at: (u64, u32),
    metadata: &'a BTreeMap<String, Value>,
    parents: Parents<'a>,
    control: &'a Blob,
    fields: Fields<'a>,
}

impl<'a> NewBody<'a> {
    pub(super) fn new(record: &'a CheckpointRecord) -> Self {
        let since = record.created_at().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            format: record.format(),
            created_at: (since.as_secs(), since.subsec_nanos()),
            metadata: record.metadata(),
            parents: Parents(record.parents()),
            control: record.control(),
            fields: Fields(record.fields()),
        }
    }
}

struct Parents<'a>(&'a BTreeMap<String, CheckpointId>);

impl Serialize for Parents<'_> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_map(self.0.iter().map(|(name, id)| (name, id.as_u128())))
    }
}

struct Fields<'a>(&'a [FieldRecord]);

impl<'a> Serialize for Fields<'a> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let value = |value: &'a FieldValue| match value {
            FieldValue::Whole(bytes) => NewValue::Whole(bytes),
            FieldValue::Tail(writes) => NewValue::Tail(Tail(writes)),
            FieldValue::Absent => NewValue::Absent,
        };
        serializer.collect_seq(self.0.iter().map(|field| (field.name(), value(field.value()))))
    }
}

/// What a body holds of a field.
#[derive(Serialize)]
enum NewValue<'a> {
    Whole(&'a Blob),
    Tail(Tail<'a>),
    Absent,
}

struct Tail<'a>(&'a [Blob]);

impl Serialize for Tail<'_> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_seq(self.0.iter().map(NewWrite::Here))
    }
}

#[derive(Serialize)]
enum NewWrite<'a> {
    Here(&'a Blob),
}

/// What a task wrote.
#[derive(Serialize)]
pub(super) struct NewTask<'a> {
    path: &'a str,
    writes: Writes<'a>,
    error: Option<&'a TaskError>,
    handled: bool,
    interrupts: Option<&'a [Interrupt]>,
    resume: Option<(&'a Value,)>,
    /// The run, and the records of later runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<(Option<&'a str>, Vec<NewTask<'a>>)>,
}

impl<'a> NewTask<'a> {
    /// What the tails of these fields hold is not kept again.
    pub(super) fn new(task: &'a TaskRecord, fields: &'a [FieldRecord]) -> Self {
        Self {
            path: task.path(),
            writes: Writes { writes: task.writes(), fields },
            error: task.error(),
            handled: task.is_handled(),
            interrupts: task.interrupts(),
            resume: task.resume().map(|resume| (resume,)),
            more: task.run().map(|run| (Some(run), Vec::new())),
        }
    }

    /// Adds what later runs wrote.
    pub(super) fn followed_by(mut self, later: &'a [TaskRecord]) -> Self {
        if !later.is_empty() {
            let (_, followers) = self.more.get_or_insert_default();
            followers.extend(later.iter().map(|task| Self::new(task, &[])));
        }
        self
    }
}

struct Writes<'a> {
    writes: &'a [WriteRecord],
    fields: &'a [FieldRecord],
}

impl<'a> Serialize for Writes<'a> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let value = |write: &'a WriteRecord| match tail_place(self.fields, write) {
            Some(place) => NewWriteValue::InTail(place),
            None => NewWriteValue::Here(write.value()),
        };
        serializer.collect_seq(self.writes.iter().map(|write| (write.channel(), value(write), write.is_overwrite())))
    }
}

#[derive(Serialize)]
enum NewWriteValue<'a> {
    Here(&'a Blob),
    InTail(u32),
}
