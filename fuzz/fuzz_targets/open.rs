//! Bytes from a disk, opened by every kind of seal.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| superstep_storage::fuzzing::open_target(data));
