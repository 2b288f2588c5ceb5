//! Time, rows and bytes of tasks, as they report them.

use serde::{Deserialize, Serialize};

/// Time, rows and bytes of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The number of the attempt; the first is 0.
    pub(crate) attempt: u32,
    /// Rows and bytes of each output.
    pub(crate) outputs: Vec<(usize, usize)>,
    pub(crate) busy_ns: u64,
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
}
