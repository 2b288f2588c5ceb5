//! Time and memory that calls took, as they report it.

use serde::{Deserialize, Serialize};
use tharsis_kernels::Warnings;

/// Time and memory that a batch took.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The number of the attempt; the first is 0.
    pub(crate) attempt: u32,
    pub(crate) stages: Vec<StageReport>,
    pub(crate) warnings: Warnings,
}

/// Time and memory that the tasks of one stage took.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StageReport {
    pub(crate) stage: u32,
    pub(crate) tasks: u32,
    pub(crate) busy_ns: u64,
    pub(crate) slowest_ns: u64,
}

impl Report {
    pub(super) fn add(&mut self, stage: u32, busy_ns: u64) {
        match self.stages.last_mut() {
            Some(last) if last.stage == stage => {
                last.tasks += 1;
                last.busy_ns += busy_ns;
                last.slowest_ns = last.slowest_ns.max(busy_ns);
            }
            _ => self.stages.push(StageReport { stage, tasks: 1, busy_ns, slowest_ns: busy_ns }),
        }
    }
}
