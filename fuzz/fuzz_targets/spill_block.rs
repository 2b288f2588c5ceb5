//! Searches for bytes that the entry `spill_block` believes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tharsis_inputs::run("spill_block", bytes));
