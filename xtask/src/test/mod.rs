//! `cargo xtask test`, which `./test` runs.
//!
//! 1. `gates`: format, tidy and commit subjects, in about a minute.
//! 2. `build`: one cargo command compiles everything that is tested, with lints. Another selection of
//!    packages would have other features, and would compile a part of the registry again.
//! 3. `lanes`: programs that mostly wait run beside programs that compute, from the moment that cargo has
//!    linked them and what they start (`order`), with `program` for one of them.
//! 4. `report`: the seconds of each program, the slowest tests, and the totals.
//!
//! `toolchain` asks for the release of Rust that lints and recorded messages are of.
//! `selection` says what a pattern on the command line selects, of what `workspace` says that there is.
//! `lock` keeps a second run out of the target folder, `sweep` removes there what is of no use any more, and
//! `processes` leaves none behind.

#![allow(clippy::print_stderr, reason = "what did not work is for the person who runs the tests")]

mod build;
mod debian;
mod gates;
mod lanes;
mod lock;
mod order;
mod processes;
mod program;
mod report;
mod seeds;
mod selection;
mod sweep;
mod toolchain;
mod workspace;

use crate::lint;
use anyhow::{Context, Result, bail};
use lanes::Schedule;
use lock::Lock;
use order::Order;
use processes::Run;
use program::{Environment, Phase, Program};
use report::{History, Report};
use seeds::Seeds;
use selection::Selection;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Instant;
use sweep::Named;
use workspace::Workspace;

pub use debian::NEEDED;
pub use processes::watch;
pub use selection::UNIFIED;
pub use toolchain::RELEASE;

/// The end of `./test --help`: examples and costs.
const COSTS: &str = "\
./test                       everything: format, conventions, lints, all tests
./test dataframe [PART]      the tests of a package, by folder or name, or of these those whose names contain PART
./test PART                  the tests of all packages whose names contain PART
./test --long numeric        a part of a long run; --forms is the one that is of no package

On two cores a first run of everything takes about half an hour, most of it for the compiler, and 15 GB of disk; a later one
compiles what changed and takes about 13 minutes. What the selected tests need is installed from Debian's packages if it is missing:
etcd, an ssh server, valgrind. CONTRIBUTING.md has the rest.";

/// The arguments of the command line.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(override_usage = "./test [--long | --forms] [--sweep] [PACKAGE] [PART]", after_help = COSTS)]
pub struct Options {
    /// All random cases with fresh seeds, and ten rounds of the tests that start processes
    #[arg(long)]
    long: bool,
    /// Of a long run only the lints and tests of the forms without features, and of benches
    #[arg(long, conflicts_with_all = ["long", "pattern"])]
    forms: bool,
    /// Remove from the target folder what this run did not need (has no effect with --long, --forms or a
    /// pattern)
    #[arg(long)]
    sweep: bool,
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
    /// The compiler that lints.
    compiler: PathBuf,
}

impl Places {
    /// The places of a run, which has the lock of the target folder.
    fn make(root: PathBuf, workspace: &Workspace) -> Result<Self> {
        let target = workspace.target.clone();
        let output = target.join("test-output");
        if output.exists() {
            std::fs::remove_dir_all(&output).with_context(|| format!("cannot empty {}", output.display()))?;
        }
        std::fs::create_dir_all(&output).with_context(|| format!("cannot make {}", output.display()))?;
        let folders: Vec<&str> = workspace.packages.iter().map(|package| &*package.folder).collect();
        let compiler = lint::install(&root, &target, &folders)?;
        Ok(Self { root, target, output, compiler })
    }
}

/// Runs the gates, the build and the tests; prints the report; fails if anything failed.
pub fn run(options: &Options) -> Result<()> {
    let root = crate::root();
    let seeds = Seeds::find(options.long || options.forms, &root)?;
    let workspace = Workspace::read(&root)?;
    let selection = if options.forms {
        Selection::forms()
    } else {
        Selection::find(&workspace.packages, &options.pattern)?
    };
    selection.check_in(&workspace.packages, || crate::files_of_names(&root))?;
    toolchain::check(&selection, &build::toolchain()?)?;
    debian::install_for(&selection)?;
    let lock = Lock::take(&workspace.target)?;
    let places = Places::make(root, &workspace)?;
    // Its own file may have been replaced by a build.
    let mut watcher = Command::new("/proc/self/exe");
    watcher.arg("watch");
    let run = Run::begin(watcher, &places.target.join(lint::SCRATCH), &lock)?;
    let mut report = Report::default();
    if selection.is_everything() {
        report.phase("gates", || gates::check(&places.root, &workspace.packages, &run))?;
    }
    let mut history = History::read(&places.target);
    let environment = Environment::of(&places, &run, &build::libraries(&places)?, seeds);
    let tests = Tests {
        places: &places,
        workspace: &workspace,
        selection: &selection,
        environment: &environment,
        history: &history,
    };
    let named = tests.build_and_run(&mut report)?;
    let mut is_swept = false;
    if options.sweep && !options.long && selection.is_everything() {
        // The tests are not worse for it.
        match report.phase("sweep", || sweep_up(&places, &run, named)) {
            Ok(()) => is_swept = true,
            Err(error) => eprintln!("the target folder keeps what this run did not need: {error:#}"),
        }
    }
    if selection.is_everything() {
        // Only a folder that was swept has nothing but what the run needs.
        match sweep::bytes(&places.target) {
            Ok(bytes) => report.takes(bytes, is_swept),
            Err(error) => eprintln!("the size of the target folder is not known: {error:#}"),
        }
    }
    report.record(&mut history);
    report.print(environment.seeds());
    // After the report, which a full disk must not take.
    if selection.is_everything()
        && let Err(error) = history.write(&places.target)
    {
        eprintln!("the next run does not know which programs are slow: {error:#}");
    }
    if !report.is_green() {
        bail!("tests failed");
    }
    // A package may have no tests; then its lints were asked for.
    if report.is_empty() && !selection.is_whole() {
        bail!("no test matches {}", options.pattern.join(" "));
    }
    Ok(())
}

