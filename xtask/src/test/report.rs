//! The results of a run: counts, seconds of programs, the slowest tests, and the output of what failed.

#![allow(clippy::print_stdout, reason = "the report is for the person or the log that runs the tests")]

use super::seeds::Seeds;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Most bytes that a kept target folder may have behind a sweep: those of a run from nothing, 14.7e9, and
/// some that the sweep takes for parts of this state. CONTRIBUTING.md names the number.
const BYTES_MAX: u64 = 16_000_000_000;
/// Slowest tests that are printed.
const SLOWEST_COUNT: usize = 30;
/// Beginning of the line in which a test says that it, or a part of it, cannot run on this machine. See
/// `tests/trials`.
const NOT_RUN: &str = "NOT RUN, ";
/// File of the seconds of the last run, in the target folder.
const HISTORY_FILE: &str = "test-seconds.tsv";

/// The tests that a program ran, as it printed them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tests {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that were left out.
    pub ignored: usize,
    /// Names of tests that were left out, with the reason if there is one.
    pub skipped: Vec<String>,
    /// Reasons of tests that left out all or a part of themselves.
    pub left_out: Vec<String>,
    /// Names and seconds of single tests, where they are known.
    pub seconds: Vec<(String, f64)>,
}

/// The result of one job.
pub struct Outcome {
    /// Name of the job.
    pub name: String,
    /// Its time on the wall.
    pub took: Duration,
    /// Its time on processors, with that of processes that it waited for.
    pub processor: Duration,
    /// The tests in it.
    pub tests: Tests,
    /// Whether it ended well.
    pub is_green: bool,
    /// All that it printed.
    pub text: String,
    /// Messages of cargo that were in it, if it is a command of cargo.
    pub messages: Vec<Value>,
}

impl Outcome {
    /// The outcome as that of a job that has failed for a reason which it did not see.
    #[must_use]
    pub fn failed(mut self, problem: &str) -> Self {
        self.is_green = false;
        self.text.push_str(&format!("\n{problem}\n"));
        self
    }

    /// Takes cargo's messages out of the text.
    #[must_use]
    pub fn with_messages(mut self) -> Self {
        let mut said = String::new();
        for line in std::mem::take(&mut self.text).split_inclusive('\n') {
            match line.starts_with("{\"reason\":").then(|| serde_json::from_str(line)) {
                Some(Ok(message)) => self.messages.push(message),
                _ => said.push_str(line),
            }
        }
        self.text = said;
        self
    }
}

/// Seconds of the last run, by job.
#[derive(Default)]
pub struct History(BTreeMap<String, f64>);

/// A line of the report.
struct Ended {
    name: String,
    took: Duration,
    processor: Duration,
    tests: usize,
}

/// The results of a run so far.
#[derive(Default)]
pub struct Report {
    phases: Vec<(&'static str, Duration)>,
    jobs: Vec<Ended>,
    tests: Tests,
    failed_jobs: Vec<String>,
    /// Failed tests; a job that failed without one counts as one.
    failures: usize,
    /// Bytes of the target folder.
    bytes: Option<u64>,
}

impl Tests {
    /// Reads the lines of the standard harness and of libtest-mimic.
    pub fn read(text: &str) -> Self {
        let mut tests = Self::default();
        for line in text.lines() {
            if let Some(counts) = line.strip_prefix("test result: ") {
                tests.passed += count(counts, "passed");
                tests.failed += count(counts, "failed");
                tests.ignored += count(counts, "ignored");
            } else if let Some(skipped) = skipped(line) {
                tests.skipped.push(skipped);
            } else if let Some(reason) = line.strip_prefix(NOT_RUN) {
                // It counts as passed: the harness knows nothing of it.
                tests.left_out.push(reason.to_owned());
            } else if let Some((name, seconds)) = timed(line) {
                tests.seconds.push((name.to_owned(), seconds));
            }
        }
        tests
    }

    /// Adds the seconds of trials: lines of a name, a tab and seconds.
    pub fn add_trials(&mut self, lines: &str) {
        let trial = |line: &str| {
            let (name, seconds) = line.split_once('\t')?;
            Some((name.to_owned(), seconds.parse().ok()?))
        };
        self.seconds.extend(lines.lines().filter_map(trial));
    }

    fn add(&mut self, other: Self, program: &str) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped.extend(other.skipped.into_iter().map(|name| format!("{program} {name}")));
        self.left_out.extend(other.left_out.into_iter().map(|reason| format!("{program} {reason}")));
        let named = other.seconds.into_iter().map(|(name, seconds)| (format!("{program} {name}"), seconds));
        self.seconds.extend(named);
    }
}

