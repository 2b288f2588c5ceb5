//! Searches for bytes that the entry `transfer_headers` believes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tharsis_inputs::run("transfer_headers", bytes));
