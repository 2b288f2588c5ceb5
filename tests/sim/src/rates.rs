//! Rates of the faults of a run, which its seed chooses.

use crate::rng::Rng;

/// Rates of the faults, in 1/1000.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) loss: u64,
    pub(crate) double: u64,
    pub(crate) worker_crash: u64,
    pub(crate) start_failure: u64,
    pub(crate) pull_failure: u64,
    pub(crate) cancel: u64,
    pub(crate) node_crashes: u64,
    pub(crate) partitions: u64,
    pub(crate) driver_crash: u64,
    pub(crate) spill_refusal: u64,
    pub(crate) disk_loss: u64,
    pub(crate) no_pages: u64,
    pub(crate) uses_relays: bool,
    pub(crate) memory_ends: u64,
    pub(crate) isolations: u64,
    pub(crate) pauses: u64,
    pub(crate) jumps: u64,
}

/// Chooses the faults of this run; one run in five has none.
pub(crate) fn faults(rng: &mut Rng) -> Faults {
    if rng.chance(200) {
        return Faults::default();
    }
    let mut often = |permille: u64, most: u64| if rng.chance(permille) { rng.range(0, most + 1) } else { 0 };
    Faults {
        loss: often(400, 150),
        double: often(400, 150),
        worker_crash: often(500, 300),
        start_failure: often(200, 50),
        pull_failure: often(400, 150),
        cancel: often(400, 200),
        node_crashes: often(400, 2),
        partitions: often(300, 3),
        driver_crash: often(300, 1000),
        spill_refusal: often(300, 150),
        disk_loss: often(200, 20),
        memory_ends: often(400, 12),
        no_pages: often(200, 50),
        uses_relays: often(700, 1000) > 0,
        isolations: often(300, 2),
        pauses: often(300, 3),
        jumps: often(300, 3),
    }
}
