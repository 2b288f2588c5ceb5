//! Searches for bytes that the entry `frame` believes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tharsis_inputs::run("frame", bytes));
