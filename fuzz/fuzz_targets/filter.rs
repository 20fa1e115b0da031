//! A filter of a store and a value that it may accept, in JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| superstep_storage::fuzzing::filter_target(data));
