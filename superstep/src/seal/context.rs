//! What a sealed value belongs to.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The parts of a context and their hash, in which each part is the seed of the next: where parts begin and end counts.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    parts: &'a [&'a [u8]],
    hash: u64,
}

impl<'a> Context<'a> {
    pub(crate) fn new(parts: &'a [&'a [u8]]) -> Self {
        Self { parts, hash: parts.iter().fold(0, |hash, part| xxh3_64_with_seed(part, hash)) }
    }

    /// A few bytes that are different for most other contexts.
    pub(super) fn mark(self) -> [u8; 4] {
        (self.hash as u32).to_le_bytes()
    }

    /// A hash of the context and of a few bytes that are bound to it.
    pub(super) fn hash_with(self, bound: &[u8]) -> u64 {
        xxh3_64_with_seed(bound, self.hash)
    }

    /// The context and what is bound to it, as bytes that no other context gives, whatever is bound to that one.
    #[cfg(feature = "encryption")]
    pub(super) fn bytes_with(self, bound: &[u8]) -> Vec<u8> {
        let length = |length: usize| (length as u64).to_le_bytes();
        let mut bytes = length(self.parts.len()).to_vec();
        for part in self.parts {
            bytes.extend_from_slice(&length(part.len()));
            bytes.extend_from_slice(part);
        }
        bytes.extend_from_slice(bound);
        bytes
    }
}
