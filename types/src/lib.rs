//! The words of the system: ids, resources, task classes, payload frames, failures, limits.
//!
//! Every other crate speaks in these types. This crate knows nothing of async, of the wire, of files, of
//! shared memory or of Arrow; what crosses a border is converted to and from these types at that border.
//!
//! Read [`ids`] first, then [`task`] (what is submitted) and [`failure`] (what can come back instead of a
//! value).

#![forbid(unsafe_code)]

pub mod bytes;
pub mod check;
pub mod extent;
pub mod failure;
pub mod graph;
pub mod group;
pub mod hash;
pub mod ids;
pub mod limits;
pub mod payload;
pub mod peer;
pub mod quota;
pub mod resources;
pub mod task;
pub mod text;

pub use bytes::SmallBytes;
pub use check::BadOption;
pub use extent::Extent;
pub use failure::{Executed, Failure, FailureKind};
pub use graph::{GraphInput, GraphPart, GraphResult, GraphStep};
pub use group::{BundleNodes, GroupSpec, Strategy};
pub use ids::{Attempt, ClientId, CodeUnitId, FunctionId, JobId, LeaseId, NodeId, NotAnId, ObjectId, TaskId};
pub use quota::{BadQuota, JobQuota, JobTerms, Quota};
pub use resources::{BadResource, Resources};
pub use task::{Dependency, Placement, RefId, RetryOn, TaskArgs, TaskClass};
