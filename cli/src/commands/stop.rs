//! `tharsis stop`: the end of a node and its workers.

use crate::output;
use anyhow::{Result, bail};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};
use tharsis_object_store::local_socket::connect;
use tharsis_protos::handshake::Question;
use tharsis_protos::report::Report;

/// Time for which a socket is waited for at which others wait already.
const LOOK_WAIT: Duration = Duration::from_millis(100);
/// Time that a node may take to end.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// Tells the node at `socket` to end and waits until nothing of it is left. Without a node there is nothing
/// to do.
///
/// # Errors
/// If it does not answer, or does not end.
pub fn run(socket: &Path) -> Result<()> {
    if let Err(cause) = connect(socket, LOOK_WAIT)
        && matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
    {
        return output::line(&format!("Nothing to stop: no node of yours runs at {}.", socket.display()));
    }
    let report = super::ask(socket, Question::Stop)?;
    await_end(report.pid, socket)?;
    output::line(&format!("Node {:016x} has stopped.", report.node))?;
    left_behind(&report).map_or(Ok(()), |text| output::line(&text))
}

/// A line about the other nodes when a head has stopped.
fn left_behind(report: &Report) -> Option<String> {
    let others = report.nodes.len().saturating_sub(1);
    (report.is_head && 0 < others).then(|| {
        format!(
            "Other nodes of its cluster that run on: {others}. Unless another head serves them, they have no control \
             store until this one is started again at {} with the same --state or --etcd; `tharsis stop` stops them where \
             they run.",
            report.address
        )
    })
}

/// Waits until nothing is left of a node that ends.
///
/// # Errors
/// If it does not end.
pub fn await_end(pid: u32, socket: &Path) -> Result<()> {
    let until = Instant::now() + STOP_WAIT;
    while is_running(pid) || socket.exists() {
        if Instant::now() > until {
            bail!("process {pid} did not end within {} s", STOP_WAIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Whether a process runs. A zombie does not: its parent may be gone or not have waited for it.
fn is_running(pid: u32) -> bool {
    let state = i32::try_from(pid).ok().and_then(|pid| procfs::process::Process::new(pid).ok()?.stat().ok());
    state.is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}
