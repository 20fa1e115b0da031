//! Writes to fields whose reducer takes another type than the field's.

use crate::error::CodecError;
use crate::state::Storable;

/// How the bytes of a value begin: a map with one entry of this name.
const MARK: &[u8] = b"\x81\xad__overwrite__";

/// A write to such a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written<T, U> {
    /// What the reducer merges.
    Update(U),
    /// A value of the field, from an overwrite or a whole state: it replaces what is there.
    Value(T),
}

/// Encodes an update as it is, and a value marked as one: as the map `{"__overwrite__": value}`, which JSON has for it too.
pub fn encode_written<'c, T: Storable<'c>, U: Storable<'c>>(
    written: &Written<T, U>,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    match written {
        Written::Update(update) => update.encode_into(out),
        Written::Value(value) => {
            out.extend_from_slice(MARK);
            value.encode_into(out)
        }
    }
}

/// Decodes what [`encode_written`] gave, and what JSON gives in its place.
pub fn decode_written<'c, T: Storable<'c>, U: Storable<'c>>(bytes: &[u8]) -> Result<Written<T, U>, CodecError> {
    match bytes.strip_prefix(MARK) {
        Some(value) => T::decode_from(value).map(Written::Value),
        None => U::decode_from(bytes).map(Written::Update),
    }
}

/// What is written, as JSON.
pub fn written_json<'c, T: Storable<'c>, U: Storable<'c>>(
    written: &Written<T, U>,
) -> Result<Option<serde_json::Value>, CodecError> {
    match written {
        Written::Update(update) => update.to_json().map(Some),
        Written::Value(value) => value.to_json().map(Some),
    }
}
