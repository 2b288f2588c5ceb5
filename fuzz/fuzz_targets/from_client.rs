//! Searches for bytes that the entry `from_client` believes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tharsis_inputs::run("from_client", bytes));
