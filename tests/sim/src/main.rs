//! Runs one seed, or many, and says what happened.
//!
//! `cargo run --release -p tharsis-sim -- SEED [--seeds COUNT] [--nodes N] [--rounds N] [--sabotage NAME]
//! [--verbose]`
//!
//! With `--rounds`, the tasks so far and the size of what the nodes keep are printed for each round of work.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

use std::process::ExitCode;
use tharsis_sim::{Options, Sabotage, Violation, run, run_rounds};

fn main() -> ExitCode {
    let Some((options, count, rounds)) = parse(std::env::args().skip(1)) else {
        eprintln!(
            "usage: tharsis-sim SEED [--seeds COUNT] [--nodes N] [--rounds N] [--sabotage NAME] [--verbose]"
        );
        return ExitCode::from(2);
    };
    let (mut failed, mut longest_wait_ms) = (0_u64, 0);
    for seed in options.seed..options.seed.saturating_add(count) {
        match simulated(&Options { seed, ..options }, rounds) {
            Ok((summary, _)) if count == 1 => println!("{summary}"),
            Ok((_, wait_ms)) => longest_wait_ms = wait_ms.max(longest_wait_ms),
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

/// Runs a seed, or rounds of it. Returns what is to be said, and the longest wait.
fn simulated(options: &Options, rounds: Option<usize>) -> Result<(String, u64), Violation> {
    let Some(count) = rounds else {
        return run(options).map(|summary| (summary.to_string(), summary.longest_wait_ms));
    };
    let rounds = run_rounds(options, count)?;
    let lines: Vec<_> = rounds.iter().map(|round| format!("{} {}", round.tasks, round.chars)).collect();
    Ok((lines.join("\n"), 0))
}

fn parse(args: impl Iterator<Item = String>) -> Option<(Options, u64, Option<usize>)> {
    let mut args = args;
    let mut options = Options { seed: args.next()?.parse().ok()?, ..Options::default() };
    let (mut count, mut rounds) = (1, None);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seeds" => count = args.next()?.parse().ok()?,
            "--rounds" => rounds = Some(args.next()?.parse().ok()?),
            "--nodes" => options.nodes = Some(args.next()?.parse().ok()?),
            "--sabotage" => options.sabotage = sabotage(&args.next()?)?,
            "--verbose" => options.verbose = true,
            _ => return None,
        }
    }
    Some((options, count, rounds))
}

fn sabotage(name: &str) -> Option<Sabotage> {
    Some(match name {
        "corrupt-pull" => Sabotage::CorruptPull,
        "deny-copies" => Sabotage::DenyCopies,
        "hide-room" => Sabotage::HideRoom,
        "lose-release" => Sabotage::LoseRelease,
        "lose-run" => Sabotage::LoseRun,
        "repeat-run" => Sabotage::RepeatRun,
        "move-inside" => Sabotage::MoveInside,
        "class-each" => Sabotage::ClassEach,
        "class-per-job" => Sabotage::ClassPerJob,
        _ => return None,
    })
}
