//! The amount of work in a test, and trials that report their seconds.
//!
//! `./test` runs a part of the random cases, always the same ones, and of cases that are listed [`part`],
//! which is another one for the next commit. `./test --long` sets [`LONG`]: all cases run, and [`first_seed`]
//! is another one each time. `./test` also sets [`SECONDS`]: programs that bring their own `main` write the
//! seconds of each trial there, which the standard test harness prints itself. A test that cannot run says so
//! by [`not_run`].

#![forbid(unsafe_code)]

mod ports;

pub use libtest_mimic::Trial;
use libtest_mimic::{Arguments, Failed};
pub use ports::free_ports;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Variable that is set in a long run.
pub const LONG: &str = "THARSIS_LONG";
/// Variable with the first seed of random cases. A failing test prints its seed.
pub const SEED: &str = "THARSIS_SEED";
/// Variable with the number of the part of listed cases that a usual run tries.
pub const PART: &str = "THARSIS_TEST_PART";
/// Variable with the file to which the seconds of trials are written.
pub const SECONDS: &str = "THARSIS_TEST_SECONDS";

/// Whether this is a long run.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os(LONG).is_some_and(|value| !value.is_empty() && value != "0")
}

/// The number of cases: `usual`, or `long` in a long run.
#[must_use]
pub fn cases<N>(usual: N, long: N) -> N {
    if is_long() { long } else { usual }
}

/// The number, below `count`, of the part of listed cases that a usual run tries: `./test` counts commits, so
/// that as many runs as there are parts try all. By hand it is the one that the user names by [`PART`], or
/// the first.
///
/// # Panics
///
/// If the user names something that is no number.
#[must_use]
pub fn part(count: u64) -> u64 {
    given_number(PART).unwrap_or_default() % count.max(1)
}

/// The first seed of random cases: [`given_seed`], or else `usual` in a short run and a fresh number in a
/// long one.
///
/// # Panics
///
/// Like [`given_seed`].
#[must_use]
pub fn first_seed(usual: u64) -> u64 {
    given_seed().unwrap_or_else(|| if is_long() { fresh_seed() } else { usual })
}

/// The seed that the user names by [`SEED`].
///
/// # Panics
///
/// If it is no number: other seeds than the one that is meant would be tried.
#[must_use]
pub fn given_seed() -> Option<u64> {
    given_number(SEED)
}

/// The number that the user names by a variable.
///
/// # Panics
///
/// If it is no number.
#[must_use]
pub fn given_number(variable: &str) -> Option<u64> {
    std::env::var_os(variable).map(|value| number(variable, &value.to_string_lossy()))
}

#[allow(clippy::panic, reason = "a test that does not try what it is asked to try fails")]
fn number(variable: &str, value: &str) -> u64 {
    value.parse().unwrap_or_else(|_| panic!("{variable} is no number from 0 to 2^64 - 1: {value:?}"))
}

fn fresh_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// A trial of a function that panics if it fails. It runs on a separate thread, so that its thread-local
/// values go with it.
pub fn trial(name: impl Into<String>, run: impl FnOnce() + Send + 'static) -> Trial {
    trial_of(name, move || std::thread::spawn(run).join().map_err(|panic| message(&*panic)))
}

/// A trial of a function that says what is wrong.
pub fn trial_of(name: impl Into<String>, run: impl FnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    let name = name.into();
    Trial::test(name.clone(), move || {
        let start = Instant::now();
        let outcome = run();
        report(&name, start.elapsed());
        outcome.map_err(Failed::from)
    })
}

/// Runs the trials that the command line names, one after the other unless it says otherwise: each starts
/// several processes, and machines are small.
#[must_use]
pub fn run_in_turn(trials: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Runs the trials that the command line names: first `beside`, this many at a time unless it says otherwise,
/// then `alone`, one after the other. For programs whose trials mostly wait, with a few that measure times.
#[must_use]
pub fn run_beside(threads: usize, beside: Vec<Trial>, alone: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(threads);
    let first = libtest_mimic::run(&arguments, beside);
    arguments.test_threads = Some(1);
    let last = libtest_mimic::run(&arguments, alone);
    if first.has_failed() { first.exit_code() } else { last.exit_code() }
}

/// Runs the trials that the command line names, side by side.
#[must_use]
pub fn run(trials: Vec<Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The message of a panic.
#[must_use]
pub fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}

/// Tells that a test, or a part of it, cannot run on this machine: a line of its own on standard error, which
/// the harness does not keep for itself as it does what a test that passes prints. `./test` lists these
/// lines.
pub fn not_run(reason: impl std::fmt::Display) {
    // A harness with one thread has begun a line.
    let _told = writeln!(std::io::stderr(), "\nNOT RUN, {reason}");
}

/// Appends a line. A run without the file, or one that cannot write it, is still a run.
fn report(name: &str, took: Duration) {
    let Some(path) = std::env::var_os(SECONDS) else { return };
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        let _written = writeln!(file, "{name}\t{:.3}", took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::{SEED, number};

    #[test]
    fn a_seed_is_a_number() {
        assert_eq!(number(SEED, "0"), 0);
        assert_eq!(number(SEED, "18446744073709551615"), u64::MAX);
        for wrong in ["", "-1", "0x10", "1e3", "18446744073709551616", "seed=7"] {
            assert!(std::panic::catch_unwind(|| number(SEED, wrong)).is_err(), "{wrong:?}");
        }
    }
}
