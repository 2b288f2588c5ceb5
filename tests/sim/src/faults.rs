//! Accidents that are planned at the start, as often as the rates of faults say.

use crate::cluster::{Cluster, SimEvent};
use tharsis_core::memory::{MemoryGauge, MemoryReading, WorkerMemory};
use tharsis_core::{Event, MS};
use tharsis_types::ClientId;

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
        let length = self.rng.range(10 * MS, 2_000 * MS);
        self.cut((a, b), length, false);
    }
}
