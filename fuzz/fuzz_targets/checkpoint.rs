//! Parts of a checkpoint's rows and records, read and gone on with.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| superstep_storage::fuzzing::checkpoint_target(data));
