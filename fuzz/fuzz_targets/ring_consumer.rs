//! Searches for bytes that the entry `ring_consumer` believes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tharsis_inputs::run("ring_consumer", bytes));