/// The number before a word: 3 in "ok. 3 passed; 0 failed".
fn count(text: &str, word: &str) -> usize {
    let before = text.split(';').find_map(|part| part.trim().strip_suffix(word));
    before.and_then(|part| part.split_whitespace().last()?.parse().ok()).unwrap_or(0)
}

/// Name and reason of a line `test NAME ... ignored` or `test NAME ... ignored, REASON`.
fn skipped(line: &str) -> Option<String> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let reason = outcome.strip_prefix("ignored")?;
    (reason.is_empty() || reason.starts_with(',')).then(|| format!("{name}{reason}"))
}

/// Name and seconds of a line `test NAME ... ok <0.123s>`.
fn timed(line: &str) -> Option<(&str, f64)> {
    let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let (_, seconds) = outcome.split_once('<')?;
    Some((name, seconds.strip_suffix("s>")?.parse().ok()?))
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}

impl Report {
    /// Runs a phase and keeps its time.
    pub fn phase<T>(&mut self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let outcome = run();
        self.phase_took(name, start.elapsed());
        outcome
    }

    /// Keeps the time of a phase.
    pub fn phase_took(&mut self, name: &'static str, took: Duration) {
        self.phases.push((name, took));
    }

    /// Prints a line for a job, or all it printed if it failed, and keeps its counts. Answers cargo's
    /// messages.
    pub fn add(&mut self, outcome: Outcome) -> Vec<Value> {
        let Outcome { name, took, processor, tests, is_green, text, messages } = outcome;
        let is_failed = !is_green || 0 < tests.failed;
        if is_failed {
            println!("\n==== {name} failed ====\n{text}==== end of {name} ====\n");
            self.failed_jobs.push(name.clone());
            self.failures += tests.failed.max(1);
        }
        let word = if is_failed { "FAILED" } else { "ok" };
        println!(
            "{word:6} {:7.1} s  {name}: {} passed, {} failed",
            took.as_secs_f64(),
            tests.passed,
            tests.failed
        );
        self.jobs.push(Ended { name: name.clone(), took, processor, tests: tests.passed + tests.failed });
        self.tests.add(tests, &name);
        messages
    }

    /// Keeps the size of the target folder, which is a failure if it is limited and more.
    pub fn takes(&mut self, bytes: u64, is_limited: bool) {
        self.bytes = Some(bytes);
        if is_limited && BYTES_MAX < bytes {
            self.failed_jobs.push(format!("the target folder, which may take {}", gigabytes(BYTES_MAX)));
            self.failures += 1;
        }
    }

    /// Whether no test ran.
    pub fn is_empty(&self) -> bool {
        self.tests.passed + self.tests.failed == 0
    }

    /// Whether every job ended well.
    pub fn is_green(&self) -> bool {
        self.failed_jobs.is_empty()
    }

    /// Keeps the seconds of this run for the next one's order.
    pub fn record(&self, history: &mut History) {
        for job in &self.jobs {
            history.0.insert(job.name.clone(), job.took.as_secs_f64());
        }
    }

    /// Prints the seconds of phases and programs, the slowest tests, what failed, and the totals.
    pub fn print(&self, seeds: &Seeds) {
        let mut jobs: Vec<_> = self.jobs.iter().filter(|job| 0 < job.tests).collect();
        jobs.sort_by_key(|job| std::cmp::Reverse(job.took));
        println!("\nseconds of programs, and those on processors");
        for Ended { name, took, processor, tests } in jobs {
            println!("{:9.1} {:9.1}  {name} ({tests} tests)", took.as_secs_f64(), processor.as_secs_f64());
        }
        let mut tests: Vec<_> = self.tests.seconds.iter().collect();
        tests.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        println!("\nslowest tests");
        for (name, seconds) in tests.into_iter().take(SLOWEST_COUNT) {
            println!("{seconds:9.2}  {name}");
        }
        if !self.tests.skipped.is_empty() {
            println!("\nskipped");
        }
        for name in &self.tests.skipped {
            println!("{name}");
        }
        if !self.tests.left_out.is_empty() {
            println!("\ncannot run in full on this machine");
        }
        for reason in &self.tests.left_out {
            println!("{reason}");
        }
        println!("\nseconds of phases");
        for (name, took) in &self.phases {
            println!("{:9.1}  {name}", took.as_secs_f64());
        }
        if let Some(bytes) = self.bytes {
            println!("\nthe target folder takes {}", gigabytes(bytes));
        }
        for name in &self.failed_jobs {
            println!("\nFAILED {name}");
        }
        if seeds.is_long() || seeds.are_named() || !self.is_green() {
            println!("\nseed of property tests: THARSIS_SEED={}", seeds.of_properties());
            println!("part of the listed cases: THARSIS_TEST_PART={}", seeds.part());
        }
        println!("\n{} passed, {} failed, {} skipped", self.tests.passed, self.failures, self.tests.ignored);
    }
}

