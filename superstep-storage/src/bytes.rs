//! Rows as `MessagePack`: written into a buffer that is used again, read only as deep as a stack allows.

use std::cell::Cell;
use std::io;

use rmp_serde::decode::{Error, ReadRefReader};
use serde::de::{Deserialize, DeserializeOwned, IgnoredAny};
use serde_json::Value;

/// The largest buffer that a thread keeps for the next row.
const KEPT: usize = 1 << 20;

/// Works with an empty buffer that is used again and again.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    thread_local! {
        static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    let mut out = SCRATCH.take();
    out.clear();
    let result = work(&mut out);
    if out.capacity() <= KEPT {
        SCRATCH.set(out);
    }
    result
}

/// The value that all of the bytes are, if it is nested no deeper than so many levels.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], levels: usize) -> Result<T, String> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    reader.set_max_depth(levels);
    let value = T::deserialize(&mut reader).map_err(|error| error.to_string())?;
    check_end(&mut reader)?;
    Ok(value)
}

fn check_end(reader: &mut rmp_serde::Deserializer<ReadRefReader<'_, [u8]>>) -> Result<(), String> {
    match IgnoredAny::deserialize(reader) {
        Err(Error::InvalidMarkerRead(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        _ => Err("there are bytes behind its value that are no part of it; the value was changed".to_owned()),
    }
}

/// Whether more than so many lists and objects lie within each other.
pub(crate) fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(values) => levels == 0 || values.iter().any(|value| is_deeper(value, levels - 1)),
        Value::Object(values) => levels == 0 || values.values().any(|value| is_deeper(value, levels - 1)),
        _ => false,
    }
}
