//! The system as a whole: time to the first result, and the cost of an idle node.

use super::statistics::median;
use super::{Measurement, Options, memory, tasks};
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tharsis::prelude::*;

/// Time for which an idle node is observed.
const IDLE_LOOK: Duration = Duration::from_secs(5);

#[remote]
fn answer() -> u32 {
    42
}

/// Milliseconds from the start of a process to its first result: node and worker processes, and embedded.
pub fn coldstart(options: &Options) -> Result<Measurement> {
    let runs = if options.quick { 3 } else { 9 };
    let mut processes = (0..runs).map(|_| start_to_result("processes")).collect::<Result<Vec<_>>>()?;
    let mut embedded = (0..runs).map(|_| start_to_result("embedded")).collect::<Result<Vec<_>>>()?;
    let mut bare = (0..runs).map(|_| start_to_result("nothing")).collect::<Result<Vec<_>>>()?;
    Ok(Measurement::new("coldstart", median(&mut processes), "ms", median(&mut bare))
        .with("embedded_ms", median(&mut embedded)))
}

/// The process that `coldstart` starts: gets one result and reports it.
///
/// # Errors
/// Any error on the way.
pub fn first_result(mode: &str) -> Result<()> {
    let options = Options { embedded: mode == "embedded", quick: true, ..Options::default() };
    if mode != "nothing" {
        let runtime = tasks::runtime(&options, 2)?;
        if answer::remote().get()? != 42 {
            bail!("wrong answer");
        }
        crate::output::line("ready")?;
        drop(runtime);
    } else {
        crate::output::line("ready")?;
    }
    Ok(())
}

/// Memory of a head node without a job.
pub fn idle(options: &Options) -> Result<Measurement> {
    let folder = std::env::temp_dir().join(format!("tharsis-idle-{}", std::process::id()));
    let socket: PathBuf = folder.join("node.sock");
    let started = Instant::now();
    let mut node = Command::new(std::env::current_exe()?)
        .args(["node", "--socket"])
        .arg(&socket)
        .stdin(Stdio::null())
        .spawn()?;
    while !socket.exists() {
        if started.elapsed() > Duration::from_secs(10) {
            node.kill()?;
            bail!("the node did not start");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let up_ms = started.elapsed().as_secs_f64() * 1e3;
    std::thread::sleep(Duration::from_secs(1));
    let look = if options.quick { IDLE_LOOK / 5 } else { IDLE_LOOK };
    let before = memory::cpu_time(node.id())?;
    std::thread::sleep(look);
    let used = memory::cpu_time(node.id())? - before;
    let family = memory::family(node.id());
    let bytes: u64 = family.iter().map(|pid| memory::pss_bytes(*pid)).sum::<Result<u64>>()?;
    let stopped = tharsis::observe::ask(&socket, tharsis_protos::handshake::Question::Stop);
    node.wait()?;
    std::fs::remove_dir_all(&folder).context("the node's folder")?;
    stopped?;
    Ok(Measurement::new("idle", bytes as f64 / 1e6, "MB", 0.0)
        .with("processes", family.len() as f64)
        .with("cpu_percent", used.as_secs_f64() / look.as_secs_f64() * 100.0)
        .with("up_ms", up_ms))
}

fn start_to_result(mode: &str) -> Result<f64> {
    let started = Instant::now();
    let mut child =
        Command::new(std::env::current_exe()?).args(["bench-first", mode]).stdout(Stdio::piped()).spawn()?;
    let mut word = [0; 5];
    child
        .stdout
        .take()
        .context("no pipe")?
        .read_exact(&mut word)
        .context("the process ended without a result")?;
    let elapsed = started.elapsed();
    child.wait()?;
    Ok(elapsed.as_secs_f64() * 1e3)
}
