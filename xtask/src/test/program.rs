//! One test program: how it is started, and what it says.

use super::Places;
use super::processes::{LOOK, Run};
use super::report::{Outcome, Tests};
use super::seeds::Seeds;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest time of a program in a usual run. One that still runs then hangs.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// Longest time of a program in a long run.
const LONG_LIMIT: Duration = Duration::from_secs(4 * 60 * 60);
/// Longest time in which a program says which options it has, in seconds. One with a `main` of its own may
/// not know the question.
const HELP_SECONDS_MAX: &str = "60";

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Folder of its package below the root.
    pub package: String,
    /// Name of the target; `lib` or `bin` for the unit tests of one.
    pub target: String,
    /// The program's file.
    pub file: PathBuf,
    /// Folder of the package's manifest, where the program runs.
    pub manifest: PathBuf,
}

impl Program {
    /// A name for people: `tests/cluster/cluster`, `core/lib`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.package, self.target)
    }

    /// Whether these are the unit tests of a library or a command, which start no other program of the
    /// package.
    pub fn is_unit_tests(&self) -> bool {
        matches!(&*self.target, "lib" | "bin" | "proc-macro")
    }

    /// The reason why what a program printed that ended well is no success, if it ran all of its tests.
    fn shortfall(&self, outcome: &Outcome, is_whole: bool) -> Option<&'static str> {
        let Tests { passed, failed, ignored, .. } = outcome.tests;
        let is_empty = is_whole && !self.is_unit_tests() && passed + failed + ignored == 0;
        // A list of tests that is made when the program runs may have lost all of them.
        incomplete(&outcome.text).or(is_empty.then_some("the program has no test"))
    }
}

/// The settings that all programs of a run share.
pub struct Environment<'a> {
    run: &'a Run,
    output: PathBuf,
    libraries: OsString,
    seeds: Seeds,
    limit: Duration,
    phase: Mutex<Phase>,
}

/// The state of the build beside which programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The compiler takes the processors, so no limit counts.
    Building,
    /// It was done at this time.
    Built(Instant),
    /// It failed: what runs is ended.
    Failed,
}

/// The end of a program.
#[derive(Debug)]
enum End {
    Ended(ExitStatus),
    /// It ran too long.
    TooLong,
    /// It was not waited for.
    Stopped,
}

impl<'a> Environment<'a> {
    /// The environment of a run; the folders of shared libraries come before the user's.
    pub fn of(places: &Places, run: &'a Run, libraries: &[PathBuf], seeds: Seeds) -> Self {
        let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = libraries.iter().cloned().chain(std::env::split_paths(&given));
        let libraries = std::env::join_paths(folders).unwrap_or(given);
        let limit = if seeds.is_long() { LONG_LIMIT } else { LIMIT };
        let phase = Mutex::new(Phase::Building);
        Self { run, output: places.output.clone(), libraries, seeds, limit, phase }
    }

