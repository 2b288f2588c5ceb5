//! The order of the jobs of a run, and which run side by side.
//!
//! Programs that mostly wait have a lane of their own beside those that compute, which are nicer. Both lanes
//! begin while the build goes on, with the programs that are there: the compiler is as nice as a program that
//! computes, and leaves processors idle at its end. Jobs of cargo share the lock of its target folder, so
//! they have one lane, after the build. A few programs run alone at the end.

use super::Places;
use super::build::linting_cargo;
use super::processes::{NICENESS, nicer};
use super::program::{Environment, Phase, Program, untested};
use super::report::{History, Outcome};
use super::selection::Selection;
use super::workspace::{LIBRARY, Package};
use crate::cargo;
use anyhow::Result;
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Rounds of programs that start processes in a long run.
pub const LONG_ROUNDS: usize = 10;

/// Programs that mostly wait, for leases, for processes, for timers, and the threads of their tests. Those
/// that start clusters choose a number themselves.
const WAITING: &[(&str, Option<usize>)] = &[
    ("cli/command", Some(4)),
    ("cli/driver", None),
    ("examples/frames/frames", None),
    ("tests/cluster/cluster", None),
    ("tests/conformance/conformance", Some(6)),
    ("tests/scenarios/scenarios", Some(3)),
];

/// Programs that run alone: they compare times, or have deadlines that a busy machine does not keep.
const ALONE: &[&str] = &["core/scale", "core/throughput", "remote/remote"];

/// Further programs that start processes, or kill them: they have all rounds of a long run as well.
const IN_ROUNDS: &[&str] = &[
    "examples/frames/places",
    "examples/places",
    "learn/examples/kills",
    "learn/examples/places",
    "object-store/process_death",
    "object-store/spill_death",
    "raylet/process_1",
    "remote/remote",
];

/// Programs that start files which cargo makes beside them and does not make for them: examples. They begin
/// when the build is done. The programs of a test's own package are there before the test is.
const AFTER_BUILD: &[&str] = &["examples/frames/places", "examples/places", "learn/examples/places"];

/// Commands of a long run for the forms that users build: the engine and the command without frames, tensors
/// without object stores, and benches; what the README has one build, each alone, since cargo gives a crate
/// the features that any package of a command asks for; then the tests of what is refused without dense
/// linear algebra. In a usual run, `xtask::lint` reads the crates that have such a form; these have its
/// dependencies, too.
const FORMS: &[(&str, &str)] = &[
    (
        "forms",
        "clippy --quiet --package tharsis-examples --package tharsis-numeric --package tharsis-learn \
         --package tharsis-cli --no-default-features --all-targets -- -D warnings",
    ),
    ("the first example", "check --quiet --example pi"),
    ("the command", "check --quiet --package tharsis-cli"),
    ("the command for nodes", "check --quiet --package tharsis-cli --no-default-features"),
    ("kernels without dense", "test --quiet --package tharsis-kernels --no-default-features --lib not_built"),
    (
        "numeric without dense",
        "test --quiet --package tharsis-numeric --no-default-features --test numeric without_dense",
    ),
];

/// Computing programs that run at once. Each has a thread per core.
const COMPUTING_SLOTS: usize = 1;

/// Niceness of computing programs that begin while the build goes on: they take what it leaves.
const NICENESS_BESIDE_BUILD: u8 = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Waiting,
    Computing,
    Cargo,
    Alone,
}

/// Lanes side by side. Programs that run alone come after all of them.
const BESIDE: [Lane; 3] = [Lane::Waiting, Lane::Cargo, Lane::Computing];

enum Work {
    Program {
        program: Program,
        arguments: Vec<String>,
    },
    /// A command of cargo, and the libraries whose documentation it must have tested.
    Command {
        command: Command,
        documented: BTreeSet<String>,
    },
}

/// A piece of a run.
pub struct Job {
    name: String,
    lane: Lane,
    round: usize,
    work: Work,
}

