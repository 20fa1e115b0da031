//! Values: as bytes, as JSON, and what holds the bytes.

mod as_json;
mod blob;
mod bytes;
mod payload;

use std::cell::Cell;

use crate::error::CodecError;
use crate::wall::caught;

pub(crate) use as_json::{decode_json, json_of};
pub use blob::Blob;
pub(crate) use bytes::{DEEPEST, check_levels, decode, decode_in_place, encode, encode_into, is_deeper};
pub use payload::Payload;

/// Encodes values: a panic of one is an error.
pub(crate) fn encoding<T>(encode: impl FnOnce() -> Result<T, CodecError>) -> Result<T, CodecError> {
    caught(encode).unwrap_or_else(|panic| Err(CodecError::new(format!("its `Serialize` panicked: {panic}"))))
}

/// Decodes values: a panic of one is an error.
pub(crate) fn decoding<T>(decode: impl FnOnce() -> Result<T, CodecError>) -> Result<T, CodecError> {
    caught(decode).unwrap_or_else(|panic| Err(CodecError::new(format!("its `Deserialize` panicked: {panic}"))))
}

/// The largest buffer that a thread keeps for the next value.
const KEPT: usize = 1 << 20;

/// Encodes into a buffer that is used again and again; the result has its exact size.
pub(crate) fn encode_with<E>(encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Blob, E> {
    with_scratch(|out| encode(out).map(|()| Blob::from(out.as_slice())))
}

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
