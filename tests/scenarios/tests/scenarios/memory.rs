//! D: more than fits into memory.

use std::time::Duration;
use tharsis::prelude::*;
use tharsis_scenarios::{Mode, Scenario, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        d1_over_commit_round_trip,
        d1_over_commit_of_results,
        d3_what_is_mapped_does_not_move;
];

pub const MIB: usize = 1 << 20;

/// Bytes that no other seed has, and that do not compress.
pub fn noise(len: usize, seed: u64) -> Blob {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    Blob::from(bytes)
}

#[remote]
pub fn make_noise(len: usize, seed: u64) -> Blob {
    noise(len, seed)
}

#[remote]
pub fn len_of(blob: Blob) -> usize {
    blob.len()
}

/// Three times the store in large values, read back in another order, and nothing stays on disk.
fn d1_over_commit_round_trip(mode: Mode) {
    let session = mode.start_with(1, |init| init.store_bytes(40 << 20));
    let _entered = session.enter();
    let references: Vec<_> = (0..24).map(|seed| put(&noise(5 * MIB, seed)).unwrap()).collect();
    assert!(session.store().spilled_count > 0, "{:?}", session.store());
    for at in 0..references.len() {
        let seed = at * 7 % references.len();
        let back = references[seed].get_timeout(20.0).unwrap();
        assert!(back == noise(5 * MIB, seed as u64), "value {seed} differs");
    }
    drop(references);
    session.await_quiet();
}

/// The same for results of tasks, which other tasks take.
fn d1_over_commit_of_results(mode: Mode) {
    let session = mode.start_with(2, |init| init.store_bytes(40 << 20));
    let _entered = session.enter();
    let references: Vec<_> = (0..24).map(|seed| make_noise::remote(4 * MIB, seed)).collect();
    let lens: Vec<_> = references.iter().rev().map(len_of::remote).collect();
    for len in lens {
        assert_eq!(len.get_timeout(30.0).unwrap(), 4 * MIB);
    }
    for (seed, reference) in references.iter().enumerate() {
        assert!(reference.get_timeout(20.0).unwrap() == noise(4 * MIB, seed as u64), "value {seed} differs");
    }
    drop(references);
    session.await_quiet();
}

/// A value that somebody looks at stays where it is, whatever else is put.
fn d3_what_is_mapped_does_not_move(mode: Mode) {
    let session = mode.start_with(1, |init| init.store_bytes(32 << 20));
    let _entered = session.enter();
    let kept = put(&noise(4 * MIB, 1000)).unwrap();
    let view = kept.get().unwrap();
    let address = view.as_ptr();
    let others: Vec<_> = (0..16).map(|seed| put(&noise(4 * MIB, seed)).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(50));
    assert!(view == noise(4 * MIB, 1000), "bytes changed under a reader");
    assert_eq!(kept.get().unwrap().as_ptr(), address);
    drop((view, kept, others));
    session.await_quiet();
}
