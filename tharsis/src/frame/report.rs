//! Time, rows and bytes of tasks, as they report them.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use tharsis_dataframe::TaskMetrics;
use tharsis_remote::ObjectRef;

/// Time, rows and bytes of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The number of the attempt; the first is 0.
    pub(crate) attempt: u32,
    /// Rows and bytes of each output.
    pub(crate) outputs: Vec<(usize, usize)>,
    /// Bytes that operators wrote to files because memory did not suffice.
    pub(crate) spilled_bytes: usize,
    pub(crate) busy_ns: u64,
    /// An object of the run, if it has put others or is not the first one of its task. The ledger does not
    /// compare a value with references in it with that of another run, which took another time.
    pub(crate) run: Option<ObjectRef<()>>,
}

impl Report {
    /// Rows of all outputs.
    pub(crate) fn rows(&self) -> usize {
        self.outputs.iter().map(|(rows, _)| rows).sum()
    }

    /// Bytes of all outputs.
    pub(crate) fn bytes(&self) -> usize {
        self.outputs.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The report for the sums of its stage.
    pub(crate) fn metrics(&self) -> TaskMetrics {
        TaskMetrics {
            rows: self.rows(),
            bytes: self.bytes(),
            spilled_bytes: self.spilled_bytes,
            busy: Duration::from_nanos(self.busy_ns),
            retries: u64::from(self.attempt),
        }
    }
}
