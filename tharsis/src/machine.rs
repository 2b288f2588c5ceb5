//! Resources of this machine, and the places where its nodes are found.

use crate::folders;
use rustix::process::{Resource, getrlimit};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tharsis_protos::submission::SOCKET_VARIABLE;
use tharsis_remote::{Error, FailureKind, Result};

/// Smallest object store.
pub const STORE_BYTES_MIN: u64 = 4 << 20;
/// Memory for how finished tasks were called, if nothing is said.
pub const LINEAGE_BYTES: usize = 256 << 20;
/// The longest time that a node drains when SIGTERM tells it to end, if nothing is said.
pub const DRAIN_WITHIN: Duration = Duration::from_secs(10);
/// The longest time that a worker process may take from its start until it connects, if nothing is said.
pub const WORKER_START_TIMEOUT: Duration = Duration::from_secs(30);
/// Share of the memory that a store may take if nothing is said, as a divisor.
const STORE_SHARE: u64 = 3;
/// Share of the addresses that a store may take of those that are free, as a divisor: it is mapped twice, and
/// threads, their heaps and the program's own data take some as well.
const ADDRESS_SHARE: u64 = 6;
/// Addresses for threads and rings beside a store.
const OTHER_ADDRESS_BYTES: u64 = 64 << 20;
/// Share of the memory that a node and its workers may use if nothing is said: the rest is for the system and
/// others.
const MEMORY_LIMIT_PERCENT: u64 = 90;

/// CPUs this process may use.
#[must_use]
pub fn cpu_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Memory of the machine or of the container, whichever is less, in bytes.
#[must_use]
pub fn memory_bytes() -> u64 {
    tharsis_raylet::pressure::machine_bytes().unwrap_or(1 << 30)
}

/// The size of a store if nothing is said: a share of the memory, or of the addresses where these are
/// limited.
#[must_use]
pub fn default_store_bytes(memory_bytes: u64) -> u64 {
    let of_addresses = free_address_bytes().map_or(u64::MAX, |free| free / ADDRESS_SHARE);
    (memory_bytes / STORE_SHARE).min(of_addresses).max(STORE_BYTES_MIN)
}

/// Bytes of addresses that this process may still map; none if it may map as many as it likes.
fn free_address_bytes() -> Option<u64> {
    let limit_bytes = getrlimit(Resource::As).current?;
    Some(limit_bytes.saturating_sub(mapped_bytes()))
}

/// Bytes of addresses that this process has mapped.
fn mapped_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Memory that a node and its workers may use if nothing is said.
#[must_use]
pub fn default_memory_limit_bytes(memory_bytes: u64) -> u64 {
    (memory_bytes / 100 * MEMORY_LIMIT_PERCENT).max(STORE_BYTES_MIN)
}

/// Refuses a memory limit that the machine does not have, or that has no room for the store.
///
/// # Errors
/// `InvalidArgument` with both numbers.
pub fn check_memory_limit(limit_bytes: u64, store_bytes: u64, memory_bytes: u64) -> Result<()> {
    let wrong = |text: String| Err(Error::new(FailureKind::InvalidArgument, text));
    if memory_bytes < limit_bytes {
        return wrong(format!(
            "memory_limit: {limit_bytes} bytes are more than the memory, {memory_bytes} bytes"
        ));
    }
    if limit_bytes < store_bytes {
        return wrong(format!(
            "memory_limit: {limit_bytes} bytes are less than the store, {store_bytes} bytes, which is part of it"
        ));
    }
    Ok(())
}

/// Refuses a store that the machine cannot hold.
///
/// # Errors
/// `InvalidArgument` for one that is too small, `ResourceExhausted` for one that is too large, with all
/// numbers.
pub fn check_store_bytes(store_bytes: u64, memory_bytes: u64) -> Result<()> {
    let wrong = |text: String| Err(Error::new(FailureKind::InvalidArgument, text));
    if store_bytes < STORE_BYTES_MIN {
        return wrong(format!(
            "store_bytes: {store_bytes} bytes are less than the smallest store, {STORE_BYTES_MIN} bytes"
        ));
    }
    if store_bytes > memory_bytes {
        let free_bytes = tharsis_raylet::pressure::free_bytes();
        let text = format!(
            "store_bytes: asked for {store_bytes} bytes, which are more than the memory: {memory_bytes} bytes, of which \
             {free_bytes} are free"
        );
        return Err(Error::new(FailureKind::ResourceExhausted, text));
    }
    free_address_bytes().map_or(Ok(()), |free_bytes| check_addresses(store_bytes, free_bytes))
}

