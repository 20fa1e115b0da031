//! The tests of what databases share.

#[cfg(feature = "fuzzing")]
mod fuzz_corpus;
#[cfg(feature = "fuzzing")]
mod seal;
