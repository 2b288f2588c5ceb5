//! The first process of a container, which inherits the processes that others leave behind and must wait for
//! them: without that they stay as zombies, until the container has as many processes as it may.
//!
//! A node waits for its own children alone, each where it was started. So a node that would be process 1 is
//! started once more as its child, and process 1 does nothing but wait for whatever ends and pass signals on.

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Signals that are passed on. The others are not sent to services, or cannot be caught.
const PASSED_ON: [(SignalKind, Signal); 6] = [
    (SignalKind::hangup(), Signal::HUP),
    (SignalKind::interrupt(), Signal::INT),
    (SignalKind::quit(), Signal::QUIT),
    (SignalKind::terminate(), Signal::TERM),
    (SignalKind::user_defined1(), Signal::USR1),
    (SignalKind::user_defined2(), Signal::USR2),
];
/// Difference between a signal and the status that stands for it.
const SIGNAL_STATUS: i32 = 128;

/// In process 1 of a container: starts this program again with the same arguments, and returns its status
/// when it has ended. `None` in any other process, and if that is not possible.
#[must_use]
pub fn supervise() -> Option<ExitCode> {
    if std::process::id() != 1 {
        return None;
    }
    match Builder::new_current_thread().enable_all().build().and_then(|runtime| runtime.block_on(run())) {
        Ok(status) => Some(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX))),
        Err(error) => {
            tracing::warn!(%error, "process 1 does not wait for the processes that others leave behind");
            None
        }
    }
}

async fn run() -> io::Result<i32> {
    let mut ended = signal(SignalKind::child())?;
    let (sender, mut signals) = mpsc::channel(PASSED_ON.len());
    for (kind, number) in PASSED_ON {
        let (mut received, sender) = (signal(kind)?, sender.clone());
        tokio::spawn(
            async move { while received.recv().await.is_some() && sender.send(number).await.is_ok() {} },
        );
    }
    let mut words = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = words.next() {
        command.arg0(name);
    }
    // A group of its own: what a terminal sends comes once, through here.
    let child = command.args(words).process_group(0).spawn()?;
    let child = Pid::from_child(&child);
    loop {
        if let Some(status) = wait_for_ended(child) {
            return Ok(status);
        }
        tokio::select! {
            _more = ended.recv() => {}
            Some(number) = signals.recv() => {
                // It may have ended.
                let _gone = kill_process(child, number);
            }
        }
    }
}

/// Waits for all that have ended; the status of the child if it is one of them.
fn wait_for_ended(child: Pid) -> Option<i32> {
    let mut found = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == child {
            found = status_of(status);
        }
    }
    found
}

fn status_of(status: WaitStatus) -> Option<i32> {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| SIGNAL_STATUS + signal))
}
