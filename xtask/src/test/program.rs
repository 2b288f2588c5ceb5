//! One test program: how it is started, and what it says.

use super::Places;
use super::report::{Outcome, Tests};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longest time of a program in a usual run. One that still runs then hangs.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// Longest time of a program in a long run.
const LONG_LIMIT: Duration = Duration::from_secs(4 * 60 * 60);
/// Time between two looks at a program that runs.
const LOOK: Duration = Duration::from_millis(20);

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
}

/// The settings that all programs of a run share.
pub struct Environment {
    output: PathBuf,
    libraries: OsString,
    is_long: bool,
}

impl Environment {
    /// The environment of a run; the folders of shared libraries come before the user's.
    pub fn of(places: &Places, libraries: &[PathBuf], is_long: bool) -> Self {
        let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = libraries.iter().cloned().chain(std::env::split_paths(&given));
        let libraries = std::env::join_paths(folders).unwrap_or(given);
        Self { output: places.output.clone(), libraries, is_long }
    }

    /// The file for the output of a job.
    fn output_file(&self, name: &str, round: usize, ending: &str) -> PathBuf {
        self.output.join(format!("{}.{round}.{ending}", name.replace(['/', ' '], "-")))
    }

    fn limit(&self) -> Duration {
        if self.is_long { LONG_LIMIT } else { LIMIT }
    }

    /// Runs a test program, with `niceness` behind other programs.
    pub fn run(&self, program: &Program, arguments: &[String], niceness: u8, round: usize) -> Outcome {
        let name = program.name();
        let seconds = self.output_file(&name, round, "seconds");
        let mut command = Command::new("nice");
        command
            .arg(format!("-n{niceness}"))
            .arg(&program.file)
            .args(arguments)
            .current_dir(&program.manifest);
        command.env("CARGO_MANIFEST_DIR", &program.manifest).env("LD_LIBRARY_PATH", &self.libraries);
        command.env("THARSIS_TEST_SECONDS", &seconds);
        if self.is_long {
            command.env("THARSIS_LONG", "1");
        }
        if has_times(&program.file, &self.libraries) {
            // The times of single tests are an unstable option of the standard harness.
            command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time"]);
        }
        let mut outcome = self.run_command(name, command, round);
        if outcome.is_green && !outcome.text.contains("test result: ") {
            // A test that ends the process ends it well, and the others did not run.
            outcome.is_green = false;
            outcome.text.push_str("\nthe program ended before it had run its tests\n");
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
        let ended = started(&mut command, &output)
            .and_then(|child| wait(child, start + self.limit(), &mut processor));
        let mut text = String::from_utf8_lossy(&std::fs::read(&output).unwrap_or_default()).into_owned();
        let failure = match ended {
            Ok(Some(status)) if status.success() => None,
            Ok(Some(status)) => Some(status.to_string()),
            Ok(None) => Some(format!("still running after {} s, so it was killed", self.limit().as_secs())),
            Err(error) => Some(format!("could not be run: {error}")),
        };
        if let Some(failure) = &failure {
            text.push_str(&format!("\n{name}: {failure}\n"));
        }
        let tests = Tests::read(&text);
        Outcome { name, took: start.elapsed(), processor, tests, is_green: failure.is_none(), text }
    }
}

fn started(command: &mut Command, output: &Path) -> std::io::Result<Child> {
    let file = File::create(output)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()
}

/// Waits for a child; kills it at the deadline, and says none then. `processor` gets its processor time.
fn wait(
    mut child: Child,
    deadline: Instant,
    processor: &mut Duration,
) -> std::io::Result<Option<ExitStatus>> {
    loop {
        // Before the child is taken from the process table, which ends the account.
        *processor = processor_time(child.id()).unwrap_or(*processor);
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if deadline <= Instant::now() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
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

/// Whether a program has the standard harness, which can print the seconds of each test.
fn has_times(program: &Path, libraries: &OsString) -> bool {
    let help = Command::new(program).arg("--help").env("LD_LIBRARY_PATH", libraries).output();
    help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--report-time"))
}

#[cfg(test)]
mod tests {
    use super::{Environment, wait};
    use std::ffi::OsString;
    use std::process::Command;
    use std::time::{Duration, Instant};

    fn run(line: &str) -> super::Outcome {
        let output = std::env::temp_dir().join(format!("xtask-program-{}", std::process::id()));
        std::fs::create_dir_all(&output).unwrap();
        let environment = Environment { output, libraries: OsString::new(), is_long: false };
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        environment.run_command(line.replace('/', " "), command, 0)
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
    fn a_program_that_hangs_is_killed() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let deadline = Instant::now() + Duration::from_millis(50);
        let mut processor = Duration::ZERO;
        assert!(wait(child, deadline, &mut processor).unwrap().is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_processor_time_of_children_counts() {
        let outcome = run("sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done'");
        assert!(Duration::ZERO < outcome.processor && outcome.processor <= 2 * outcome.took);
    }
}
