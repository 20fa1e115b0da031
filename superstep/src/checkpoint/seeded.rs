//! A quick hash for names and ids that may come from strangers.

use std::hash::{BuildHasher, Hasher, RandomState};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Makes hashes whose seed no stranger knows.
#[derive(Debug, Clone)]
pub(crate) struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Seeded {
    type Hasher = SeededHasher;
    fn build_hasher(&self) -> SeededHasher {
        SeededHasher(self.0)
    }
}

/// The hash of each part is the seed of the next one's, so it counts where a part begins and ends.
pub(crate) struct SeededHasher(u64);

impl Hasher for SeededHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }
    /// The mark after a text: parts are told apart without it.
    fn write_u8(&mut self, mark: u8) {
        debug_assert_eq!(mark, 0xff, "only texts and larger numbers are hashed");
    }
}
