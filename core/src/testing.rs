//! What unit tests of several machines need.

use std::sync::Arc;
use tharsis_types::{FunctionId, JobId, Placement, Resources, RetryOn, TaskClass};

/// A class of a job whose tasks need nothing and return one value.
pub(crate) fn class(job: u32) -> Arc<TaskClass> {
    Arc::new(TaskClass {
        job: JobId(job),
        function: FunctionId(1),
        signature: 0,
        function_name: "f".into(),
        name: "f".into(),
        call_site: String::new(),
        resources: Resources::default(),
        priority: 0,
        returns: 1,
        max_retries: 0,
        retry_on: RetryOn::Nothing,
        timeout_ms: 0,
        max_calls: 0,
        pure: false,
        placement: Placement::Default,
    })
}
