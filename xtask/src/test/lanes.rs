//! The order of the jobs of a run, and which run side by side.
//!
//! Programs that mostly wait have a lane of their own beside those that compute, which are nicer. Jobs of
//! cargo share the lock of its target folder, so they have one lane. A few programs run alone at the end.

use super::Places;
use super::build::linting_cargo;
use super::program::{Environment, Program};
use super::report::{History, Outcome};
use super::selection::Selection;
use crate::cargo_program;
use anyhow::Result;
use std::collections::VecDeque;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

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

/// The command of a long run for the forms that users build: the engine and the command without frames,
/// tensors without object stores, and benches. In a usual run, `tools/lint-while-building` reads the crates
/// that have such a form; this one has its dependencies, too.
const FORMS: &str = "clippy --quiet --package tharsis-examples --package tharsis-numeric --package tharsis-cli \
                     --no-default-features --all-targets -- -D warnings";

/// Computing programs that run at once. Each has a thread per core.
const COMPUTING_SLOTS: usize = 1;

/// Niceness of computing programs and of cargo: the deadlines of waiting ones are short.
const NICENESS: u8 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Waiting,
    Computing,
    Cargo,
    Alone,
}

enum Work {
    Program { program: Program, arguments: Vec<String> },
    Command(Command),
}

/// A piece of a run.
pub struct Job {
    name: String,
    lane: Lane,
    round: usize,
    work: Work,
}

/// The jobs of test programs, with all rounds.
pub fn programs(programs: Vec<Program>, selection: &Selection, rounds: usize) -> Vec<Job> {
    let mut jobs = Vec::new();
    // The tests of this package ran before the build.
    let is_new = |program: &Program| program.package != "xtask" || !selection.is_everything();
    for program in programs.into_iter().filter(is_new) {
        let name = program.name();
        let lane = lane(&name);
        let rounds = if lane == Lane::Waiting { rounds } else { 1 };
        for round in 0..rounds {
            let arguments = selection.filter().map(str::to_owned).into_iter().chain(threads(&name)).collect();
            let work = Work::Program { program: program.clone(), arguments };
            jobs.push(Job { name: name.clone(), lane, round, work });
        }
    }
    jobs
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
pub fn cargo_jobs(places: &Places, selection: &Selection, is_long: bool) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    if selection.has_doc_tests(&places.root) {
        let mut command = linting_cargo(places)?;
        command.env("RUSTDOC", places.root.join("tools/rustdoc-checked"));
        command.args(["test", "--doc", "--no-fail-fast"]).args(selection.packages());
        command.args(selection.filter().map(|filter| ["--", filter]).into_iter().flatten());
        jobs.push(Job::cargo("doc tests", command));
    }
    if is_long && selection.is_everything() {
        let mut command = Command::new(cargo_program());
        command.current_dir(&places.root).args(FORMS.split(' '));
        jobs.push(Job::cargo("forms", command));
    }
    Ok(jobs)
}

/// The command, behind others by this niceness.
fn nicer(command: &Command, niceness: u8) -> Command {
    let mut nicer = Command::new("nice");
    nicer.arg(format!("-n{niceness}")).arg(command.get_program()).args(command.get_args());
    nicer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    nicer.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
    nicer
}

/// Runs all jobs, and hands on what came of each.
pub fn run(mut jobs: Vec<Job>, history: &History, environment: &Environment, mut ended: impl FnMut(Outcome)) {
    // The longest first, so that no lane is left with a long job at the end.
    jobs.sort_by(|a, b| history.seconds(&b.name).total_cmp(&history.seconds(&a.name)));
    let mut take = |lane| -> Mutex<VecDeque<Job>> {
        let (taken, left) = std::mem::take(&mut jobs).into_iter().partition(|job| job.lane == lane);
        jobs = left;
        Mutex::new(VecDeque::from_iter::<Vec<Job>>(taken))
    };
    let queues = [Lane::Waiting, Lane::Computing, Lane::Cargo, Lane::Alone].map(&mut take);
    let [waiting, computing, cargo, alone] = &queues;
    let slots = [waiting, cargo].into_iter().chain(std::iter::repeat_n(computing, COMPUTING_SLOTS));
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        for queue in slots {
            let tell = tell.clone();
            scope.spawn(move || drain(queue, environment, &tell));
        }
        drop(tell);
        told.iter().for_each(&mut ended);
    });
    let (tell, told) = channel();
    drain(alone, environment, &tell);
    drop(tell);
    told.iter().for_each(ended);
}

/// Runs the jobs of a queue one after the other.
fn drain(queue: &Mutex<VecDeque<Job>>, environment: &Environment, tell: &Sender<Outcome>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(job) = next else { return };
        // The receiver lives until all senders are gone.
        let _sent = tell.send(job.run(environment));
    }
}

impl Job {
    fn cargo(name: &str, command: Command) -> Self {
        let command = nicer(&command, NICENESS);
        Self { name: name.to_owned(), lane: Lane::Cargo, round: 0, work: Work::Command(command) }
    }

    fn run(self, environment: &Environment) -> Outcome {
        let niceness = if self.lane == Lane::Computing { NICENESS } else { 0 };
        match self.work {
            Work::Program { program, arguments } => {
                environment.run(&program, &arguments, niceness, self.round)
            }
            Work::Command(command) => environment.run_command(self.name, command, self.round),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALONE, Lane, WAITING, lane};

    #[test]
    fn programs_with_an_entry_exist() {
        for name in WAITING.iter().map(|(name, _)| name).chain(ALONE) {
            let (package, target) = name.rsplit_once('/').unwrap();
            let tests = crate::root().join(package).join("tests");
            let files = [tests.join(target).join("main.rs"), tests.join(format!("{target}.rs"))];
            assert!(files.iter().any(|file| file.exists()), "{name} is no test program");
        }
    }

    #[test]
    fn a_program_without_an_entry_computes() {
        assert_eq!(lane("kernels/lib"), Lane::Computing);
        assert_eq!(lane("tests/cluster/cluster"), Lane::Waiting);
    }
}
