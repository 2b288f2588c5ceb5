//! One reading of the memory of a node, and the time of the next one.
//!
//! There are two limits. The *node's* limit is set by its user. It covers the pages of the store, counted
//! once, and the private memory of the node's process and its workers. The *machine's* limit is the memory of
//! the machine or the container. All processes count there, and at the limit the kernel kills a process of
//! its own choice. The page cache counts in neither: the kernel reclaims it before it kills a process.
//!
//! The node may have a *soft* limit as well, below its own: above it nothing new is started.

use tharsis_types::ClientId;

/// A limit counts as reached at this part of it. The rest is a margin until the next reading.
const THRESHOLD_PERCENT: u64 = 95;
/// Assumed rate at which all workers together can fill memory: readings are more frequent near a limit.
const FILL_BYTES_PER_S: u64 = 2 << 30;
/// Shortest time between two readings.
const LOOK_MS_MIN: u64 = 20;
/// Longest time between two readings.
const LOOK_MS_MAX: u64 = 500;
/// The same on a node without workers, whose own memory grows with messages only.
const LOOK_ALONE_MS_MAX: u64 = 2_000;
/// A smaller change of a worker's memory is not reported.
const NEWS_BYTES: u64 = 4 << 20;

/// A limit and its use, page cache aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryGauge {
    /// Bytes in use, page cache aside.
    pub used_bytes: u64,
    /// The limit; 0 if there is none.
    pub limit_bytes: u64,
}

/// The memory of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerMemory {
    /// The worker.
    pub client: ClientId,
    /// Its process.
    pub pid: u32,
    /// Its own memory and that of the processes it started, without pages of the store or of files.
    pub bytes: u64,
}

/// A reading of the memory of a node. Workers are read before the limits: the memory of a worker that is not
/// listed any more is not counted in the limits either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryReading {
    /// The memory that the node may use.
    pub node: MemoryGauge,
    /// The memory of the machine or the container.
    pub machine: MemoryGauge,
    /// Use of the node from which nothing new is started; 0 if there is no such limit.
    pub soft_limit_bytes: u64,
    /// The pages of the store.
    pub store_bytes: u64,
    /// Memory of the node's own process.
    pub process_bytes: u64,
    /// Its workers.
    pub workers: Vec<WorkerMemory>,
}

impl MemoryGauge {
    /// Use at which a worker must be killed.
    #[must_use]
    pub fn threshold_bytes(self) -> u64 {
        self.limit_bytes / 100 * THRESHOLD_PERCENT
    }

    /// The same use under a limit that is this much lower, and at least one byte: 0 would be none.
    #[must_use]
    pub fn without(self, bytes: u64) -> Self {
        match self.limit_bytes {
            0 => self,
            limit => Self { limit_bytes: limit.saturating_sub(bytes).max(1), ..self },
        }
    }

    /// Bytes that can still be used before a worker must be killed.
    #[must_use]
    pub fn headroom_bytes(self) -> u64 {
        match self.limit_bytes {
            0 => u64::MAX,
            _ => self.threshold_bytes().saturating_sub(self.used_bytes),
        }
    }
}

impl MemoryReading {
    /// The limit that is reached, with its name.
    #[must_use]
    pub fn reached(&self) -> Option<(MemoryGauge, &'static str)> {
        let both = [(self.node, "the node's memory limit"), (self.machine, "the memory of the machine")];
        both.into_iter().find(|(gauge, _)| gauge.headroom_bytes() == 0)
    }

    /// Whether the node uses more than its soft limit.
    #[must_use]
    pub fn is_over_soft_limit(&self) -> bool {
        0 < self.soft_limit_bytes && self.soft_limit_bytes <= self.node.used_bytes
    }

    /// Milliseconds until the next reading: no limit can be reached before it.
    #[must_use]
    pub fn next_look_ms(&self) -> u64 {
        let to_fill_ms = time_to_fill_ms(self.node.headroom_bytes().min(self.machine.headroom_bytes()));
        let is_far = to_fill_ms == LOOK_MS_MAX && !self.is_over_soft_limit();
        if is_far && self.workers.is_empty() { LOOK_ALONE_MS_MAX } else { to_fill_ms }
    }

