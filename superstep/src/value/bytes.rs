//! Values as bytes: `MessagePack` with field names kept, so that fields may come and go between releases.
//!
//! A value that is saved is nested at most [`DEEPEST`] levels deep, whatever it is and wherever it is kept: reading takes a
//! piece of the stack for each level, and what could be saved and not be read would end its thread. What is deeper is
//! refused while it is encoded, before the stack grows much further.

use std::{io, thread};

use rmp_serde::decode::{Error, ReadRefReader};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use smallvec::SmallVec;

use super::Blob;
use crate::error::CodecError;

/// How many lists, maps, structs and variants may lie within each other. JSON, as databases keep the items of a store, is
/// read back to 128.
pub(crate) const DEEPEST: usize = 120;

/// What the first programs could save and read back.
const DEEPEST_READ: usize = 1023;

/// What is deeper is read on a stack of its own: without optimisations a level may take ten kilobytes.
const DEEPEST_IN_PLACE: usize = 48;
const OWN_STACK: usize = 64 << 20;

/// Appends a value to bytes.
pub(crate) fn encode_into<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let mut sink = Sink::new(out);
    let written = rmp_serde::encode::write_named(&mut sink, value);
    if sink.levels.are_too_many(sink.out) {
        return Err(too_deep());
    }
    written.map_err(|e| CodecError::new(e.to_string()))
}

pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Blob, CodecError> {
    let mut out = Vec::new();
    encode_into(value, &mut out)?;
    Ok(out.into())
}

/// The value that all of the bytes are.
pub(crate) fn decode<T: DeserializeOwned + Send>(bytes: &[u8]) -> Result<T, CodecError> {
    if !is_nested(bytes, DEEPEST_IN_PLACE) {
        return read(bytes);
    }
    if is_nested(bytes, DEEPEST_READ) {
        return Err(CodecError::too_deep(format!(
            "it is nested more than {DEEPEST_READ} levels deep and cannot be read; put another value in its place with \
             `Thread::update`, or go on from an earlier checkpoint of the history"
        )));
    }
    thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(OWN_STACK).spawn_scoped(scope, || read(bytes));
        let reader = reader.map_err(|e| CodecError::new(format!("no thread could be started to read it: {e}")))?;
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The same for a type that cannot be sent to another thread.
pub(crate) fn decode_in_place<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    if is_nested(bytes, DEEPEST) { Err(too_deep()) } else { read(bytes) }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let mut reader = Reader::from_read_ref(bytes);
    let value = T::deserialize(&mut reader).map_err(|e| CodecError::new(e.to_string()))?;
    check_end(&mut reader)?;
    Ok(value)
}

/// A reader of `MessagePack`.
type Reader<'a> = rmp_serde::Deserializer<ReadRefReader<'a, [u8]>>;

/// Refuses bytes behind what was read.
fn check_end(reader: &mut Reader<'_>) -> Result<(), CodecError> {
    match <IgnoredAny as serde::Deserialize>::deserialize(reader) {
        Err(Error::InvalidMarkerRead(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        _ => Err(CodecError::new("there are bytes behind its value that are no part of it; the value was changed")),
    }
}

/// Refuses JSON that is nested too deep to be saved.
pub(crate) fn check_levels(value: &Value) -> Result<(), CodecError> {
    if is_deeper(value, DEEPEST) { Err(too_deep()) } else { Ok(()) }
}

/// Whether more than so many lists and objects lie within each other.
pub(crate) fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(values) => levels == 0 || values.iter().any(|value| is_deeper(value, levels - 1)),
        Value::Object(values) => levels == 0 || values.values().any(|value| is_deeper(value, levels - 1)),
        _ => false,
    }
}

fn too_deep() -> CodecError {
    CodecError::too_deep(format!("it is nested more than {DEEPEST} levels deep; make it flatter"))
}

/// Whether bytes are nested more than so many levels deep.
fn is_nested(bytes: &[u8], limit: usize) -> bool {
    Levels::of(0, limit).are_too_many(bytes)
}

