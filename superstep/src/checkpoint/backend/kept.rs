//! Checkpoints as a backend keeps them, each with what it changed, and put together again.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{
    CheckpointError, CheckpointRecord, FieldRecord, FieldValue, SavedCheckpoint, SavedField, TaskRecord,
};
use crate::error::CodecError;
use crate::id::CheckpointId;
use crate::value::{Blob, decode, encode_into};

/// A checkpoint as a backend may keep it: with the fields that it changed, or with all of them.
///
/// ```
/// use superstep::checkpoint::backend::KeptCheckpoint;
/// use superstep::{CheckpointId, CheckpointRecord, Source};
/// let record = CheckpointRecord::new(CheckpointId::from_u128(1 << 64), Source::Input, -1);
/// let kept = KeptCheckpoint::new(record, None);
/// assert_eq!((kept.next(), kept.distance()), (None, 1));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptCheckpoint {
    record: CheckpointRecord,
    /// How many checkpoints are read for its fields.
    distance: u32,
    /// All fields, if nothing else is needed for them.
    whole: Option<Vec<SavedField>>,
}

impl KeptCheckpoint {
    /// The checkpoint of a record, which changed fields of this base. What tasks wrote is kept under the base.
    pub fn new(record: CheckpointRecord, base: Option<&KeptCheckpoint>) -> Self {
        let record = record.with_head(None).with_writes(Vec::new());
        Self { record, distance: 1 + base.map_or(0, |base| base.distance), whole: None }
    }

    /// The record, with the fields that it changed.
    pub fn record(&self) -> &CheckpointRecord {
        &self.record
    }

    /// The checkpoint that has the fields which are not here.
    pub fn next(&self) -> Option<CheckpointId> {
        if self.whole.is_some() { None } else { self.record.base() }
    }

    /// How many checkpoints have to be read for all fields, this one included. A backend that makes one
    /// [whole](KeptCheckpoint::make_whole) now and then keeps it small.
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// Keeps all fields, as the checkpoint reads: it needs no other one from now on.
    pub fn make_whole(&mut self, saved: &SavedCheckpoint) {
        self.whole = Some(saved.fields().to_vec());
        self.distance = 1;
    }
}

/// Puts a checkpoint together: from itself, and those that it [needs](KeptCheckpoint::next), one after another; with what
/// tasks wrote under it.
///
/// # Panics
/// If there is none.
///
/// ```
/// use superstep::checkpoint::backend::{KeptCheckpoint, assemble};
/// use superstep::{CheckpointId, CheckpointRecord, Source};
/// let record = CheckpointRecord::new(CheckpointId::from_u128(1 << 64), Source::Input, -1);
/// let saved = assemble([KeptCheckpoint::new(record, None)], Vec::new());
/// assert!(saved.fields().is_empty() && saved.writes().is_empty());
/// ```
pub fn assemble(chain: impl IntoIterator<Item = KeptCheckpoint>, writes: Vec<TaskRecord>) -> SavedCheckpoint {
    let mut chain: Vec<KeptCheckpoint> = chain.into_iter().collect();
    let mut fields = Vec::new();
    for kept in chain.iter_mut().rev() {
        match kept.whole.take() {
            Some(whole) => fields = whole,
            None => kept.record.fields().iter().for_each(|field| apply(&mut fields, field)),
        }
    }
    let newest = chain.into_iter().next().expect("a checkpoint is put together from itself at least");
    SavedCheckpoint::new(newest.record.with_fields(Vec::new()), fields, writes)
}

/// Takes in what a checkpoint says of a field.
fn apply(fields: &mut Vec<SavedField>, changed: &FieldRecord) {
    let place = fields.iter().position(|field| field.name() == changed.name());
    match (changed.value(), place) {
        (FieldValue::Absent, Some(place)) => drop(fields.remove(place)),
        (FieldValue::Absent, None) => {}
        (FieldValue::Tail(writes), Some(place)) => fields[place].tail.extend(writes.iter().cloned()),
        (FieldValue::Tail(writes), None) => fields.push(SavedField::new(changed.name(), None, writes.clone())),
        (FieldValue::Whole(value), place) => {
            let field = SavedField::new(changed.name(), Some(value.clone()), Vec::new());
            match place {
                Some(place) => fields[place] = field,
                None => fields.push(field),
            }
        }
    }
}

/// The format of encoded records, which stands in front of them.
const ENCODING: u8 = 1;

/// A record, or whatever holds some, as bytes: `MessagePack` with names kept, and its format in front.
///
/// # Errors
/// If something in it is nested too deep.
///
/// ```
/// use superstep::checkpoint::backend::{decode_record, encode_record};
/// use superstep::{TaskId, TaskRecord};
/// let task = TaskRecord::new(TaskId::from_u128(7), "path");
/// assert_eq!(decode_record::<TaskRecord>(&encode_record(&task)?)?, task);
/// # Ok::<(), superstep::CheckpointError>(())
/// ```
pub fn encode_record<T: Serialize + ?Sized>(record: &T) -> Result<Blob, CheckpointError> {
    let mut bytes = vec![ENCODING];
    encode_into(record, &mut bytes).map_err(|why| damaged(&why))?;
    Ok(bytes.into())
}

/// The record that [`encode_record`] made bytes of.
///
/// # Errors
/// If the bytes are no such record, or of a newer release.
pub fn decode_record<T: DeserializeOwned + Send>(bytes: &[u8]) -> Result<T, CheckpointError> {
    match bytes.split_first() {
        Some((&ENCODING, record)) => decode(record).map_err(|why| damaged(&why)),
        Some((newer, _)) => Err(damaged(&CodecError::new(format!("it has format {newer}, which is not known here")))),
        None => Err(damaged(&CodecError::new("it is empty"))),
    }
}

fn damaged(why: &CodecError) -> CheckpointError {
    CheckpointError::backend(format!("a record cannot be encoded or decoded: {why}")).retryable(false)
}
