//! The `tharsis` command.
//!
//! `args.rs` is what can be typed, `commands.rs` what it does, `bench/` the benchmarks. The same program is node and
//! worker: see `tharsis::process`.

#![forbid(unsafe_code)]

mod args;
mod bench;
mod commands;
mod output;
mod telemetry;

use clap::Parser;
use clap::error::ErrorKind;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Longest part of an argument that an error message repeats.
const SHOWN_CHARACTERS_MAX: usize = 200;

fn main() -> ExitCode {
    tharsis::process::enter_observed(command, collector)
}

/// The collector of a node's traces, if an endpoint is set.
fn collector() -> Option<Box<dyn tharsis_raylet::observe::Collector>> {
    telemetry::collector().unwrap_or_else(|error| {
        output::complain(&format!("tharsis: {} is not used: {error:#}", telemetry::ENDPOINT_VARIABLE));
        None
    })
}

fn command() -> ExitCode {
    match args::Args::try_parse() {
        Ok(args) => match commands::run(args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                output::complain(&format!("tharsis: {error:#}"));
                commands::exit_code(&error)
            }
        },
        Err(error) => refuse(&error),
    }
}

/// Help goes to standard output; what is wrong with the arguments to standard error, cut to a readable length.
fn refuse(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match output::line(error.to_string().trim_end()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let text = error.to_string();
    for line in text.trim_end().lines() {
        let shown: String = line.chars().take(SHOWN_CHARACTERS_MAX).collect();
        output::complain(&shown);
    }
    ExitCode::from(2)
}
