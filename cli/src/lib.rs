//! The `tharsis` command.
//!
//! `args.rs` has the command line, `settings/` the settings, which may also come from variables and files,
//! `commands/` the commands, `bench/` the benchmarks. The same program is node and worker: see
//! `tharsis::process`.

#![deny(unsafe_code)]

mod allocator;
mod args;
mod bench;
mod commands;
mod format;
mod frames;
mod hosts;
#[cfg(feature = "frames")]
mod interrupt;
mod log;
mod offers;
mod output;
mod reach;
mod refusal;
mod settings;
mod telemetry;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use settings::error::shown;
use std::ffi::OsString;
use std::process::ExitCode;
use tharsis_raylet::Program;

/// Runs the command that the arguments of this process name.
pub fn main() -> ExitCode {
    if is_service()
        && !has_token()
        && let Some(status) = tharsis_raylet::init::supervise()
    {
        return status;
    }
    allocator::set_up();
    log::begin_of_node();
    tharsis::process::enter_with(command, PROGRAM)
}

/// Whether this is the command of a service, which may be the first process of a container.
fn is_service() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == "node" || word == "gcs")
}

/// Whether a token is among the arguments or in the environment. The node then starts again without it, in
/// this process: a supervisor before that would keep the token for its life.
fn has_token() -> bool {
    let is_token = |word: OsString| word == "--token" || word.as_encoded_bytes().starts_with(b"--token=");
    std::env::var_os(tharsis::join::TOKEN_VARIABLE).is_some() || std::env::args_os().any(is_token)
}

/// Parts that this program adds when it runs as a node.
const PROGRAM: Program = Program { collector, give_back_memory: allocator::give_back };

/// The collector of a node's traces, if an endpoint is set.
fn collector() -> Option<Box<dyn tharsis_raylet::observe::Collector>> {
    telemetry::collector().unwrap_or_else(|error| {
        output::complain(&format!("tharsis: {} is not used: {error:#}", telemetry::ENDPOINT_VARIABLE));
        None
    })
}

fn command() -> ExitCode {
    match args::read(std::env::args_os()) {
        Ok(args) => match commands::run(args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                output::complain(&format!("tharsis: {error:#}"));
                ExitCode::from(refusal::status_of(&error))
            }
        },
        Err(error) => refuse(error),
    }
}

/// Prints help on standard output, and errors of arguments on standard error, with values cut to a readable
/// length.
fn refuse(mut error: clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match output::line(error.to_string().trim_end()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if let Some(word) = std::env::args_os().find(|word| word.to_str().is_none())
        && (error.kind() == ErrorKind::InvalidUtf8 || error.to_string().contains(char::REPLACEMENT_CHARACTER))
    {
        // The word is not the value of a flag; `TextParser` handles these. Clap does not tell the word or its
        // content.
        output::complain(&format!("error: {} is not UTF-8", shown(&format!("{word:?}"))));
        return ExitCode::from(refusal::WRONG_INPUT);
    }
    shorten(&mut error);
    output::complain(error.to_string().trim_end());
    ExitCode::from(refusal::WRONG_INPUT)
}

/// Cuts typed values in the text of an error.
fn shorten(error: &mut clap::Error) {
    let typed = |value: &ContextValue| match value {
        ContextValue::String(text) => Some(ContextValue::String(shown(text))),
        ContextValue::Strings(all) => {
            Some(ContextValue::Strings(all.iter().map(|text| shown(text)).collect()))
        }
        // The other kinds are our own text: usage, suggestions, counts.
        _ => None,
    };
    let cut: Vec<(ContextKind, ContextValue)> =
        error.context().filter_map(|(kind, value)| Some((kind, typed(value)?))).collect();
    for (kind, value) in cut {
        error.insert(kind, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn the_longest_argument_is_shown_in_part() {
        // Linux hands over no longer one. Clap compares it with each name, in the square of its length.
        let long = "x".repeat((128 << 10) - 1);
        for words in [
            vec!["tharsis", "start", "--head", "--store", long.as_str()],
            vec!["tharsis", "start", "--head", long.as_str()],
            vec!["tharsis", long.as_str()],
            vec!["tharsis", "start", "--head", "--resources", long.as_str()],
        ] {
            let mut error = args::Args::try_parse_from(&words).unwrap_err();
            shorten(&mut error);
            let text = error.to_string();
            assert!(text.len() < 2000 && text.contains(&"x".repeat(190)), "{}", text.len());
        }
        let flag = format!("--{long}");
        let mut error = args::Args::try_parse_from(["tharsis", "start", &flag]).unwrap_err();
        shorten(&mut error);
        assert!(error.to_string().len() < 2000);
    }
}
