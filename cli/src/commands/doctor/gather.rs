//! Measures the facts about this machine, as nodes read them where they do.

use super::facts::{Cpus, Facts, HugePages, Memory, OpenFiles, SharedMemory, Vectors};
use super::{disk, network};
use crate::commands::node;
use crate::settings::{Error, Key, Settings, parse};
use anyhow::Result;
use procfs::Current;
use rustix::fs::statvfs;
use rustix::process::{Resource, Rlimit, getrlimit};
use std::path::Path;
use std::sync::Arc;
use tharsis::{machine, spill_dirs};
use tharsis_object_store::{
    Channel, Segment, StoreError, huge_pages_available, private_huge_pages_available,
};
use tharsis_raylet::pressure;

/// The folder of segments.
const SEGMENTS: &str = "/dev/shm";
/// The list of CPUs that the system uses.
const ONLINE_CPUS: &str = "/sys/devices/system/cpu/online";

/// The facts for a node of these settings that joins at `address`, or is alone or a head without one.
///
/// # Errors
/// The error of settings that no node would have.
pub fn facts(address: Option<&str>, settings: &Settings) -> Result<Facts> {
    // GPUs that are not there are refused, as a node refuses them.
    node::resources(settings, 0)?;
    let offered = settings.get(Key::NumCpus, parse::cpus)?.unwrap_or_default();
    let online = std::fs::read_to_string(ONLINE_CPUS).ok().and_then(|list| count(&list));
    Ok(Facts {
        memory: memory(settings)?,
        cpus: Cpus { usable: machine::cpu_count(), online, offered },
        vectors: vectors(),
        huge_pages: HugePages {
            is_shared: huge_pages_available(),
            is_private: private_huge_pages_available(),
        },
        shared_memory: shared_memory(offered),
        open_files: open_files(),
        spill: disk::spill(settings),
        host: network::host(settings)?,
        socket: network::socket(settings),
        port: network::port(address, settings),
        etcd: network::etcd(address, settings)?,
        heads: address.map(|address| network::heads(address, settings)),
    })
}

fn memory(settings: &Settings) -> Result<Memory, Error> {
    let limit_bytes = machine::memory_bytes();
    let (store_bytes, most_bytes) = (settings.memory(Key::Store)?, settings.memory(Key::MemoryLimit)?);
    let fits = machine::check_store_bytes(store_bytes, limit_bytes)
        .and_then(|()| machine::check_memory_limit(most_bytes, store_bytes, limit_bytes));
    Ok(Memory {
        limit_bytes,
        free_bytes: pressure::free_bytes(),
        machine_bytes: procfs::Meminfo::current().ok().map(|info| info.mem_total),
        store_bytes,
        problem: fits.err().map(|bad| bad.failure().message.clone()),
    })
}

/// The number of CPUs in a list such as `0-3,8`.
fn count(list: &str) -> Option<usize> {
    let count_of = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.trim().split(',').map(count_of).sum()
}

#[cfg(feature = "tensors")]
fn vectors() -> Option<Vectors> {
    use tharsis_kernels::cpu::{Level, level};
    Some(match level() {
        Level::Avx512 => Vectors::Avx512,
        Level::Avx2 => Vectors::Avx2,
        Level::Portable if cfg!(target_arch = "x86_64") => Vectors::X86,
        Level::Portable => Vectors::Other,
    })
}

#[cfg(not(feature = "tensors"))]
fn vectors() -> Option<Vectors> {
    None
}

fn shared_memory(offered: f64) -> SharedMemory {
    let bytes = |blocks: u64, block_bytes: u64| blocks.saturating_mul(block_bytes);
    let space = statvfs(SEGMENTS)
        .map(|system| (bytes(system.f_blocks, system.f_frsize), bytes(system.f_bavail, system.f_frsize)));
    // A worker for each CPU, and a driver.
    let client_count = (offered.ceil() as u64).saturating_add(1);
    SharedMemory {
        space: space.map_err(|cause| cause.to_string()),
        is_memory: spill_dirs::is_memory(Path::new(SEGMENTS)),
        client_count,
        needed_bytes: client_count.saturating_mul(Channel::BYTES as u64),
        segment: segment().map_err(|error| error.to_string()),
    }
}

/// Makes the segment of one client, and connects both sides. Its name goes with it.
fn segment() -> Result<(), StoreError> {
    let of_node = Arc::new(Segment::create("doctor", Channel::BYTES)?);
    let of_client = Arc::new(Segment::open(of_node.name())?);
    let _node_side = Channel::node_side(&of_node)?;
    let _client_side = Channel::client_side(&of_client)?;
    Ok(())
}

fn open_files() -> OpenFiles {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    OpenFiles { current, maximum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_a_list_are_counted() {
        for (list, wanted) in
            [("0\n", Some(1)), ("0-3\n", Some(4)), ("0-3,8,10-11\n", Some(7)), ("", None), ("3-1", None)]
        {
            assert_eq!(count(list), wanted, "{list:?}");
        }
    }

    #[test]
    fn a_segment_is_made_here_and_gone_again() {
        segment().unwrap();
    }
}