/// The jobs of a test program, with all rounds.
pub fn jobs_of(program: &Program, selection: &Selection, rounds: usize) -> Vec<Job> {
    // The tests of this package ran before the build.
    if program.package == "xtask" && selection.is_everything() {
        return Vec::new();
    }
    let name = program.name();
    let lane = lane(&name);
    let job = |round| {
        let arguments = selection.filter().map(str::to_owned).into_iter().chain(threads(&name)).collect();
        let work = Work::Program { program: program.clone(), arguments };
        Job { name: name.clone(), lane, round, work }
    };
    let has_rounds = lane == Lane::Waiting || IN_ROUNDS.contains(&&*name);
    (0..if has_rounds { rounds } else { 1 }).map(job).collect()
}

/// Names on the lists above that no program of a whole run has. A list with such a name says of some program
/// that it runs in a way in which it does not.
pub fn names_of_none(programs: &BTreeSet<String>) -> Vec<&'static str> {
    let waiting = WAITING.iter().map(|(name, _)| name);
    let listed: BTreeSet<&str> = waiting.chain(ALONE).chain(AFTER_BUILD).chain(IN_ROUNDS).copied().collect();
    listed.into_iter().filter(|name| !programs.contains(*name)).collect()
}

/// The test programs of selected packages that were not built. Cargo leaves out those whose
/// `required-features` nobody asks for, and does not say so.
pub fn not_built(packages: &[Package], selection: &Selection, programs: &BTreeSet<String>) -> Vec<String> {
    let selected = packages.iter().filter(|package| selection.may_be_in(&package.folder));
    let names = selected.flat_map(|package| {
        let tests = package.tests.iter().filter(|test| *test != LIBRARY);
        tests.map(move |test| format!("{}/{test}", package.folder))
    });
    names.filter(|name| !programs.contains(name)).collect()
}

fn lane(name: &str) -> Lane {
    if WAITING.iter().any(|(waiting, _)| *waiting == name) {
        Lane::Waiting
    } else if ALONE.contains(&name) {
        Lane::Alone
    } else {
        Lane::Computing
    }
}

/// The argument that sets the threads of a program's tests.
fn threads(name: &str) -> Option<String> {
    let (_, threads) = WAITING.iter().find(|(waiting, _)| *waiting == name)?;
    threads.map(|threads| format!("--test-threads={threads}"))
}

/// The jobs that are commands of cargo: what the one build does not compile.
pub fn cargo_jobs(
    places: &Places,
    packages: &[Package],
    selection: &Selection,
    is_long: bool,
) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    let documented = selection.documented(packages);
    if !documented.is_empty() {
        let mut command = linting_cargo(places)?;
        command.env("RUSTDOC", places.root.join("tools/rustdoc-checked"));
        command.args(["test", "--doc", "--no-fail-fast", "--message-format=json-render-diagnostics"]);
        command.args(selection.packages());
        command.args(selection.filter().map(|filter| ["--", filter]).into_iter().flatten());
        jobs.push(Job::cargo("doc tests", command, documented));
    }
    if is_long && (selection.is_everything() || selection.is_forms()) {
        for (name, words) in FORMS {
            let mut command = cargo();
            command.current_dir(&places.root).args(words.split_whitespace());
            jobs.push(Job::cargo(name, command, BTreeSet::new()));
        }
    }
    Ok(jobs)
}

/// The jobs that wait for their turn. Some are handed in while others run.
pub struct Schedule<'a> {
    history: &'a History,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: Vec<Job>,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// More jobs may come.
    #[default]
    Open,
    /// All jobs are there.
    Complete,
    /// No job begins any more.
    Stopped,
}

impl<'a> Schedule<'a> {
    /// A schedule without jobs. Those that took longest before come first, so that no lane is left with a
    /// long job at the end.
    pub fn new(history: &'a History) -> Self {
        Self { history, waiting: Mutex::default(), changed: Condvar::new() }
    }

    /// Hands in jobs, which may begin at once.
    pub fn add(&self, jobs: Vec<Job>) {
        self.lock().jobs.extend(jobs);
        self.changed.notify_all();
    }

    /// Tells that all jobs are there, because the build is done.
    pub fn complete(&self) {
        self.lock().state = State::Complete;
        self.changed.notify_all();
    }