    /// The run whose processes the programs are.
    pub fn processes(&self) -> &'a Run {
        self.run
    }

    /// The seeds of random tests.
    pub fn seeds(&self) -> &Seeds {
        &self.seeds
    }

    /// Tells that the build is done, or has failed.
    pub fn enter(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    /// A value that tells that the build has failed, if it goes because its thread panics.
    pub fn failed_at_a_panic(&self) -> impl Drop {
        struct Failed<'a, 'b>(&'a Environment<'b>);
        impl Drop for Failed<'_, '_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.enter(Phase::Failed);
                }
            }
        }
        Failed(self)
    }

    /// The state of the build.
    pub fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file for the output of a job.
    fn output_file(&self, name: &str, round: usize, ending: &str) -> PathBuf {
        self.output.join(format!("{}.{round}.{ending}", name.replace(['/', ' '], "-")))
    }

    /// Runs a test program, with `niceness` behind other programs.
    pub fn run(&self, program: &Program, arguments: &[String], niceness: u8, round: usize) -> Outcome {
        let name = program.name();
        let is_whole = arguments.iter().all(|argument| argument.starts_with('-'));
        let seconds = self.output_file(&name, round, "seconds");
        let mut command = Command::new("nice");
        command
            .arg(format!("-n{niceness}"))
            .arg(&program.file)
            .args(arguments)
            .current_dir(&program.manifest);
        command.env("CARGO_MANIFEST_DIR", &program.manifest).env("LD_LIBRARY_PATH", &self.libraries);
        command.env("THARSIS_TEST_SECONDS", &seconds);
        self.seeds.set(&mut command);
        let help = self.output_file(&name, round, "help");
        if has_times(&program.file, &self.libraries, &help) {
            // The times of single tests are an unstable option of the standard harness.
            command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time"]);
        }
        let mut outcome = self.run_command(name, command, round);
        if outcome.is_green
            && let Some(problem) = program.shortfall(&outcome, is_whole)
        {
            outcome = outcome.failed(problem);
        }
        let trials = std::fs::read_to_string(seconds).unwrap_or_default();
        outcome.tests.add_trials(&trials);
        outcome
    }

    /// Runs a command to its end, with its output in a file.
    pub fn run_command(&self, name: String, mut command: Command, round: usize) -> Outcome {
        let output = self.output_file(&name, round, "txt");
        let start = Instant::now();
        let mut processor = Duration::ZERO;
        let ended = self.run_to_end(&mut command, &output, start, &mut processor);
        let mut text = String::from_utf8_lossy(&std::fs::read(&output).unwrap_or_default()).into_owned();
        let failure = match ended {
            Ok(End::Ended(status)) if status.success() => None,
            Ok(End::Ended(status)) => Some(status.to_string()),
            Ok(End::TooLong) => {
                Some(format!("still running after {} s, so it was ended", self.limit.as_secs()))
            }
            Ok(End::Stopped) => Some("ended, because the build failed".to_owned()),
            Err(error) => Some(format!("could not be run: {error}")),
        };
        if let Some(failure) = &failure {
            text.push_str(&format!("\n{name}: {failure}\n"));
        }
        let tests = Tests::read(&text);
        let (took, is_green) = (start.elapsed(), failure.is_none());
        Outcome { name, took, processor, tests, is_green, text, messages: Vec::new() }
    }

    /// Runs a command until it ends, has run too long or is not wanted any more. `processor` gets its
    /// processor time.
    fn run_to_end(
        &self,
        command: &mut Command,
        output: &Path,
        start: Instant,
        processor: &mut Duration,
    ) -> std::io::Result<End> {
        let file = File::create(output)?;
        let job = self.run.start(command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file))?;
        loop {
            let has_ended = job.has_ended()?;
            // Before the job is taken from the process table, which ends the account.
            *processor = processor_time(job.id()).unwrap_or(*processor);
            let phase = self.phase();
            let end = match phase {
                _ if has_ended => return job.end().map(End::Ended),
                Phase::Failed => End::Stopped,
                Phase::Built(at) if at.max(start) + self.limit <= Instant::now() => End::TooLong,
                Phase::Building | Phase::Built(_) => {
                    std::thread::sleep(LOOK);
                    continue;
                }
            };
            job.end()?;
            return Ok(end);
        }
    }
}

/// Processor time of a process and of its children that have ended, as far as Linux tells it.
fn processor_time(process: u32) -> Option<Duration> {
    let account = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may have spaces. See proc_pid_stat(5).
    let (_, fields) = account.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().ok());
    let ticks = ticks.sum::<Option<u64>>()?;
    // Linux counts in hundredths of a second here on every platform.
    Some(Duration::from_millis(ticks * 10))
}

/// The reason why a program that ended well has not run its tests. A test that ends the process ends it well;
/// a program may have several lists of tests.
fn incomplete(text: &str) -> Option<&'static str> {
    let is_begin =
        |line: &&str| line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test"));
    let begun = text.lines().filter(is_begin).count();
    let ended = text.lines().filter(|line| line.starts_with("test result: ")).count();
    (ended == 0 || ended != begun).then_some("the program ended before it had run its tests")
}

/// The libraries of which doc tests printed no result. Cargo names each before its lists, of which the newer
/// editions have several.
pub fn untested<'a>(text: &str, documented: &'a BTreeSet<String>) -> Vec<&'a str> {
    let (mut library, mut tested) = ("", BTreeSet::new());
    for line in text.lines() {
        if line.contains("Doc-tests") {
            library = line.split_whitespace().last().unwrap_or_default();
        } else if line.starts_with("test result: ") {
            tested.insert(library);
        }
    }
    documented.iter().map(String::as_str).filter(|library| !tested.contains(library)).collect()
}

/// Whether a program has the standard harness, which can print the seconds of each test.
fn has_times(program: &Path, libraries: &OsString, said: &Path) -> bool {
    // Into a file: a pipe stays open as long as anything that the program has started.
    let Ok(file) = File::create(said) else { return false };
    let mut help = Command::new("timeout");
    // In the group of the run, so that an interrupt reaches it.
    help.args(["--foreground", "--kill-after=5", HELP_SECONDS_MAX]).arg(program).arg("--help");
    help.env("LD_LIBRARY_PATH", libraries).stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
    help.status().is_ok()
        && std::fs::read(said).is_ok_and(|said| String::from_utf8_lossy(&said).contains("--report-time"))
}

