//! Helpers for the unit tests of several machines.

use std::sync::Arc;
use tharsis_types::{FunctionId, JobId, TaskClass};

/// A class of a job whose tasks need nothing and return one value.
pub(crate) fn class(job: u32) -> Arc<TaskClass> {
    Arc::new(TaskClass::new(JobId(job), FunctionId(1), "f"))
}