impl History {
    /// Seconds by the names of jobs.
    #[cfg(test)]
    pub fn of(seconds: &[(&str, f64)]) -> Self {
        Self(seconds.iter().map(|(name, seconds)| ((*name).to_owned(), *seconds)).collect())
    }

    /// The seconds of the last run on this machine, if there was one.
    pub fn read(target: &Path) -> Self {
        let text = std::fs::read_to_string(target.join(HISTORY_FILE)).unwrap_or_default();
        let mut tests = Tests::default();
        tests.add_trials(&text);
        Self(tests.seconds.into_iter().collect())
    }

    /// Seconds of a job; one that never ran comes first.
    pub fn seconds(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(f64::INFINITY)
    }

    /// Writes the seconds for the next run.
    pub fn write(&self, target: &Path) -> Result<()> {
        let lines: String = self.0.iter().map(|(name, seconds)| format!("{name}\t{seconds:.1}\n")).collect();
        std::fs::write(target.join(HISTORY_FILE), lines).context("cannot keep the seconds of this run")
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, Outcome, Report, Tests};
    use std::time::Duration;

    fn outcome(is_green: bool, text: &str) -> Outcome {
        let tests = Tests::read(text);
        Outcome {
            name: "a".to_owned(),
            took: Duration::ZERO,
            processor: Duration::ZERO,
            tests,
            is_green,
            text: text.to_owned(),
            messages: Vec::new(),
        }
    }

    #[test]
    fn messages_of_cargo_are_no_output() {
        let text = "one\n{\"reason\":\"build-finished\",\"success\":true}\n{\"reason\": else\ntwo";
        let found = outcome(true, text).with_messages();
        assert_eq!(found.text, "one\n{\"reason\": else\ntwo");
        assert_eq!(found.messages, [serde_json::json!({"reason": "build-finished", "success": true})]);
    }

    #[test]
    fn counts_of_several_results_are_added_up() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
                    test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let tests = Tests::read(text);
        assert_eq!((tests.passed, tests.failed, tests.ignored), (5, 4, 1));
    }

    #[test]
    fn seconds_are_read_with_names_that_have_spaces() {
        let tests = Tests::read("test src/a.rs - f (line 3) ... ok <1.500s>\ntest b ... ignored\n");
        assert_eq!(tests.seconds, [("src/a.rs - f (line 3)".to_owned(), 1.5)]);
    }

    #[test]
    fn tests_that_are_left_out_are_named() {
        let text = "test a ... ignored\ntest b::c ... ignored, needs a cluster\ntest d ... ok\n\
                    test src/a.rs - f (line 3) ... ignored\ntest e ... ignored_by_nobody\n";
        assert_eq!(Tests::read(text).skipped, ["a", "b::c, needs a cluster", "src/a.rs - f (line 3)"]);
    }

    #[test]
    fn tests_that_leave_themselves_out_are_named() {
        let tests = Tests::read("test a ... \nNOT RUN, no disk\nok\ntest b ... ok\nwas NOT RUN, he said\n");
        assert_eq!(tests.left_out, ["no disk"]);
        let mut report = Report::default();
        report.add(outcome(true, "NOT RUN, no disk\ntest result: ok. 1 passed; 0 failed; 0 ignored;"));
        assert_eq!(report.tests.left_out, ["a no disk"]);
    }

    #[test]
    fn a_target_folder_that_is_too_large_is_a_failure_if_it_has_only_what_the_run_needs() {
        let is_green = |bytes, is_limited| {
            let mut report = Report::default();
            report.takes(bytes, is_limited);
            report.is_green()
        };
        assert!(is_green(BYTES_MAX, true) && is_green(BYTES_MAX + 1, false));
        assert!(!is_green(BYTES_MAX + 1, true));
        assert_eq!(super::gigabytes(BYTES_MAX), "16.00 GB");
    }

    #[test]
    fn a_job_that_breaks_off_is_not_green() {
        let mut report = Report::default();
        assert!(report.is_empty());
        report.add(outcome(true, "test result: ok. 3 passed; 0 failed; 0 ignored;"));
        assert!(report.is_green() && !report.is_empty());
        report.add(outcome(false, "it crashed"));
        assert!(!report.is_green());
        assert_eq!((report.tests.passed, report.failures), (3, 1));
        report.add(outcome(true, "test result: FAILED. 1 passed; 4 failed; 0 ignored;"));
        assert_eq!((report.tests.passed, report.failures), (4, 5), "one broke off, and four failed");
    }
}
