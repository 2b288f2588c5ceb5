//! Environment of the benches of the object memory: a store of a given size, a folder to spill to, and a
//! watch on the memory.

use super::resident::{Peak, Watch};
use super::{Measurement, Options};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
#[cfg(feature = "tensors")]
use tharsis::tensor::RemoteExecutor;
use tharsis::{Runtime, SpillChoice, SpillFolder, observe};
use tharsis_protos::handshake::Question;

/// Number of workers, that of the cores of the reference machine.
pub const WORKERS: usize = 2;
/// Free space that a bench leaves on the disk.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// Interval at which the spilled bytes are read.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A folder of this process, removed on drop.
pub struct Folder(PathBuf);

/// A store of a bound size with its workers.
pub struct Bounded {
    runtime: Runtime,
    watch: Watch,
}

impl Folder {
    /// Makes it.
    ///
    /// # Errors
    /// If the disk has too little room.
    pub fn new(wanted_bytes: u64) -> Result<Folder> {
        let path = std::env::temp_dir().join(format!("tharsis-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        let folder = Folder(path);
        let disk = rustix::fs::statvfs(&folder.0)?;
        let free = disk.f_bavail * disk.f_frsize;
        ensure!(
            wanted_bytes + FREE_BYTES_MIN <= free,
            "{} has {free} bytes free, the bench needs {wanted_bytes} and {FREE_BYTES_MIN} to spare",
            folder.0.display()
        );
        Ok(folder)
    }

    /// The path of the folder; it is removed when this is dropped.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The choice to spill to this folder, at the speed of the device.
    #[must_use]
    pub fn spill(&self) -> SpillChoice {
        let folder = SpillFolder { path: self.0.join("spill"), quota_bytes: u64::MAX };
        SpillChoice { folders: vec![folder], ..SpillChoice::default() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A killed node may still write here; the next node removes the rest at its start.
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

impl Bounded {
    /// Starts it.
    ///
    /// # Errors
    /// If the node does not start.
    pub fn start(options: &Options, store_bytes: u64, spill: SpillChoice) -> Result<Bounded> {
        let watch = Watch::begin(store_bytes);
        let init = if options.embedded {
            tharsis::init().num_cpus(WORKERS as f64)
        } else {
            tharsis::init().workers(WORKERS)
        };
        Ok(Bounded { runtime: init.store_bytes(store_bytes).spill(spill).start()?, watch })
    }

    /// An executor of tensors on it.
    #[cfg(feature = "tensors")]
    #[must_use]
    pub fn executor(&self) -> RemoteExecutor {
        RemoteExecutor::new(&self.runtime)
    }

    /// Runs `work`, and returns the peak of bytes on disk meanwhile.
    ///
    /// # Errors
    /// Errors of `work`, and a node that does not answer.
    pub fn spilled_during<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
        let (most, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let Some(socket) = self.runtime.socket().map(Path::to_path_buf) else {
            let done = work()?;
            return Ok((done, self.runtime.report()?.store.spilled_bytes));
        };
        let looking = std::thread::spawn({
            let (most, is_over) = (Arc::clone(&most), Arc::clone(&is_over));
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    if let Ok(report) = observe::ask(&socket, Question::Status) {
                        most.fetch_max(report.store.spilled_bytes, Ordering::Relaxed);
                    }
                    std::thread::sleep(LOOK_EVERY);
                }
            }
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        ensure!(looking.join().is_ok(), "the thread that looks at the store panicked");
        Ok((done?, most.load(Ordering::Relaxed)))
    }

    /// Ends the runtime, and returns the peak of memory.
    ///
    /// # Errors
    /// If the thread of the watch panicked.
    pub fn end(self) -> Result<Peak> {
        let peak = self.watch.end();
        self.runtime.shutdown();
        peak
    }
}

impl Measurement {
    /// Adds the peak of memory, and its excess over the limits of stores and processes.
    #[must_use]
    pub fn with_peak(self, peak: Peak) -> Measurement {
        self.with("peak_mb", peak.bytes as f64 / 1e6)
            .with("over_limit_mb", peak.over_bytes as f64 / 1e6)
            .with("processes", peak.processes as f64)
    }
}