/// Refuses a store that this process, and those that it starts, have no addresses for.
fn check_addresses(store_bytes: u64, free_bytes: u64) -> Result<()> {
    let most_bytes = free_bytes.saturating_sub(OTHER_ADDRESS_BYTES) / 2;
    if store_bytes <= most_bytes {
        return Ok(());
    }
    let text = format!(
        "store_bytes: a store of {store_bytes} bytes takes twice as many bytes of addresses, of which a limit on this \
         process (`ulimit -v`) leaves {free_bytes}: there is room for one of {most_bytes} bytes"
    );
    Err(Error::new(FailureKind::ResourceExhausted, text))
}

/// The folder of sessions of this user: in `XDG_RUNTIME_DIR` if that is the user's alone and outlives its
/// sessions, else among temporary files.
#[must_use]
pub fn scratch() -> PathBuf {
    folders::scratch()
}

/// The socket of the node that `tharsis start` made.
#[must_use]
pub fn default_socket() -> PathBuf {
    folders::find("node/node.sock")
}

/// The file with the secret of this user's clusters, if nothing is said.
#[must_use]
pub fn default_secret_file() -> PathBuf {
    folders::find("cluster.secret")
}

/// The folder of this user's identities in clusters, if nothing is said. It outlives a restart of the
/// machine.
#[must_use]
pub fn default_identity_folder() -> PathBuf {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = of("XDG_DATA_HOME").or_else(|| of("HOME").map(|home| home.join(".local/share")));
    data.unwrap_or_else(folders::temporary).join("tharsis").join("identity")
}

/// Whether an address is that of a cluster's head, not of a node's socket on this machine.
#[must_use]
pub fn is_remote(address: &str) -> bool {
    address != "auto" && !address.contains('/')
}

/// The socket that an address stands for: the path itself, that in `THARSIS_SOCKET`, or that of this user's
/// node on this machine.
///
/// # Errors
/// `Disconnected` if no node is there.
pub fn find_socket(address: &str) -> Result<PathBuf> {
    let socket = match address {
        path if path.contains('/') => PathBuf::from(path),
        _ => std::env::var_os(SOCKET_VARIABLE).map_or_else(default_socket, PathBuf::from),
    };
    if Path::exists(&socket) {
        Ok(socket)
    } else {
        let text = format!(
            "no node runs on this machine: {} is not there; start one with `tharsis start`",
            socket.display()
        );
        Err(Error::new(FailureKind::Disconnected, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_that_cannot_be_are_refused_with_both_numbers() {
        let memory = 1 << 30;
        assert!(check_store_bytes(default_store_bytes(memory), memory).is_ok());
        let (small, large) = (FailureKind::InvalidArgument, FailureKind::ResourceExhausted);
        for (bad, kind, other) in [
            (0, small, STORE_BYTES_MIN),
            (STORE_BYTES_MIN - 1, small, STORE_BYTES_MIN),
            (memory + 1, large, memory),
        ] {
            let error = check_store_bytes(bad, memory).unwrap_err();
            assert_eq!(error.kind(), kind);
            let text = error.to_string();
            assert!(text.contains(&bad.to_string()) && text.contains(&other.to_string()), "{text}");
        }
        assert!(memory_bytes() > 1 << 26);
    }

    #[test]
    fn a_store_without_addresses_is_refused_with_the_size_that_fits() {
        let free = 1 << 30;
        let error = check_addresses(free / 2, free).unwrap_err();
        assert_eq!(error.kind(), FailureKind::ResourceExhausted);
        let most = (free - OTHER_ADDRESS_BYTES) / 2;
        for part in [&(free / 2).to_string(), &free.to_string(), &most.to_string(), "ulimit -v"] {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
        assert!(check_addresses(most, free).is_ok() && check_addresses(free / ADDRESS_SHARE, free).is_ok());
        assert!(0 < mapped_bytes());
    }

    #[test]
    fn memory_limits_that_cannot_be_kept_are_refused_with_both_numbers() {
        let (store, memory) = (1 << 28, 1 << 30);
        for good in [store, default_memory_limit_bytes(memory), memory] {
            assert!(check_memory_limit(good, store, memory).is_ok(), "{good}");
        }
        for (bad, other) in [(store - 1, store), (memory + 1, memory)] {
            let text = check_memory_limit(bad, store, memory).unwrap_err().to_string();
            assert!(text.contains(&bad.to_string()) && text.contains(&other.to_string()), "{text}");
        }
    }
}