/// Takes what is encoded, and refuses more soon after it has become too deep: before the stack of whoever encodes it has
/// grown much further.
struct Sink<'a> {
    out: &'a mut Vec<u8>,
    /// When the bytes are looked at next.
    next: usize,
    levels: Levels,
}

impl<'a> Sink<'a> {
    /// Bytes from one look to the next. Each level takes one at least.
    const STRIDE: usize = 64;

    fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, next: start + DEEPEST + Self::STRIDE, levels: Levels::of(start, DEEPEST) }
    }

    #[cold]
    fn look(&mut self) -> io::Result<()> {
        self.next = self.out.len() + Self::STRIDE;
        if self.levels.are_too_many(self.out) { Err(io::ErrorKind::InvalidData.into()) } else { Ok(()) }
    }
}

impl io::Write for Sink<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(bytes);
        if self.out.len() < self.next { Ok(()) } else { self.look() }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts the levels of `MessagePack` that may still be growing.
struct Levels {
    start: usize,
    /// Where the next value begins. What is before it was looked at.
    at: usize,
    /// How many values each list and map around it still waits for.
    open: SmallVec<[u64; 16]>,
    limit: usize,
    are_too_many: bool,
}

impl Levels {
    fn of(start: usize, limit: usize) -> Self {
        Self { start, at: start, open: SmallVec::new(), limit, are_too_many: false }
    }

    /// Whether a value in these bytes has too many, as far as they go. Bytes that are no `MessagePack` are left to the decoder.
    fn are_too_many(&mut self, bytes: &[u8]) -> bool {
        // A level takes a byte.
        if bytes.len() - self.start <= self.limit {
            return false;
        }
        while !self.are_too_many
            && let Some((next, parts)) = bytes.get(self.at..).and_then(head)
        {
            self.at = self.at.saturating_add(next);
            self.take(parts);
        }
        self.are_too_many
    }

    /// Takes note of a value with so many parts, if it is one with parts.
    fn take(&mut self, parts: Option<u64>) {
        if let Some(around) = self.open.last_mut() {
            *around -= 1;
        }
        if let Some(parts) = parts {
            self.are_too_many = self.open.len() == self.limit;
            self.open.push(parts);
        }
        while self.open.last() == Some(&0) {
            self.open.pop();
        }
    }
}

/// How many bytes the value at the beginning has, without its parts, and how many parts, if it is a list or a map. Nothing
/// if that is not to be seen yet.
fn head(bytes: &[u8]) -> Option<(usize, Option<u64>)> {
    let (&first, rest) = bytes.split_first()?;
    let number = |bytes: usize| {
        let number = rest.get(..bytes)?;
        Some(number.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let plain = |bytes: u8| Some((1 + usize::from(bytes), None));
    let long = |size: usize| Some((usize::try_from(number(size)?).ok()?.saturating_add(1 + size), None));
    let parts = |size: usize, each: u64| Some((1 + size, Some(each * number(size)?)));
    match first {
        0x80..=0x8f => Some((1, Some(2 * u64::from(first & 0xf)))),
        0x90..=0x9f => Some((1, Some(u64::from(first & 0xf)))),
        0xde => parts(2, 2),
        0xdf => parts(4, 2),
        0xdc => parts(2, 1),
        0xdd => parts(4, 1),
        0xa0..=0xbf => plain(first & 0x1f),
        0xc4 | 0xd9 => long(1),
        0xc5 | 0xda => long(2),
        0xc6 | 0xdb => long(4),
        // Extensions have a byte for their kind.
        0xc7 => long(1).map(|(bytes, parts)| (bytes.saturating_add(1), parts)),
        0xc8 => long(2).map(|(bytes, parts)| (bytes.saturating_add(1), parts)),
        0xc9 => long(4).map(|(bytes, parts)| (bytes.saturating_add(1), parts)),
        0xd4..=0xd8 => plain(1 + (1 << (first - 0xd4))),
        0xcc | 0xd0 => plain(1),
        0xcd | 0xd1 => plain(2),
        0xca | 0xce | 0xd2 => plain(4),
        0xcb | 0xcf | 0xd3 => plain(8),
        0x00..=0x7f | 0xc0..=0xc3 | 0xe0..=0xff => plain(0),
    }
}