    /// Drops the jobs that have not begun.
    pub fn stop(&self) {
        self.lock().state = State::Stopped;
        self.changed.notify_all();
    }

    /// A value that drops the jobs which have not begun, if it goes because its thread panics.
    pub fn stopped_at_a_panic(&self) -> impl Drop {
        struct Stop<'a, 'b>(&'a Schedule<'b>);
        impl Drop for Stop<'_, '_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.stop();
                }
            }
        }
        Stop(self)
    }

    /// Runs all jobs, until there will be no more, and hands on what came of each.
    pub fn run(&self, environment: &Environment<'_>, tell: &Sender<Outcome>) {
        std::thread::scope(|scope| {
            for lane in BESIDE {
                let slots = if lane == Lane::Computing { COMPUTING_SLOTS } else { 1 };
                for _ in 0..slots {
                    let tell = tell.clone();
                    scope.spawn(move || self.drain(lane, environment, &tell));
                }
            }
        });
        self.drain(Lane::Alone, environment, tell);
    }

    /// Runs the jobs of a lane one after the other.
    fn drain(&self, lane: Lane, environment: &Environment<'_>, tell: &Sender<Outcome>) {
        while let Some(job) = self.next(lane) {
            // The receiver lives until all senders are gone.
            let _sent = tell.send(job.run(environment));
        }
    }

    /// The next job of a lane, as soon as there is one; none if there will be none.
    fn next(&self, lane: Lane) -> Option<Job> {
        let mut waiting = self.lock();
        loop {
            if waiting.state == State::Stopped {
                return None;
            }
            let is_complete = waiting.state == State::Complete;
            let may_begin = |job: &Job| job.lane == lane && (is_complete || !job.needs_the_build());
            let ready = waiting.jobs.iter().enumerate().filter(|(_, job)| may_begin(job));
            let seconds = |job: &Job| self.history.seconds(&job.name);
            let longest = ready.max_by(|(_, a), (_, b)| seconds(a).total_cmp(&seconds(b)));
            if let Some((at, _)) = longest {
                return Some(waiting.jobs.swap_remove(at));
            }
            if is_complete {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn cargo(name: &str, command: Command, documented: BTreeSet<String>) -> Self {
        let work = Work::Command { command: nicer(&command, NICENESS), documented };
        Self { name: name.to_owned(), lane: Lane::Cargo, round: 0, work }
    }

    /// Whether it cannot begin while the build goes on.
    fn needs_the_build(&self) -> bool {
        matches!(self.lane, Lane::Cargo | Lane::Alone) || AFTER_BUILD.contains(&&*self.name)
    }

    fn run(self, environment: &Environment<'_>) -> Outcome {
        let niceness = match (self.lane, environment.phase()) {
            (Lane::Computing, Phase::Building) => NICENESS_BESIDE_BUILD,
            (Lane::Computing, _) => NICENESS,
            _ => 0,
        };
        match self.work {
            Work::Program { program, arguments } => {
                environment.run(&program, &arguments, niceness, self.round)
            }
            Work::Command { command, documented } => {
                let outcome = environment.run_command(self.name, command, self.round).with_messages();
                let missing = untested(&outcome.text, &documented);
                let problem = || format!("no result of the documentation of {}", missing.join(", "));
                if missing.is_empty() { outcome } else { outcome.failed(&problem()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    /// The test programs of the tree but for unit tests, by the files that they begin with.
    fn programs() -> BTreeSet<String> {
        let root = crate::root();
        let sources = crate::sources(&root).unwrap();
        let names = sources.keys().filter_map(|path| {
            let file = path.strip_prefix(&root).unwrap().to_str()?;
            let (package, inner) =
                file.split_once("/tests/").filter(|(_, inner)| !inner.contains("/tests/"))?;
            let target = inner.strip_suffix("/main.rs").or_else(|| inner.strip_suffix(".rs"))?;
            (!target.contains('/')).then(|| format!("{package}/{target}"))
        });
        names.collect()
    }

    #[test]
    fn each_listed_name_is_that_of_a_program_and_in_one_lane() {
        let programs = programs();
        assert!(programs.contains("tests/cluster/cluster") && programs.contains("core/scale"));
        assert_eq!(names_of_none(&programs), Vec::<&str>::new());
        let listed: Vec<&str> =
            WAITING.iter().map(|(name, _)| name).chain(ALONE).chain(AFTER_BUILD).copied().collect();
        assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), listed.len(), "one twice: {listed:?}");
    }

    #[test]
    fn a_listed_name_that_no_program_has_is_found() {
        let mut programs = programs();
        assert!(programs.remove("remote/remote") && programs.remove("examples/places"));
        assert_eq!(names_of_none(&programs), ["examples/places", "remote/remote"]);
    }

    #[test]
    fn a_test_program_that_is_not_built_is_found() {
        let package = |folder: &str, tests: &[&str]| Package {
            name: format!("tharsis-{folder}"),
            folder: folder.to_owned(),
            programs: BTreeSet::new(),
            tests: tests.iter().map(|name| (*name).to_owned()).collect(),
            documented: None,
        };
        let packages = [package("core", &["lib", "scale"]), package("gcs", &["lib"]), package("dense", &[])];
        let built = BTreeSet::from(["core/lib", "core/scale", "gcs/lib"].map(str::to_owned));
        let everything = Selection::everything();
        assert_eq!(not_built(&packages, &everything, &built), Vec::<String>::new());
        assert_eq!(not_built(&packages, &everything, &BTreeSet::new()), ["core/scale"]);
        let dense = Selection::find(&packages, &["dense".to_owned()]).unwrap();
        assert_eq!(not_built(&packages, &dense, &BTreeSet::new()), Vec::<String>::new());
    }

    #[test]
    fn programs_that_choose_their_threads_are_those_of_trials_in_turn_or_beside_each_other() {
        let root = crate::root();
        let mut found = BTreeSet::new();
        for (path, text) in crate::sources(&root).unwrap() {
            let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let chooses = text.contains("run_in_turn(") || text.contains("run_beside(");
            if !chooses || ["tests/trials/", "xtask/"].iter().any(|folder| file.starts_with(folder)) {
                continue;
            }
            // A library does it for all programs of its package.
            let (package, target) = match file.split_once("/src/") {
                Some((package, _)) => (package, None),
                None => file.rsplit_once("/tests/").map(|(package, inner)| (package, Some(inner))).unwrap(),
            };
            let is_meant = |name: &&String| {
                let (of, its) = name.rsplit_once('/').unwrap();
                of == package && target.is_none_or(|inner| inner.starts_with(its))
            };
            found.extend(programs().iter().filter(is_meant).cloned());
        }
        let listed = WAITING.iter().filter(|(_, threads)| threads.is_none());
        assert_eq!(found, listed.map(|(name, _)| (*name).to_owned()).collect());
    }

    #[test]
    fn forms_are_commands_of_packages_and_tests_that_exist() {
        let sources = crate::sources(&crate::root()).unwrap();
        for (name, words) in FORMS.iter().filter(|(_, words)| words.starts_with("test ")) {
            // A filter that no test has would pass without a test.
            let filter = words.split_whitespace().last().unwrap();
            let file = format!("{filter}.rs");
            let found = sources.iter().find(|(path, _)| path.file_name().is_some_and(|name| *name == *file));
            assert!(found.is_some_and(|(_, text)| text.contains("#[test]")), "{name} has no {file}");
        }
    }

    #[test]
    fn each_build_of_the_readme_is_a_form_alone() {
        let page = std::fs::read_to_string(crate::root().join("README.md")).unwrap();
        let built = [
            ("\ncargo run --release --example pi ", "check --quiet --example pi"),
            ("\ncargo build --release -p tharsis-cli ", "check --quiet --package tharsis-cli"),
            ("with --no-default-features", "check --quiet --package tharsis-cli --no-default-features"),
        ];
        for (build, form) in built {
            assert!(page.contains(build), "{build} is not on the page");
            assert!(FORMS.iter().any(|(_, words)| *words == form), "nothing compiles {build}");
        }
        let builds = page.lines().filter(|line| line.starts_with("cargo ")).count();
        assert_eq!(builds, 2, "another build of the page has no form");
    }

    #[test]
    fn programs_that_start_examples_begin_after_the_build() {
        let root = crate::root();
        let mut found = BTreeSet::new();
        for (path, text) in crate::sources(&root).unwrap() {
            let file = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            if let Some((package, test)) = file.rsplit_once("/tests/")
                && text.contains("current_exe()")
                && text.contains("join(\"examples\")")
            {
                found.insert(format!("{package}/{}", test.trim_end_matches(".rs")));
            }
        }
        assert_eq!(found, AFTER_BUILD.iter().map(|name| (*name).to_owned()).collect());
    }

    #[test]
    fn a_long_run_repeats_what_starts_processes() {
        let rounds = |name: &str| jobs_of(&program(name), &Selection::everything(), LONG_ROUNDS).len();
        assert_eq!(rounds("tests/cluster/cluster"), LONG_ROUNDS);
        assert_eq!(rounds("raylet/process_1"), LONG_ROUNDS);
        assert_eq!(rounds("core/lib"), 1);
    }

    #[test]
    fn a_program_without_an_entry_computes() {
        assert_eq!(lane("kernels/lib"), Lane::Computing);
        assert_eq!(lane("tests/cluster/cluster"), Lane::Waiting);
    }

    fn program(name: &str) -> Program {
        let (package, target) = name.rsplit_once('/').unwrap();
        let (package, target) = (package.to_owned(), target.to_owned());
        Program { package, target, file: PathBuf::new(), manifest: PathBuf::new() }
    }

    fn job(name: &str) -> Job {
        jobs_of(&program(name), &Selection::everything(), 1).pop().unwrap()
    }

    fn next(schedule: &Schedule<'_>, lane: Lane) -> Option<String> {
        schedule.next(lane).map(|job| job.name)
    }

    #[test]
    fn the_longest_ready_job_of_a_lane_is_next() {
        let history = History::of(&[("core/lib", 2.0), ("gcs/lib", 3.0), ("examples/places", 40.0)]);
        let schedule = Schedule::new(&history);
        schedule.add(["core/lib", "examples/places", "gcs/lib", "tests/cluster/cluster"].map(job).into());
        assert_eq!(next(&schedule, Lane::Computing).as_deref(), Some("gcs/lib"));
        schedule.complete();
        assert_eq!(next(&schedule, Lane::Computing).as_deref(), Some("examples/places"));
        assert_eq!(next(&schedule, Lane::Computing).as_deref(), Some("core/lib"));
        assert_eq!(next(&schedule, Lane::Computing), None);
        assert_eq!(next(&schedule, Lane::Waiting).as_deref(), Some("tests/cluster/cluster"));
    }

    #[test]
    fn what_needs_the_build_waits_for_its_end() {
        let history = History::default();
        let schedule = Schedule::new(&history);
        schedule.add(["examples/places", "core/scale"].map(job).into());
        let cargo = Job::cargo("doc tests", Command::new("true"), BTreeSet::new());
        schedule.add(vec![cargo]);
        assert!(schedule.lock().jobs.iter().all(Job::needs_the_build));
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for lane in [Lane::Computing, Lane::Cargo, Lane::Alone] {
                let (tell, schedule) = (tell.clone(), &schedule);
                scope.spawn(move || tell.send(next(schedule, lane)).unwrap());
            }
            tell.send(Some("the end of the build".to_owned())).unwrap();
            schedule.complete();
        });
        drop(tell);
        let order: Vec<_> = told.iter().flatten().collect();
        assert_eq!(order[0], "the end of the build");
        assert_eq!(BTreeSet::from_iter(&order[1..]).len(), 3, "{order:?}");
    }

    #[test]
    fn nothing_begins_after_a_build_that_failed() {
        let history = History::default();
        let schedule = Schedule::new(&history);
        schedule.add(vec![job("core/lib")]);
        schedule.stop();
        assert_eq!(next(&schedule, Lane::Computing), None);
    }
}
