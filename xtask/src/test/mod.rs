//! `cargo xtask test`, which `./test` runs.
//!
//! 1. `gates`: format, tidy and commit subjects, in about a minute.
//! 2. `build`: one cargo command compiles everything that is tested, with lints. Another selection of
//!    packages would have other features, and would compile a part of the registry again.
//! 3. `lanes`: programs that mostly wait run beside programs that compute, with `program` for one of
//!    them.
//! 4. `report`: the seconds of each program, the slowest tests, and the totals.
//!
//! `selection` says what a pattern on the command line selects.

mod build;
mod gates;
mod lanes;
mod program;
mod report;
mod selection;

use anyhow::{Context, Result, bail};
use lanes::Job;
use report::Report;
use selection::Selection;
use std::path::PathBuf;
use std::time::Instant;

/// The arguments of the command line.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// All random cases with fresh seeds, and ten rounds of the tests that start processes
    #[arg(long)]
    long: bool,
    /// A package or its folder, then a part of the names of its tests; or only a part of names
    #[arg(value_name = "PATTERN", num_args = 0..=2)]
    pattern: Vec<String>,
}

/// The folders of a run.
struct Places {
    /// Root of the workspace.
    root: PathBuf,
    /// Cargo's target folder.
    target: PathBuf,
    /// Output of the programs of this run.
    output: PathBuf,
}

impl Places {
    fn find() -> Result<Self> {
        let root = crate::root();
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let target = if target.is_absolute() { target } else { root.join(target) };
        let output = target.join("test-output");
        if output.exists() {
            std::fs::remove_dir_all(&output).with_context(|| format!("cannot empty {}", output.display()))?;
        }
        std::fs::create_dir_all(&output).with_context(|| format!("cannot make {}", output.display()))?;
        Ok(Self { root, target, output })
    }
}

/// Runs the gates, the build and the tests; prints the report; fails if anything failed.
pub fn run(options: &Options) -> Result<()> {
    let places = Places::find()?;
    let selection = Selection::find(&places.root, &options.pattern)?;
    let mut report = Report::default();
    if selection.is_everything() {
        report.phase("gates", || gates::check(&places.root))?;
    }
    let build = report.phase("build", || build::build(&places, &selection))?;
    let rounds = if options.long { lanes::LONG_ROUNDS } else { 1 };
    let mut jobs: Vec<Job> = lanes::programs(build.programs, &selection, rounds);
    jobs.extend(lanes::cargo_jobs(&places, &selection, options.long)?);
    let start = Instant::now();
    let environment = program::Environment::of(&places, &build.libraries, options.long);
    let mut history = report::History::read(&places.target);
    lanes::run(jobs, &history, &environment, |outcome| report.add(outcome));
    report.phase_took("tests", start.elapsed());
    report.record(&mut history);
    if selection.is_everything() {
        history.write(&places.target)?;
    }
    report.print();
    if !report.is_green() {
        bail!("tests failed");
    }
    if report.is_empty() {
        bail!("no test matches {}", options.pattern.join(" "));
    }
    Ok(())
}
