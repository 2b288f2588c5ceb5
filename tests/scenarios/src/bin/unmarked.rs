//! A program whose `main` does not carry `#[tharsis::main]`, started by the scenarios in `unmarked.rs`.
//!
//! If a start is not refused, such a program starts itself without end. So it does nothing before it has
//! taken one of a few tickets: however many processes are started, no more than [`TICKET_COUNT`] of them go
//! on, and the tickets taken are their number. Tickets, and what to do, are files beside the program: a node
//! that starts it as a worker gives it neither arguments nor the environment of its driver.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use tharsis::prelude::*;
use tharsis::{LocalCluster, Result};

/// Most processes of the program that run.
const TICKET_COUNT: u32 = 12;
/// Variables that a node sets for its workers.
const WORKER: [&str; 2] = ["THARSIS_WORKER_SOCKET", "THARSIS_WORKER_START"];

#[remote]
fn next(x: i64) -> i64 {
    x + 1
}

fn main() -> ExitCode {
    let Some(folder) = folder().filter(|folder| took_ticket(folder)) else {
        return ExitCode::from(99);
    };
    let said = fs::read_to_string(folder.join("mode")).unwrap_or_default();
    let outcome = match said.split_whitespace().collect::<Vec<_>>()[..] {
        ["embedded"] => init().start().and_then(|_runtime| call()),
        ["store", bytes] => {
            init().store_bytes(bytes.parse().unwrap_or(0)).start().and_then(|_runtime| call())
        }
        ["workers"] => init().workers(2).start().and_then(|_runtime| call()),
        ["cluster"] => LocalCluster::start(2, 1.0, 16 << 20).map(drop),
        ["address", socket] => init().address(socket).start().and_then(|_runtime| call()),
        ["relaunched", _] => return relaunch_worker().unwrap_or_else(|| tharsis::process::enter(relaunched)),
        _ => return ExitCode::from(98),
    };
    report(outcome)
}

/// Path of the program.
fn folder() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.parent()?.to_owned())
}

fn took_ticket(folder: &Path) -> bool {
    let take = |number: u32| File::create_new(folder.join("tickets").join(number.to_string())).is_ok();
    (0..TICKET_COUNT).any(take)
}

/// As a worker, starts the program again with an environment that does not say so, as `sudo -i` would.
fn relaunch_worker() -> Option<ExitCode> {
    std::env::var_os(WORKER[0])?;
    let mut again = Command::new(std::env::current_exe().ok()?);
    let status =
        again.env_remove(WORKER[0]).env_remove(WORKER[1]).env_remove("THARSIS_NODE").status().ok()?;
    Some(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(97)))
}

/// The driver whose workers relaunch themselves.
fn relaunched() -> ExitCode {
    let said = folder().and_then(|folder| fs::read_to_string(folder.join("mode")).ok()).unwrap_or_default();
    let socket = said.split_whitespace().nth(1).unwrap_or_default();
    report(init().address(socket).start().and_then(|_runtime| call()))
}

fn call() -> Result<()> {
    let value = next::options().max_retries(0).remote(41).get()?;
    match value {
        42 => Ok(()),
        _ => Err(Error::new(FailureKind::Internal, format!("41 + 1 gave {value}"))),
    }
}

fn report(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
