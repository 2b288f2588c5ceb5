//! Runs DataFusion's public SQL logic tests through sessions of frames, and counts.

#![forbid(unsafe_code)]
// A program for developers: its report is its output.
#![allow(clippy::print_stdout)]

use anyhow::{Context, Result};
use clap::Parser;
use std::path::{Path, PathBuf};
use tharsis_sqllogic::file;
use tharsis_sqllogic::place::{Place, Started};
use tharsis_sqllogic::report::{Outcome, Report};

/// Run DataFusion's public SQL logic tests, each file in a session of its own.
#[derive(Debug, Parser)]
struct Args {
    /// Folder that has `test_files`: `datafusion/sqllogictest` of a checkout of apache/datafusion with its
    /// submodules, or the sources of the crate `datafusion-sqllogictest`, which lack some data. Files write
    /// to `test_files/scratch` in it.
    #[arg(env = "THARSIS_SQLLOGIC")]
    folder: PathBuf,
    /// The place of tasks.
    #[arg(long, value_enum, default_value = "embedded")]
    on: Place,
    /// Only files with this text in their path.
    #[arg(long, default_value = "")]
    only: String,
    /// Do not run the files in DataFusion alone first, which tells failures of sessions from others.
    #[arg(long)]
    alone: bool,
    /// Print each record that failed.
    #[arg(long)]
    verbose: bool,
}

/// Files that ask for what only DataFusion's own runner has.
const ELSEWHERE: &[(&str, &str)] = &[
    ("spark/", "functions of another crate"),
    ("async_udf.slt", "functions of its own runner"),
    ("range_partitioning.slt", "tables of its own runner"),
    ("union_function.slt", "tables of its own runner"),
    ("dictionary_struct.slt", "tables of its own runner"),
    ("encrypted_parquet.slt", "a feature that is off"),
];
/// The state that files expect.
const SETUP: &[&str] = &["set datafusion.catalog.information_schema = false"];

#[tharsis::main]
fn main() -> Result<()> {
    let args = Args::parse();
    let folder = args.folder.canonicalize().with_context(|| args.folder.display().to_string())?;
    // Paths in the files start here; workers inherit the folder.
    std::env::set_current_dir(&folder)?;
    let started = args.on.start()?;
    let library = Place::Library.start()?;
    let (mut all, mut count) = (Report::default(), 0);
    let tests = Path::new("test_files");
    for path in file::files(tests)? {
        let name = path.strip_prefix(tests).unwrap_or(&path).to_string_lossy().into_owned();
        if !name.contains(&args.only) || name.starts_with("scratch/") {
            continue;
        }
        count += 1;
        let report = match ELSEWHERE.iter().find(|(elsewhere, _)| name.starts_with(elsewhere)) {
            Some((_, reason)) => {
                let mut report = Report::default();
                report.add(Outcome::Skipped(reason));
                report
            }
            None => {
                let beside = if args.alone { None } else { Some(run(&path, &library)?) };
                Report::of(run(&path, &started)?, beside.as_deref())
            }
        };
        println!("{name}: {report}");
        if args.verbose {
            report.details.iter().for_each(|detail| println!("    {}", detail.replace('\n', "\n    ")));
        }
        all.merge(&report);
    }
    println!("{count} files: {all}");
    Ok(())
}

fn run(path: &Path, place: &Started) -> Result<Vec<Option<Outcome>>> {
    scratch(path)?;
    file::run(path, place, SETUP)
}

/// Makes an empty folder for the files that a test writes.
fn scratch(path: &Path) -> Result<()> {
    let stem = path.file_stem().context("a file without a name")?;
    let folder = Path::new("test_files/scratch").join(stem);
    let _none = std::fs::remove_dir_all(&folder);
    Ok(std::fs::create_dir_all(folder)?)
}
