//! Memory and processor time of processes, from /proc.

use anyhow::{Context, Result};
use std::time::Duration;

/// Proportional set size of a process, in bytes: its private pages, and its part of shared ones.
pub fn pss_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = text.lines().find(|l| l.starts_with("Pss:")).with_context(|| format!("no Pss in {path}"))?;
    let kib: u64 = line.split_whitespace().nth(1).context("Pss has no value")?.parse()?;
    Ok(kib << 10)
}

/// A process and all its descendants.
pub fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(parent) = all.get(at).copied() {
        at += 1;
        let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|c| c.parse::<u32>().ok()));
        }
    }
    all
}

/// Processor time that the calling thread has used.
#[cfg(feature = "tensors")]
pub fn thread_time() -> Result<Duration> {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).context(path)?;
    Ok(Duration::from_nanos(text.split_whitespace().next().context("schedstat is empty")?.parse()?))
}

/// Processor time a process has used.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/schedstat");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let main: u64 = text.split_whitespace().next().context("schedstat is empty")?.parse()?;
    let mut total = main;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        if task.file_name().to_string_lossy() != pid.to_string() {
            let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            total += text.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    Ok(Duration::from_nanos(total))
}

/// Resets the peak of memory of this process.
pub fn reset_peak() -> Result<()> {
    // The kernel's number for "set the peak to what there is now".
    std::fs::write("/proc/self/clear_refs", "5").context("/proc/self/clear_refs")
}

/// Peak of memory of this process since [`reset_peak`], in bytes.
pub fn peak_bytes() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let line =
        text.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM in /proc/self/status")?;
    let kib: u64 = line.split_whitespace().next().context("VmHWM has no value")?.parse()?;
    Ok(kib << 10)
}
