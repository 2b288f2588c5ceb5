//! The places where tasks of tensors and frames run: threads, or remote tasks; and the memory that all their
//! processes take.

use super::memory;
use anyhow::Result;
use clap::ValueEnum;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Executor of the tasks of a tensor or a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// Threads of this process.
    #[default]
    Threads,
    /// Remote tasks on an embedded runtime.
    Embedded,
    /// Remote tasks on two nodes of a cluster on this machine, which share its CPUs and the memory.
    Nodes,
    /// Remote tasks on worker processes.
    Workers,
}

/// Interval at which memory is read if the system keeps no maximum.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Reading walks all page tables and delays threads that make pages meanwhile, so it takes at most this part
/// of the time, as a divisor.
const LOOK_SHARE: u32 = 20;

impl Place {
    /// Suffix to the name of a bench.
    pub fn suffix(self) -> &'static str {
        match self {
            Place::Threads => "",
            Place::Embedded => " --on embedded",
            Place::Nodes => " --on nodes",
            Place::Workers => " --on workers",
        }
    }
}

/// Runs `f`, whose tasks run at this place, and returns the peak of memory of all processes.
pub fn peak_bytes<T>(place: Place, f: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
    crate::allocator::give_back();
    if place == Place::Threads {
        memory::reset_peak()?;
        let value = f()?;
        return Ok((value, memory::peak_bytes()?));
    }
    let (most, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let value = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                most.fetch_max(family_bytes(), Ordering::Relaxed);
                std::thread::sleep(LOOK_EVERY.max(LOOK_SHARE * begun.elapsed()));
            }
        });
        let value = f();
        is_done.store(true, Ordering::Relaxed);
        value
    })?;
    Ok((value, most.into_inner()))
}

/// Memory of this process and its descendants, with shared pages counted once.
pub fn family_bytes() -> u64 {
    let all = memory::family(std::process::id());
    // A process that has ended meanwhile counts as zero.
    all.into_iter().filter_map(|pid| memory::pss_bytes(pid).ok()).sum()
}