    /// Whether it differs from `last` enough to be reported.
    #[must_use]
    pub fn is_news(&self, last: &Self) -> bool {
        let same = |a: &WorkerMemory, b: &WorkerMemory| {
            a.client == b.client && a.bytes.abs_diff(b.bytes) < NEWS_BYTES
        };
        self.reached().is_some()
            || self.is_over_soft_limit()
            || last.is_over_soft_limit()
            || self.workers.len() != last.workers.len()
            || !self.workers.iter().zip(&last.workers).all(|(a, b)| same(a, b))
    }
}

/// Milliseconds until the next reading: the time in which this many bytes can be filled, within bounds.
pub(crate) fn time_to_fill_ms(bytes: u64) -> u64 {
    (bytes / (FILL_BYTES_PER_S / 1_000)).clamp(LOOK_MS_MIN, LOOK_MS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn gauge(used_bytes: u64, limit_bytes: u64) -> MemoryGauge {
        MemoryGauge { used_bytes, limit_bytes }
    }

    #[test]
    fn looks_are_closer_the_nearer_a_limit_is() {
        let at = |used| {
            let node = gauge(used, 100 * GIB);
            let workers = vec![WorkerMemory { client: ClientId(1), pid: 1, bytes: 0 }];
            MemoryReading { node, workers, ..MemoryReading::default() }.next_look_ms()
        };
        assert_eq!(at(0), LOOK_MS_MAX);
        assert_eq!(at(95 * GIB - GIB / 4), 125);
        assert_eq!(at(99 * GIB), LOOK_MS_MIN);
    }

    #[test]
    fn no_limit_is_never_reached() {
        let node = gauge(1 << 60, 0);
        let reading = MemoryReading { node, ..MemoryReading::default() };
        assert_eq!((reading.reached(), reading.next_look_ms()), (None, LOOK_ALONE_MS_MAX));
    }

    #[test]
    fn either_limit_counts() {
        let (calm, full) = (gauge(GIB, 10 * GIB), gauge(96 * GIB, 100 * GIB));
        let whose = |node, machine| {
            MemoryReading { node, machine, ..MemoryReading::default() }.reached().map(|(_, whose)| whose)
        };
        assert_eq!(whose(calm, calm), None);
        assert_eq!(whose(full, calm), Some("the node's memory limit"));
        assert_eq!(whose(calm, full), Some("the memory of the machine"));
    }

    #[test]
    fn memory_that_is_left_to_others_lowers_a_limit() {
        let machine = gauge(60 * GIB, 100 * GIB);
        let reached = |left| {
            let machine = machine.without(left);
            MemoryReading { machine, ..MemoryReading::default() }.reached().is_some()
        };
        assert_eq!(
            (reached(0), reached(30 * GIB), reached(40 * GIB), reached(200 * GIB)),
            (false, false, true, true)
        );
        assert_eq!(gauge(GIB, 0).without(GIB), gauge(GIB, 0));
    }

    #[test]
    fn a_soft_limit_is_news_while_it_is_passed_and_once_after() {
        let reading = |used| {
            let node = gauge(used, 100 * GIB);
            MemoryReading { node, soft_limit_bytes: 50 * GIB, ..MemoryReading::default() }
        };
        let (below, above) = (reading(49 * GIB), reading(50 * GIB));
        assert!(above.is_over_soft_limit() && above.reached().is_none());
        assert!(above.is_news(&below) && above.is_news(&above) && below.is_news(&above));
        assert!(!below.is_news(&below));
    }

    #[test]
    fn an_idle_node_has_nothing_to_tell() {
        let worker = |bytes| WorkerMemory { client: ClientId(1), pid: 2, bytes };
        let reading = |workers| MemoryReading { workers, ..MemoryReading::default() };
        let last = reading(vec![worker(GIB)]);
        assert!(!reading(vec![worker(GIB + NEWS_BYTES - 1)]).is_news(&last));
        assert!(reading(vec![worker(GIB - NEWS_BYTES)]).is_news(&last));
        assert!(reading(vec![]).is_news(&last));
        let node = gauge(96 * GIB, 100 * GIB);
        assert!(MemoryReading { node, ..last.clone() }.is_news(&last));
    }
}
