//! Runs one seed, or many, and says what happened.
//!
//! `cargo run --release -p tharsis-sim -- SEED [--seeds COUNT] [--nodes N] [--sabotage NAME] [--verbose]`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

use std::process::ExitCode;
use tharsis_sim::{Options, Sabotage, run};

fn main() -> ExitCode {
    let Some((options, count)) = parse(std::env::args().skip(1)) else {
        eprintln!("usage: tharsis-sim SEED [--seeds COUNT] [--nodes N] [--sabotage NAME] [--verbose]");
        return ExitCode::from(2);
    };
    let (mut failed, mut longest_wait_ms) = (0_u64, 0);
    for seed in options.seed..options.seed.saturating_add(count) {
        match run(&Options { seed, ..options }) {
            Ok(summary) if count == 1 => println!("{summary}"),
            Ok(summary) => longest_wait_ms = summary.longest_wait_ms.max(longest_wait_ms),
            Err(violation) => {
                failed += 1;
                println!("seed {seed}: {violation}");
            }
        }
    }
    if 1 < count {
        println!(
            "{count} seeds, {failed} failed; nobody waited longer than {longest_wait_ms} ms for what was free"
        );
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(args: impl Iterator<Item = String>) -> Option<(Options, u64)> {
    let mut args = args;
    let mut options = Options { seed: args.next()?.parse().ok()?, ..Options::default() };
    let mut count = 1;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seeds" => count = args.next()?.parse().ok()?,
            "--nodes" => options.nodes = Some(args.next()?.parse().ok()?),
            "--sabotage" => options.sabotage = sabotage(&args.next()?)?,
            "--verbose" => options.verbose = true,
            _ => return None,
        }
    }
    Some((options, count))
}

fn sabotage(name: &str) -> Option<Sabotage> {
    Some(match name {
        "corrupt-pull" => Sabotage::CorruptPull,
        "hide-room" => Sabotage::HideRoom,
        "lose-release" => Sabotage::LoseRelease,
        "lose-run" => Sabotage::LoseRun,
        "repeat-run" => Sabotage::RepeatRun,
        "move-inside" => Sabotage::MoveInside,
        _ => return None,
    })
}
