//! Runs one script, for valgrind to count: `costs SCRIPT UNITS`.

#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "a command-line program")]

use std::process::ExitCode;
use tharsis_costs::scripts::{PLANTED, SCRIPTS, counted_part};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let script = SCRIPTS.iter().chain([&PLANTED]).find(|script| script.name == name);
    let units = words.next().and_then(|units| units.parse().ok());
    let (Some(script), Some(units)) = (script, units) else {
        eprintln!("usage: costs SCRIPT UNITS");
        return ExitCode::from(2);
    };
    counted_part((script.prepare)(units));
    ExitCode::SUCCESS
}