#[cfg(test)]
mod tests {
    use super::{Environment, Phase, Program, incomplete, untested};
    use crate::test::processes::Run;
    use crate::test::report::Outcome;
    use crate::test::seeds::Seeds;
    use std::ffi::OsString;
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    /// The outcome of a line for a shell that runs in a phase, with a limit.
    fn outcome(line: &str, phase: Phase, limit: Duration) -> Outcome {
        let (output, run) = (tempfile::tempdir().unwrap(), Run::unwatched());
        let environment = Environment {
            run: &run,
            output: output.path().to_owned(),
            libraries: OsString::new(),
            seeds: Seeds::usual(),
            limit,
            phase: Mutex::new(phase),
        };
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        environment.run_command("a line".to_owned(), command, 0)
    }

    fn run(line: &str) -> Outcome {
        outcome(line, Phase::Building, Duration::ZERO)
    }

    #[test]
    fn a_program_that_fails_without_a_failed_test_is_a_failure() {
        let outcome = run("echo 'test result: ok. 3 passed; 0 failed; 0 ignored;'; exit 7");
        assert!(!outcome.is_green && outcome.text.contains("exit status: 7"), "{}", outcome.text);
        assert_eq!(outcome.tests.passed, 3);
    }

    #[test]
    fn a_program_that_ends_well_is_green() {
        let outcome =
            run("echo 'test a ... ok <0.250s>'; echo 'test result: ok. 1 passed; 0 failed; 2 ignored;'");
        assert!(outcome.is_green);
        assert_eq!((outcome.tests.passed, outcome.tests.ignored), (1, 2));
        assert_eq!(outcome.tests.seconds, [("a".to_owned(), 0.25)]);
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let found = outcome("sleep 600", Phase::Built(Instant::now()), Duration::from_millis(50));
        assert!(!found.is_green && found.text.contains("still running after 0 s"), "{}", found.text);
    }

    #[test]
    fn a_limit_counts_from_the_end_of_the_build() {
        let found = outcome("sleep 0.2", Phase::Building, Duration::ZERO);
        assert!(found.is_green, "{}", found.text);
        let found = outcome("sleep 0.2", Phase::Built(Instant::now()), Duration::from_secs(600));
        assert!(found.is_green, "{}", found.text);
    }

    #[test]
    fn a_program_beside_a_build_that_fails_is_ended() {
        let found = outcome("sleep 600", Phase::Failed, Duration::from_secs(600));
        assert!(!found.is_green && found.text.contains("because the build failed"), "{}", found.text);
    }

    #[test]
    fn a_program_that_breaks_off_in_one_of_its_lists_is_found() {
        let list = |count: usize| format!("\nrunning {count} tests\ntest a ... ok\n\n");
        let result = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let of = |text: String| incomplete(&text).is_some();
        assert!(!of(list(1) + result) && !of("running 1 test\n".to_owned() + result));
        assert!(of(String::new()) && of(list(1)));
        assert!(of(list(1) + result + &list(5)), "it ended in the second list");
        assert!(!of(list(1) + result + &list(5) + result));
    }

    #[test]
    fn libraries_without_a_result_of_their_documentation_are_found() {
        let documented = ["one", "other"].map(str::to_owned).into();
        let result = "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n";
        let one = format!("   Doc-tests one\n{result}{result}");
        assert_eq!(untested("", &documented), ["one", "other"]);
        assert_eq!(untested(&one, &documented), ["other"]);
        assert_eq!(untested(&format!("{one}   Doc-tests other\n"), &documented), ["other"], "it broke off");
        let coloured = format!("{one}\u{1b}[1m\u{1b}[92m   Doc-tests\u{1b}[0m other\n{result}");
        assert!(untested(&coloured, &documented).is_empty());
    }

    #[test]
    fn a_program_without_tests_is_found() {
        let outcome = run("echo 'running 0 tests'; echo 'test result: ok. 0 passed; 0 failed; 0 ignored;'");
        let program = |target: &str| Program {
            package: "a".to_owned(),
            target: target.to_owned(),
            file: PathBuf::new(),
            manifest: PathBuf::new(),
        };
        assert!(program("cases").shortfall(&outcome, true).is_some());
        assert!(program("cases").shortfall(&outcome, false).is_none(), "a part of names");
        assert!(program("lib").shortfall(&outcome, true).is_none(), "a library without unit tests");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_processor_time_of_children_counts() {
        let outcome = run("sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done'");
        assert!(Duration::ZERO < outcome.processor && outcome.processor <= 2 * outcome.took);
    }
}
