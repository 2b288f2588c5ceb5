//! Facts about this machine that decide whether a node runs well on it. They are data: `gather.rs` measures
//! them, `judge.rs` judges them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The facts that were measured, for a node of some settings.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Memory and its limits.
    pub memory: Memory,
    /// CPUs and their limits.
    pub cpus: Cpus,
    /// Vector instructions; none in a command without tensors, which has no loops over them.
    pub vectors: Option<Vectors>,
    /// Kinds of memory with huge pages.
    pub huge_pages: HugePages,
    /// The folder of segments.
    pub shared_memory: SharedMemory,
    /// Limits on open files.
    pub open_files: OpenFiles,
    /// Folders for objects that the store has no room for.
    pub spill: Spill,
    /// The name of the machine.
    pub host: HostName,
    /// The socket for drivers and workers.
    pub socket: Socket,
    /// The address for other nodes, which was free; or the problem with it.
    pub port: Result<SocketAddr, String>,
    /// The etcd of the control store; none if it has none.
    pub etcd: Option<Etcd>,
    /// The heads that the node is to join; none if it is alone or begins a cluster.
    pub heads: Option<Heads>,
}

/// Memory as nodes read it, and the settings that take it.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Bytes that there are: of the machine, or of the closest control group that limits them.
    pub limit_bytes: u64,
    /// Bytes of these that are free.
    pub free_bytes: u64,
    /// Bytes of the whole machine, if the system says them.
    pub machine_bytes: Option<u64>,
    /// Bytes of the object store.
    pub store_bytes: u64,
    /// The reason why a node would refuse these settings.
    pub problem: Option<String>,
}

/// CPUs as nodes read them.
#[derive(Clone, Copy, Debug)]
pub struct Cpus {
    /// CPUs that a process may use at a time, within its control groups and its affinity.
    pub usable: usize,
    /// CPUs of the machine, if the system says them.
    pub online: Option<usize>,
    /// CPUs that the node is to offer.
    pub offered: f64,
}

/// The best vector instructions that loops over tensors have a copy for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "tensors"), allow(dead_code, reason = "a command without tensors does not look"))]
pub enum Vectors {
    /// Vectors of 512 bits.
    Avx512,
    /// Vectors of 256 bits with fused multiply-add.
    Avx2,
    /// The instructions of every x86-64.
    X86,
    /// The instructions of every CPU of another kind.
    Other,
}

/// Kinds of memory that get huge pages, at least on advice.
#[derive(Clone, Copy, Debug)]
pub struct HugePages {
    /// Shared memory, in which objects lie.
    pub is_shared: bool,
    /// Memory of one process, in which chunks and buffers lie.
    pub is_private: bool,
}

/// The folder of segments, which connect a node with its drivers and workers.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    /// Bytes of its file system, and those of them that are free; or the reason why they are unknown.
    pub space: Result<(u64, u64), String>,
    /// Whether it is in memory.
    pub is_memory: bool,
    /// Drivers and workers that are expected at a time.
    pub client_count: u64,
    /// Bytes of the segments of all of them.
    pub needed_bytes: u64,
    /// Whether a segment was made and connected from both sides; or the reason why not.
    pub segment: Result<(), String>,
}

/// Limits on open files of a process; none is no limit.
#[derive(Clone, Copy, Debug)]
pub struct OpenFiles {
    /// The limit of this process, which the programs of users keep.
    pub current: Option<u64>,
    /// The limit to which a node raises its own.
    pub maximum: Option<u64>,
}

/// Folders for objects that the store has no room for.
#[derive(Clone, Debug)]
pub enum Spill {
    /// Those that a node would use.
    Folders(Vec<SpillFacts>),
    /// Nothing is spilled.
    Nowhere {
        /// Whether a setting says so.
        is_told: bool,
    },
    /// A node would refuse them, for this reason.
    Refused(String),
}

/// A folder for spilled objects.
#[derive(Clone, Debug)]
pub struct SpillFacts {
    /// The folder, which a node makes if it is not there.
    pub path: PathBuf,
    /// Bytes that a node would write there.
    pub quota_bytes: u64,
    /// Bytes that are free there.
    pub free_bytes: u64,
    /// Whether it is in memory.
    pub is_memory: bool,
    /// Bytes that were written, and the seconds until the disk had them; or the reason why there are none.
    pub written: Result<(u64, f64), String>,
}

/// A name of this machine.
#[derive(Clone, Debug)]
pub struct HostName {
    /// The name.
    pub name: String,
    /// Whether other nodes are told it.
    pub is_told: bool,
    /// Its addresses; or the reason why there are none.
    pub addresses: Result<Vec<IpAddr>, String>,
}

/// The socket for drivers and workers.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Its path.
    pub path: PathBuf,
    /// The process that listens there.
    pub holder: Option<u32>,
    /// The reason why a node could not listen there, whoever does.
    pub problem: Option<String>,
}

/// The etcd of the control store.
#[derive(Clone, Debug)]
pub struct Etcd {
    /// Its servers.
    pub servers: String,
    /// The reason why a control store could not use it.
    pub problem: Option<String>,
}

/// Heads or control stores that a node is to join.
#[derive(Clone, Debug)]
pub struct Heads {
    /// Their addresses.
    pub addresses: String,
    /// The answer of one of them.
    pub answer: Answer,
}

/// The answer of a head.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It is of this release and admits this machine.
    Admitted,
    /// It listens, and was not asked for more: this machine has nothing to show, for this reason.
    Listens(String),
    /// It is of no use, for this reason.
    Problem(String),
}