/// The tests of a run.
struct Tests<'a> {
    places: &'a Places,
    workspace: &'a Workspace,
    selection: &'a Selection,
    environment: &'a Environment<'a>,
    history: &'a History,
}

impl Tests<'_> {
    /// Compiles the tests, and runs each as soon as its lane is free. Answers what cargo has named.
    fn build_and_run(&self, report: &mut Report) -> Result<Named> {
        let schedule = Schedule::new(self.history);
        let (tell, told) = channel();
        let (start, mut messages) = (Instant::now(), Vec::new());
        let (built, mut named) = std::thread::scope(|scope| {
            let compiling = scope.spawn(|| {
                // If this panics, no lane waits for more, and limits count.
                let _stopped = schedule.stopped_at_a_panic();
                let _failed = self.environment.failed_at_a_panic();
                let built = self.compile(&schedule);
                match &built {
                    Ok((at, _)) => {
                        self.environment.enter(Phase::Built(*at));
                        schedule.complete();
                    }
                    Err(_) => {
                        schedule.stop();
                        self.environment.enter(Phase::Failed);
                    }
                }
                built
            });
            let (schedule, environment) = (&schedule, self.environment);
            // With it goes the last sender.
            scope.spawn(move || schedule.run(environment, &tell));
            for outcome in told {
                // A program that is ended because the build failed must not hide why that failed.
                if environment.phase() != Phase::Failed {
                    messages.push(report.add(outcome));
                }
            }
            compiling.join().unwrap_or_else(|_| bail!("the build was lost"))
        })?;
        for of_one in messages.iter().filter(|of_one| !of_one.is_empty()) {
            named.begin();
            of_one.iter().for_each(|message| named.hear(message));
        }
        report.phase_took("build, with the first tests", built - start);
        report.phase_took("tests after the build", built.elapsed());
        Ok(named)
    }

    /// Compiles the tests, and hands in the jobs of each. Answers when that was done, and what cargo has
    /// named.
    fn compile(&self, schedule: &Schedule<'_>) -> Result<(Instant, Named)> {
        let (run, is_long) = (self.environment.processes(), self.environment.seeds().is_long());
        let rounds = if is_long { lanes::LONG_ROUNDS } else { 1 };
        let (mut named, mut programs) = (Named::default(), BTreeSet::new());
        let cargo_jobs = || lanes::cargo_jobs(self.places, &self.workspace.packages, self.selection, is_long);
        if self.selection.is_forms() {
            // Each command has a build of its own.
            schedule.add(cargo_jobs()?);
            return Ok((Instant::now(), named));
        }
        let made = |program: &Program| {
            programs.insert(program.name());
            schedule.add(lanes::jobs_of(program, self.selection, rounds));
        };
        named.begin();
        let order = Order::of(&self.workspace.packages);
        build::build(self.places, run, self.selection, order, made, |message| named.hear(message))?;
        let not_built = lanes::not_built(&self.workspace.packages, self.selection, &programs);
        if !not_built.is_empty() {
            bail!("cargo has not built these programs of tests: {}", not_built.join(", "));
        }
        let of_none = lanes::names_of_none(&programs);
        if self.selection.is_everything() && !of_none.is_empty() {
            bail!("lists of xtask/src/test/lanes.rs have names of no program: {}", of_none.join(", "));
        }
        schedule.add(cargo_jobs()?);
        Ok((Instant::now(), named))
    }
}

/// Removes what no command of the run has named, and what long runs have left. The gates have built this
/// package in another way.
fn sweep_up(places: &Places, run: &Run, mut named: Named) -> Result<()> {
    for words in [&["test", "--no-run"][..], &["build"]] {
        let mut cargo = crate::cargo();
        cargo.current_dir(&places.root).args(words).args(["--quiet", "--package", "xtask"]);
        named.begin();
        build::messages(run, cargo, |message| named.hear(message))?;
    }
    named.sweep(&places.target.join("debug"))?;
    sweep::remove_of_long_runs(&places.target)
}
