//! Processes and shared memory, as the system shows them.

use rustix::net::{Shutdown, shutdown};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open, test_kill_process,
};
use std::fs;
use std::path::Path;

/// Sends a signal.
///
/// # Panics
/// If the process id is none.
pub fn signal(pid: u32, signal: Signal) {
    // One that is gone already needs no signal.
    let _gone = kill_process(to_pid(pid), signal);
}

/// Whether a process runs; one that has ended and was not waited for does not.
#[must_use]
pub fn runs(pid: u32) -> bool {
    test_kill_process(to_pid(pid)).is_ok() && stat(pid).is_some_and(|(state, _)| state != 'Z')
}

/// Cuts the connections of a process, while it runs on.
///
/// # Panics
/// If the system does not give them.
pub fn cut_connections(pid: u32) {
    let process = pidfd_open(to_pid(pid), PidfdFlags::empty()).expect("the process runs");
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        let is_socket =
            fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok()).filter(|_| is_socket);
        if let Some(number) = number
            && let Ok(socket) = pidfd_getfd(&process, number, PidfdGetfdFlags::empty())
        {
            // One that is closed already needs no cut.
            let _closed = shutdown(&socket, Shutdown::Both);
        }
    }
}

/// Running children of a process.
#[must_use]
pub fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|(state, of)| of == parent && state != 'Z')).collect()
}

/// Running children, their children, and so on.
#[must_use]
pub fn descendants(parent: u32) -> Vec<u32> {
    let mut found = children(parent);
    let mut at = 0;
    while let Some(pid) = found.get(at).copied() {
        found.extend(children(pid));
        at += 1;
    }
    found
}

/// Names of shared-memory segments that a process made.
#[must_use]
pub fn segments(pid: u32) -> Vec<String> {
    let head = format!("tharsis-{pid}-");
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(&head))
        .collect()
}

/// Whether a segment of this name is there.
#[must_use]
pub fn has_segment(name: &str) -> bool {
    Path::new("/dev/shm").join(name).exists()
}

/// Name of a process; empty if there is none.
#[must_use]
pub fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

/// Memory of a process that is in RAM.
///
/// # Panics
/// If there is no such process.
#[must_use]
pub fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a process has memory");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("in KiB");
    kib << 10
}

/// State and parent of a process.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn to_pid(pid: u32) -> Pid {
    i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id")
}
