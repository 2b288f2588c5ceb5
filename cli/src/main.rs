//! The `tharsis` command.
//!
//! `args.rs` is what can be typed, `settings/` what can also be said elsewhere, `commands/` what it does,
//! `bench/` the benchmarks. The same program is node and worker: see `tharsis::process`.

#![deny(unsafe_code)]

mod allocator;
mod args;
mod bench;
mod commands;
mod output;
mod reach;
mod refusal;
mod settings;
mod telemetry;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use settings::error::shown;
use std::process::ExitCode;
use tharsis_raylet::Program;

fn main() -> ExitCode {
    allocator::set_up();
    telemetry::log_of_node();
    tharsis::process::enter_with(command, PROGRAM)
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
    match args::Args::try_parse() {
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

/// Help goes to standard output; what is wrong with the arguments to standard error, with values of readable
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
        // No value of a flag, for which `TextParser` says it. Clap does not say which word, or not what is in
        // it.
        output::complain(&format!("error: {} is not UTF-8", shown(&format!("{word:?}"))));
        return ExitCode::from(refusal::WRONG_INPUT);
    }
    shorten(&mut error);
    output::complain(error.to_string().trim_end());
    ExitCode::from(refusal::WRONG_INPUT)
}

/// Cuts what was typed where an error repeats it.
fn shorten(error: &mut clap::Error) {
    let typed = |value: &ContextValue| match value {
        ContextValue::String(text) => Some(ContextValue::String(shown(text))),
        ContextValue::Strings(all) => {
            Some(ContextValue::Strings(all.iter().map(|text| shown(text)).collect()))
        }
        // Others are ours: usage, suggestions, counts.
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

    #[test]
    fn an_argument_of_a_mebibyte_is_shown_in_part() {
        let long = "x".repeat(1 << 20);
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
