//! Searches for bytes that the entry `to_client` believes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tharsis_inputs::run("to_client", bytes));
