//! `cargo xtask CHORE`: chores of this workspace.
//!
//! `costs` counts the instructions of tasks, calls and records, and writes the ledger that tests compare
//! with. `commits` checks the messages of commits, and `hooks` has git call it before it makes one. `fmt`
//! formats the code and its comments, or with `--check` says whether it is formatted. `protos` writes the
//! generated code of `tharsis-protos` from its .proto files; with `--check` it only says whether what is
//! checked in is what it would write. `release` builds the files of a release, and `publish` gives the crates
//! to the registry, or tries it. `test` runs the tests. It starts this program twice more: as the compiler of
//! the workspace's crates, and as the one who clears up when it is interrupted.

#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "errors are for the person who runs a chore")]

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::commits::Range;

#[derive(Parser)]
#[command(about = "Chores of this workspace")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check the messages of commits
    Commits {
        /// Commits to check, as for `git log`; without it the new ones
        range: Option<String>,
        /// Check the message in this file instead
        #[arg(long, conflicts_with = "range")]
        message: Option<PathBuf>,
        /// Check all commits since there are rules
        #[arg(long, conflicts_with_all = ["range", "message"])]
        all: bool,
    },
    /// Count what tasks, calls and records cost, and write it to the ledger
    Costs,
    /// Format the code, and break comments that are wider than it
    Fmt {
        /// Write nothing; fail if something is not formatted
        #[arg(long)]
        check: bool,
    },
    /// Have git check the message of each commit
    Hooks,
    /// Generate the Rust code of the messages
    Protos {
        /// Write nothing; fail if the code that is checked in is stale
        #[arg(long)]
        check: bool,
    },
    /// Pack the crates and build them from their packages, as the registry takes them, or upload them
    Publish(xtask::publish::Options),
    /// Build the files of a release for this machine: archives of programs, lists of their parts, sums
    Release(xtask::release::Options),
    /// Run the tests
    Test(xtask::test::Options),
    /// End what is left of a run of the tests when it has ended
    #[command(hide = true)]
    Watch {
        /// The run
        run: String,
        /// A folder to remove
        #[arg(long)]
        scratch: PathBuf,
    },
}

fn main() -> ExitCode {
    if xtask::lint::is_called() {
        return xtask::lint::run();
    }
    match run(Arguments::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the stack that the environment may ask for: the message says all.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> anyhow::Result<()> {
    match chore {
        Chore::Commits { message: Some(file), .. } => xtask::commits::check_message(&xtask::root(), &file),
        Chore::Commits { range, all, .. } => {
            let range = match &range {
                Some(range) => Range::Named(range),
                None if all => Range::All,
                None => Range::New,
            };
            xtask::commits::check(&xtask::root(), range)
        }
        Chore::Costs => xtask::costs::write(&xtask::root()),
        Chore::Fmt { check } => xtask::format::run(check),
        Chore::Hooks => xtask::commits::install_hook(&xtask::root()),
        Chore::Protos { check } => xtask::protos::run(check),
        Chore::Publish(options) => xtask::publish::run(&xtask::root(), &options),
        Chore::Release(options) => xtask::release::run(&xtask::root(), &options),
        Chore::Test(options) => xtask::test::run(&options),
        Chore::Watch { run, scratch } => {
            xtask::test::watch(&run, &scratch);
            Ok(())
        }
    }
}
