//! Every bound that more than one crate must agree on, with its unit and where it comes from.

/// Bytes in a kibibyte, mebibyte and gibibyte.
pub const KIB: usize = 1 << 10;
/// Bytes in a mebibyte.
pub const MIB: usize = 1 << 20;
/// Bytes in a gibibyte.
pub const GIB: usize = 1 << 30;

/// Largest encoded value that travels inside records and messages instead of the store. Below this a copy is
/// cheaper than an extent, a pin and a mapping; above it the rings would fill with values.
pub const INLINE_BYTES_MAX: usize = 4 * KIB;
/// Inline arguments of one task, all together; more goes to the store as one object.
pub const INLINE_ARGS_BYTES_MAX: usize = INLINE_BYTES_MAX;
/// Returns of one task.
pub const RETURNS_MAX: u32 = 1 << 16;
/// Bundles of a placement group: where they are fits an inline value.
pub const BUNDLES_MAX: usize = 256;
/// References among the arguments of one task.
pub const DEPENDENCIES_MAX: usize = 1 << 20;
/// Nodes that are asked to keep the copy of a node that drains, one after the other.
pub const MOVE_TARGETS_MAX: usize = 16;
/// Bytes of one record in a ring. A call with a million references as arguments does not fit into a ring
/// record and goes through the store instead (see `remote`).
pub const RECORD_BYTES_MAX: usize = 256 * KIB;
/// Bytes of one ring, each direction.
pub const RING_BYTES: usize = MIB;
const _: () = assert!(RECORD_BYTES_MAX * 4 <= RING_BYTES, "a ring holds several of the largest records");
const _: () = assert!(INLINE_BYTES_MAX * 16 <= RECORD_BYTES_MAX, "an inline value is small beside a record");

/// Unfinished tasks that one job may have at its node; its driver's calls wait above. Calls of tasks and
/// actors count and do not wait: what their job has may be waiting for just these.
pub const QUEUED_TASKS_MAX: usize = 8_000_000;
/// Nodes of a small cluster, at most: there every node has a connection to every other one and hears its
/// load.
pub const SMALL_CLUSTER_MAX: usize = 16;
/// Interval, in milliseconds, at which the control store is asked again for a node that was named and has not
/// joined. If it is no member, its objects and actors have ended.
pub const UNKNOWN_NODE_WAIT_MS: u64 = 2_000;
/// Clients (drivers and workers) of one node at a time.
pub const CLIENTS_MAX: usize = 4096;
/// Tasks sent ahead to one worker, at most.
pub const PIPELINE_DEPTH_MAX: usize = 256;
/// Calls that one group of an actor may run at the same time.
pub const CONCURRENCY_MAX: u32 = 10_000;
/// Work, in nanoseconds, that may wait in a worker behind the running task.
pub const PIPELINE_AHEAD_NS: u64 = 200_000;

/// Largest amount of one CPU, GPU or custom resource.
pub const RESOURCE_AMOUNT_MAX: f64 = 1e12;
/// Largest amount of memory in bytes, a pebibyte: the bundles of a group add up without an overflow.
pub const RESOURCE_MEMORY_MAX: u64 = 1 << 50;
const _: () = assert!(RESOURCE_MEMORY_MAX <= u64::MAX / BUNDLES_MAX as u64, "sums of amounts fit");
/// Most CPUs of one node.
pub const CPU_COUNT_MAX: f64 = 1e6;
/// Custom resource names in one set.
pub const RESOURCE_NAMES_MAX: usize = 256;
/// Maximum length of a quota as a text, which is how records of jobs have it.
pub const QUOTA_BYTES_MAX: usize = 4 * KIB;
/// Bytes of a resource name.
pub const RESOURCE_NAME_BYTES_MAX: usize = 256;
/// Bytes of a task, job or namespace name.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of a control message between nodes.
pub const MESSAGE_BYTES_MAX: usize = 16 * MIB;
/// Bytes of a record that travels through a ring in pieces: a result with two million references. What is
/// larger is refused with a failure that names this limit.
pub const LARGE_RECORD_BYTES_MAX: usize = 64 * MIB;
/// Bytes of an encoded failure that a worker reports; of a longer one the user's value and its causes are
/// left out.
pub const FAILURE_BYTES_MAX: usize = 4 * MIB;
/// Characters of the message that stay of a failure that was too long.
pub const FAILURE_TEXT_KEPT: usize = 64 * KIB;
const _: () =
    assert!(FAILURE_BYTES_MAX * 4 <= LARGE_RECORD_BYTES_MAX, "a failure fits with what the node adds");
/// Bytes of log tail kept per worker for failure reports.
pub const LOG_TAIL_BYTES: usize = 4 * KIB;
/// Weight of a job that says nothing, and the largest: beside others, a job gets of a node in proportion to
/// its weight.
pub const JOB_WEIGHT_DEFAULT: u32 = 100;
/// See [`JOB_WEIGHT_DEFAULT`].
pub const JOB_WEIGHT_MAX: u32 = 10_000;
/// An idle lease goes back after this long.
pub const LEASE_IDLE_MS: u64 = 250;
/// Alignment of objects and of the buffers in them: one cache line, one AVX-512 register.
pub const OBJECT_ALIGN: usize = 64;
