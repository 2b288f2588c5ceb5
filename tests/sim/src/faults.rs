//! Faults: their rates, which the seed chooses, and the accidents that are planned at the start.

use crate::cluster::{Cluster, SimEvent};
use crate::rng::Rng;
use tharsis_core::memory::{MemoryGauge, MemoryReading, WorkerMemory};
use tharsis_core::{Event, MS};
use tharsis_types::ClientId;

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

impl Cluster {
    /// Enters the accidents of this run into the agenda.
    pub(crate) fn plan_faults(&mut self) {
        for _ in 0..self.faults.node_crashes {
            let host = self.rng.index(self.hosts.len());
            let when = self.now + self.rng.range(MS, 300 * MS);
            self.at(when, SimEvent::Crash { host });
            if self.rng.chance(700) {
                let when = self.now + self.rng.range(MS, 400 * MS);
                self.at(when, SimEvent::Join);
            }
        }
        for _ in 0..self.faults.partitions {
            let when = self.now + self.rng.range(MS, 400 * MS);
            self.at(when, SimEvent::Partition);
        }
        for _ in 0..self.faults.isolations {
            let when = self.now + self.rng.range(MS, 400 * MS);
            let host = self.rng.index(self.hosts.len());
            self.at(when, SimEvent::Isolate { host });
        }
        for _ in 0..self.faults.pauses {
            let when = self.now + self.rng.range(MS, 400 * MS);
            let host = self.rng.index(self.hosts.len());
            self.at(when, SimEvent::Pause { host });
        }
        for _ in 0..self.faults.jumps {
            let when = self.now + self.rng.range(MS, 400 * MS);
            let host = self.rng.index(self.hosts.len());
            self.at(when, SimEvent::Jump { host });
        }
        for _ in 0..self.faults.memory_ends {
            let when = self.now + self.rng.range(MS, 400 * MS);
            let host = self.rng.index(self.hosts.len());
            self.at(when, SimEvent::MemoryEnds { host });
        }
    }

    /// A look at a node's memory finds its limit reached, and its workers as large as chance has it.
    pub(crate) fn memory_ends(&mut self, host: usize) {
        if !self.hosts[host].alive {
            return;
        }
        self.upset(host, self.now);
        let clients = self.hosts[host].clients.values().filter(|c| c.driver.is_none());
        let clients: Vec<_> = clients.map(|c| c.id).collect();
        let worker = |client: ClientId| WorkerMemory { client, pid: 0, bytes: self.rng.range(0, 64 << 20) };
        let workers = clients.into_iter().map(worker).collect();
        let node = MemoryGauge { used_bytes: 99, limit_bytes: 100 };
        self.feed(host, Event::MemoryRead(MemoryReading { node, workers, ..MemoryReading::default() }));
    }

    /// Two hosts cannot reach each other for a while.
    pub(crate) fn partition(&mut self) {
        let (a, b) = (self.rng.index(self.hosts.len()), self.rng.index(self.hosts.len()));
        let until = self.now + self.rng.range(10 * MS, 2_000 * MS);
        self.cuts.push((a, b, until));
        self.upset(a, until);
        self.upset(b, until);
    }
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
