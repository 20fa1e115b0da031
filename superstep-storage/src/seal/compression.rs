//! Making bodies smaller, and never larger than allowed when they are opened.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

use super::SealError;

/// Below this many bytes there is hardly anything to gain.
const SMALLEST: usize = 128;

/// A byte of an LZ4 block stands for at most this many.
const MOST_PER_BYTE: usize = 255;

/// How values are compressed.
///
/// ```
/// use superstep_storage::{Compression, Seal};
///
/// let seal = Seal::new().compress(Compression::Lz4);
/// assert!(format!("{seal:?}").contains("Lz4"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// LZ4 blocks: quick, and small enough for text and JSON.
    Lz4,
}

/// How many bytes a value may have when it is decompressed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit(pub(super) usize);

impl Default for Limit {
    fn default() -> Self {
        Self(64 << 20)
    }
}

impl Compression {
    /// A smaller body with the payload's length in front, if there is one that can be opened again.
    pub(super) fn compress(self, payload: &[u8], Limit(limit): Limit) -> Option<Vec<u8>> {
        match self {
            Self::Lz4 if payload.len() < SMALLEST || payload.len() > limit => None,
            Self::Lz4 => lz4(payload),
        }
    }
}

fn lz4(payload: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(payload.len()).ok()?.to_le_bytes();
    let mut body = vec![0; length.len() + get_maximum_output_size(payload.len())];
    let (front, block) = body.split_at_mut(length.len());
    front.copy_from_slice(&length);
    let written = compress_into(payload, block).ok()?;
    body.truncate(length.len() + written);
    (body.len() < payload.len()).then_some(body)
}

/// The payload of a compressed body. Memory is taken only for a length that the limit and the block allow.
pub(super) fn decompress(body: &[u8], Limit(limit): Limit) -> Result<Vec<u8>, SealError> {
    let (length, block) = body.split_first_chunk::<4>().ok_or(UNREADABLE)?;
    let bytes = u32::from_le_bytes(*length) as usize;
    if bytes > block.len().saturating_mul(MOST_PER_BYTE) {
        return Err(SealError::damaged("its length is more than it can hold"));
    }
    if bytes > limit {
        return Err(SealError::TooLarge { bytes, limit });
    }
    let mut payload = vec![0; bytes];
    match decompress_into(block, &mut payload) {
        Ok(written) if written == bytes => Ok(payload),
        _ => Err(UNREADABLE),
    }
}

const UNREADABLE: SealError = SealError::damaged("it cannot be decompressed");
