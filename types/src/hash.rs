//! Tables whose order depends on what was done to them and on nothing else.
//!
//! The standard tables are seeded by the process; the simulator and every test need the same order each time.
//! The keys are ids that are well mixed or counted by us, so a few multiplications are hash enough.

#![allow(clippy::disallowed_types, reason = "the tables here take their hashing with them")]

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table by id.
pub type IdMap<K, V> = HashMap<K, V, IdHashing>;
/// A set of ids.
pub type IdSet<K> = HashSet<K, IdHashing>;
/// The way in which ids are hashed.
pub type IdHashing = BuildHasherDefault<IdHasher>;

/// Mixes words as they come.
#[derive(Debug, Default)]
pub struct IdHasher(u64);

impl IdHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        // The table takes its place from the low bits and its tag from the high ones.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.add(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.add(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.add(n as u64);
    }
}
