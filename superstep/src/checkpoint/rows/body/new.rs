//! What rows say, as it is written: nothing of a record is copied before it is encoded.
//!
//! The order and the names are those of the types that are read, and golden databases keep those from changing.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{WORTH_A_REFERENCE, tail_place};
use crate::checkpoint::{CheckpointRecord, FieldRecord, FieldValue, Interrupt, TaskRecord, WriteRecord};
use crate::error::TaskError;
use crate::id::CheckpointId;
use crate::value::Blob;

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
    /// What the base's control part holds is not kept again; `has_cuts` says so when it is encoded.
    pub(super) fn new(record: &'a CheckpointRecord, base_control: &'a [u8], has_cuts: &'a Cell<bool>) -> Self {
        let since = record.created_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            format: record.format,
            created_at: (since.as_secs(), since.subsec_nanos()),
            metadata: &record.metadata,
            parents: Parents(&record.parents),
            control: &record.control,
            fields: Fields { all: &record.fields, base_control, has_cuts },
        }
    }
}

struct Parents<'a>(&'a BTreeMap<String, CheckpointId>);

impl Serialize for Parents<'_> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_map(self.0.iter().map(|(name, id)| (name, id.as_u128())))
    }
}

struct Fields<'a> {
    all: &'a [FieldRecord],
    base_control: &'a [u8],
    has_cuts: &'a Cell<bool>,
}

impl Fields<'_> {
    fn value<'b>(&'b self, value: &'b FieldValue) -> NewValue<'b> {
        match value {
            FieldValue::Whole(bytes) => NewValue::Whole(bytes),
            FieldValue::Tail(writes) => NewValue::Tail(Tail { writes, of: self }),
            FieldValue::Absent => NewValue::Absent,
        }
    }
}

impl Serialize for Fields<'_> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_seq(self.all.iter().map(|field| (&*field.name, self.value(&field.value))))
    }
}

/// What a body holds of a field.
#[derive(Serialize)]
enum NewValue<'a> {
    Whole(&'a Blob),
    Tail(Tail<'a>),
    Absent,
}

struct Tail<'a> {
    writes: &'a [Blob],
    of: &'a Fields<'a>,
}

impl<'a> Serialize for Tail<'a> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let write = |bytes: &'a Blob| match find(self.of.base_control, bytes) {
            Some(at) => {
                self.of.has_cuts.set(true);
                NewWrite::Cut(at as u32, bytes.len() as u32)
            }
            None => NewWrite::Here(bytes),
        };
        serializer.collect_seq(self.writes.iter().map(write))
    }
}

#[derive(Serialize)]
enum NewWrite<'a> {
    Here(&'a Blob),
    Cut(u32, u32),
}

/// What a task wrote.
#[derive(Serialize)]
pub(super) struct NewTask<'a> {
    path: &'a str,
    writes: Writes<'a>,
    error: &'a Option<TaskError>,
    handled: bool,
    interrupts: &'a Option<Vec<Interrupt>>,
    resume: Option<(&'a Value,)>,
}

impl<'a> NewTask<'a> {
    /// What the tails of these fields hold is not kept again.
    pub(super) fn new(task: &'a TaskRecord, fields: &'a [FieldRecord]) -> Self {
        Self {
            path: &task.path,
            writes: Writes { writes: &task.writes, fields },
            error: &task.error,
            handled: task.handled,
            interrupts: &task.interrupts,
            resume: task.resume.as_ref().map(|resume| (resume,)),
        }
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
            None => NewWriteValue::Here(&write.value),
        };
        serializer.collect_seq(self.writes.iter().map(|write| (&*write.channel, value(write), write.overwrite)))
    }
}

#[derive(Serialize)]
enum NewWriteValue<'a> {
    Here(&'a Blob),
    InTail(u32),
}

/// Where a value lies in other bytes, if a reference is worth it.
fn find(bytes: &[u8], value: &[u8]) -> Option<usize> {
    if value.len() < WORTH_A_REFERENCE || bytes.len() < value.len() {
        return None;
    }
    bytes.windows(value.len()).position(|window| window == value)
}
