//! Peak of memory of all processes of a bench together, with the store counted once.
//!
//! While the bench runs, a thread reads the private and file pages of this process and its descendants, and
//! the pages of each memory file that one of them holds open. A sum of resident sets would count pages of the
//! store again for each mapping; the file counts them once.

use super::memory;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Memory that a process may have beside the store, in bytes.
pub const PROCESS_BYTES_MAX: u64 = 64 << 20;
/// Interval of the readings: short compared with the life of a value of 50 MB, long compared with a reading.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Unit of a file's allocated blocks, for every file system.
const BLOCK_BYTES: u64 = 512;

/// A watch that runs until [`Watch::end`].
pub struct Watch {
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<Peak>>,
}

/// Peak of memory, and its excess over the limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peak {
    /// Bytes of all processes and of the store, together.
    pub bytes: u64,
    /// Bytes above the limits of stores and [`PROCESS_BYTES_MAX`] for each process at the time; negative
    /// below.
    pub over_bytes: i64,
    /// Peak number of processes.
    pub processes: usize,
}

impl Watch {
    /// Starts the watch. `stores_bytes` is the limit of all stores together; the present memory of this
    /// process does not count.
    #[must_use]
    pub fn begin(stores_bytes: u64) -> Watch {
        let stopping = Arc::new(AtomicBool::new(false));
        let own_bytes = private_bytes(std::process::id());
        let is_over = Arc::clone(&stopping);
        let thread = std::thread::spawn(move || {
            let mut peak = Peak { over_bytes: i64::MIN, ..Peak::default() };
            while !is_over.load(Ordering::Relaxed) {
                peak.look(stores_bytes, own_bytes);
                std::thread::sleep(LOOK_EVERY);
            }
            peak
        });
        Watch { stopping, thread: Some(thread) }
    }

    /// Ends the watch and returns the peak.
    ///
    /// # Errors
    /// If the thread of the watch panicked.
    pub fn end(mut self) -> Result<Peak> {
        self.stopping.store(true, Ordering::Relaxed);
        match self.thread.take().context("a watch ends once")?.join() {
            Ok(peak) => Ok(peak),
            Err(_) => bail!("the thread that watches the memory panicked"),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}

impl Peak {
    fn look(&mut self, stores_bytes: u64, own_bytes: u64) {
        let processes = memory::family(std::process::id());
        let private: u64 = processes.iter().map(|pid| private_bytes(*pid)).sum();
        let files: BTreeMap<_, _> = processes.iter().flat_map(|pid| memory_files(*pid)).collect();
        let bytes = private.saturating_sub(own_bytes) + files.values().sum::<u64>();
        let allowed = stores_bytes + PROCESS_BYTES_MAX * processes.len() as u64;
        self.bytes = self.bytes.max(bytes);
        self.over_bytes = self.over_bytes.max(bytes as i64 - allowed as i64);
        self.processes = self.processes.max(processes.len());
    }
}

/// Resident bytes of a process that are not shared memory; 0 if it has just ended.
fn private_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let row = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    (row("RssAnon:").unwrap_or(0) + row("RssFile:").unwrap_or(0)) << 10
}

/// Memory files that a process holds open, each with the bytes of its pages.
fn memory_files(pid: u32) -> Vec<(u64, u64)> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let is_memory = |path: &std::path::Path| {
        std::fs::read_link(path).is_ok_and(|target| target.to_string_lossy().starts_with("/memfd:"))
    };
    let paths = entries.map(|entry| entry.path()).filter(|path| is_memory(path));
    let of = paths.filter_map(|path| std::fs::metadata(path).ok());
    of.map(|file| (file.ino(), file.blocks() * BLOCK_BYTES)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_object_store::Arena;

    #[test]
    fn a_store_counts_once_and_by_its_pages() {
        let arena = Arena::create(64 << 20).unwrap();
        arena.map().write(0, 8 << 20).unwrap().fill(1);
        let mut peak = Peak { over_bytes: i64::MIN, ..Peak::default() };
        peak.look(64 << 20, u64::MAX);
        assert!((8 << 20..32 << 20).contains(&peak.bytes), "{peak:?}");
        assert!(peak.over_bytes < 0 && peak.processes == 1, "{peak:?}");
    }
}
