//! What a sealed value belongs to.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The parts of a context.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a>(pub(crate) &'a [&'a [u8]]);

/// A hash of a context.
#[derive(Clone, Copy)]
pub(super) struct ContextHash(u64);

impl Context<'_> {
    /// The hash of each part is the seed of the next one's, so it counts where a part begins and ends.
    pub(super) fn hash(self) -> ContextHash {
        ContextHash(self.0.iter().fold(0, |hash, part| xxh3_64_with_seed(part, hash)))
    }

    /// The context and what is bound to it, as bytes that no other context gives, whatever is bound to that one.
    #[cfg(feature = "encryption")]
    pub(super) fn bytes_with(self, bound: &[u8]) -> Vec<u8> {
        let length = |length: usize| (length as u64).to_le_bytes();
        let mut bytes = length(self.0.len()).to_vec();
        for part in self.0 {
            bytes.extend_from_slice(&length(part.len()));
            bytes.extend_from_slice(part);
        }
        bytes.extend_from_slice(bound);
        bytes
    }
}

impl ContextHash {
    /// A few bytes that are different for most other contexts.
    pub(super) fn mark(self) -> [u8; 4] {
        (self.0 as u32).to_le_bytes()
    }

    /// A hash of the context and of a few bytes that are bound to it.
    pub(super) fn with(self, bound: &[u8]) -> u64 {
        xxh3_64_with_seed(bound, self.0)
    }
}
