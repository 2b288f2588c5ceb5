//! Tasks that wait for one object and are cancelled.

use super::{Measurement, Options, floors, tasks};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tharsis::prelude::*;

/// Workers, as in the benches of tasks.
const WORKERS: usize = 2;
/// References of which the outcome is read.
const READ: usize = 1_000;

/// Runs until a file appears.
#[remote]
fn gate(opened_by: PathBuf) -> u64 {
    while !opened_by.exists() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    1
}

#[remote]
fn sum(first: u64, second: u64) -> u64 {
    first + second
}

/// Seconds until all tasks have ended that wait for the same object and are cancelled one by one; for
/// `cause_s`, the task behind the object is cancelled and as many fail with it. The floor is the time of as
/// many messages over a socket.
pub fn wide(options: &Options) -> Result<Measurement> {
    let count = options.size;
    let floor_s = count as f64 / floors::socket_echo_per_s(count)?;
    let runtime = tasks::runtime(options, WORKERS)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("open");
    let mut seconds = [0.0; 2];
    for (way, seconds) in [Way::OneByOne, Way::Cause].into_iter().zip(&mut seconds) {
        *seconds = cancelled_s(&runtime, &file, count, way)?;
    }
    let [one_by_one, cause_s] = seconds;
    Ok(Measurement::new("cancel-wide", one_by_one, "s", floor_s)
        .with("dependents", count as f64)
        .with("cause_s", cause_s))
}

/// The task that is cancelled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Each of those that wait.
    OneByOne,
    /// The one that they wait for.
    Cause,
}

fn cancelled_s(runtime: &tharsis::Runtime, file: &Path, count: usize, way: Way) -> Result<f64> {
    let held = gate::remote(file.to_path_buf());
    // It waits too, so that its cancellation ends it at once.
    let cause = sum::remote(&held, 0);
    let dependents: Vec<_> = (0..count as u64).map(|number| sum::remote(&cause, number)).collect();
    tasks::wait_for_queue(runtime, count)?;
    let started = Instant::now();
    match way {
        Way::OneByOne => dependents.iter().try_for_each(|one| cancel(one, false, false))?,
        Way::Cause => cancel(&cause, false, false)?,
    }
    wait(&dependents, Wait { num_returns: count, fetch: false, ..Wait::default() })?;
    let seconds = started.elapsed().as_secs_f64();
    let expected = match way {
        Way::OneByOne => FailureKind::Cancelled,
        Way::Cause => FailureKind::DependencyFailed,
    };
    for one in dependents.iter().step_by(count.div_ceil(READ)) {
        let kind = one.get().err().map(|error| error.kind());
        ensure!(kind == Some(expected), "a task that waited ended with {kind:?}");
    }
    std::fs::write(file, "")?;
    held.get()?;
    std::fs::remove_file(file)?;
    Ok(seconds)
}
