//! What this machine has, and where its nodes are found.

use std::path::{Path, PathBuf};
use tharsis_remote::{Error, FailureKind, Result};

/// Smallest object store.
pub const STORE_BYTES_MIN: u64 = 4 << 20;
/// Memory for how finished tasks were called, if nothing is said.
pub const LINEAGE_BYTES: usize = 256 << 20;
/// Share of the memory that a store may take if nothing is said, as a divisor.
const STORE_SHARE: u64 = 3;
/// Share of the memory that a node and its workers may use if nothing is said: the rest is for the system and others.
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

/// The size of a store if nothing is said.
#[must_use]
pub fn default_store_bytes(memory_bytes: u64) -> u64 {
    (memory_bytes / STORE_SHARE).max(STORE_BYTES_MIN)
}

/// What a node and its workers may use if nothing is said.
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
/// `InvalidArgument` for one that is too small, `ResourceExhausted` for one that is too large, with all numbers.
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
    Ok(())
}

/// The folder of sessions of this user.
#[must_use]
pub fn scratch() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    std::env::temp_dir().join(format!("tharsis-{user}"))
}

/// The socket of the node that `tharsis start` made.
#[must_use]
pub fn default_socket() -> PathBuf {
    scratch().join("node").join("node.sock")
}

/// The socket that an address stands for.
///
/// # Errors
/// `Disconnected` if no node is there.
pub fn find_socket(address: &str) -> Result<PathBuf> {
    let socket = match address {
        "auto" => default_socket(),
        path if path.contains('/') => PathBuf::from(path),
        _ => default_socket(),
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
