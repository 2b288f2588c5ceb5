//! The processes of a run: none of them outlives it, however it ends.
//!
//! Each job is a process group of its own, with a mark in its environment, by which processes are found that
//! have left the group (`setsid`). What a job leaves behind is told to end when the job has ended, and killed
//! if it does not. For a runner that is itself interrupted or killed, a second process watches: it holds the
//! other end of a pipe, and clears up when the pipe breaks. A process that has both left its group and
//! cleared its environment is not found.

use super::lock::Lock;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, kill_process_group, waitid};
use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Variable of the mark. Not one of the product's: those it does not know are refused by some programs.
const MARK: &str = "XTASK_TEST_JOB";
/// Time for processes to end by themselves before they are killed.
const GRACE: Duration = Duration::from_secs(2);
/// Time between two looks at processes.
pub const LOOK: Duration = Duration::from_millis(20);

/// Niceness of computing programs and of cargo: the deadlines of waiting ones are short.
pub const NICENESS: u8 = 10;

/// A run, whose processes end with it.
pub struct Run {
    id: String,
    jobs: AtomicUsize,
    watcher: Child,
    /// Nothing is written to it: its end is the message.
    pipe: Option<ChildStdin>,
}

/// A process with all that it starts.
pub struct Job {
    child: Child,
    mark: String,
}

impl Run {
    /// Begins a run, with `watcher` as the program that calls [`watch`] with the run's id and `scratch`. It
    /// has the lock too, so that no other run begins before all is cleared up.
    ///
    /// # Errors
    ///
    /// If the watcher cannot be started.
    pub fn begin(mut watcher: Command, scratch: &Path, lock: &Lock) -> Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let id = format!("{}.{since}", std::process::id());
        watcher.args([&*id, "--scratch"]).arg(scratch);
        let lock = lock.share().context("cannot share the lock")?;
        // In a group of its own: what interrupts the runner must not interrupt it.
        let spawned = watcher.process_group(0).stdin(Stdio::piped()).stdout(lock).spawn();
        let mut watcher = spawned.context("cannot start the watcher of the run")?;
        let pipe = watcher.stdin.take();
        Ok(Self { id, jobs: AtomicUsize::new(0), watcher, pipe })
    }

    /// Starts a command as a job of the run.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start(&self, command: &mut Command) -> std::io::Result<Job> {
        let mark = format!("{}.{}.", self.id, self.jobs.fetch_add(1, Ordering::Relaxed));
        let child = command.env(MARK, &mark).process_group(0).spawn()?;
        Ok(Job { child, mark })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ended = self.watcher.wait();
    }
}

impl Job {
    /// The output that was piped.
    pub fn output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Its process id, which is also that of its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended. Its account stays until [`Job::end`].
    ///
    /// # Errors
    ///
    /// If the system does not tell.
    pub fn has_ended(&self) -> std::io::Result<bool> {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(Pid::from_child(&self.child)), how)?.is_some())
    }

    /// Ends it, if it still runs, and what it has started.
    ///
    /// # Errors
    ///
    /// If the system does not tell how it ended.
    pub fn end(mut self) -> std::io::Result<ExitStatus> {
        // Before it is taken from the table of processes: until then nobody else gets its id.
        end_all(Some(Pid::from_child(&self.child)), &self.mark);
        self.child.wait()
    }

    /// Waits for it, and ends what it leaves behind.
    ///
    /// # Errors
    ///
    /// If the system does not tell how it ended.
    pub fn wait(self) -> std::io::Result<ExitStatus> {
        while !self.has_ended()? {
            std::thread::sleep(LOOK);
        }
        self.end()
    }

    /// Waits for it like [`Job::wait`]; ends it if it still runs after `limit`, and answers nothing.
    ///
    /// # Errors
    ///
    /// If the system does not tell how it ended.
    pub fn wait_within(self, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        while !self.has_ended()? {
            if deadline <= Instant::now() {
                self.end()?;
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
        self.end().map(Some)
    }
}

/// The command, behind others by this niceness.
pub fn nicer(command: &Command, niceness: u8) -> Command {
    let mut nicer = Command::new("nice");
    nicer.arg(format!("-n{niceness}")).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nicer.env(name, value),
            None => nicer.env_remove(name),
        };
    }
    nicer.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
    nicer
}

/// The watcher's work: waits until the run of this id has ended, then ends what is left of it, and removes
/// the folder `scratch` of its compilers.
pub fn watch(run: &str, scratch: &Path) {
    // It says that the pipe is open, or broken; both are the runner's end.
    let _broken = std::io::stdin().read_to_end(&mut Vec::new());
    end_all(None, &format!("{run}."));
    let _gone = std::fs::remove_dir_all(scratch);
}

/// Ends the processes of a group, and the groups of those whose mark begins like this.
fn end_all(group: Option<Pid>, mark: &str) {
    for signal in [Signal::TERM, Signal::KILL] {
        let deadline = Instant::now() + GRACE;
        let mut told = BTreeSet::new();
        loop {
            let found = groups(group, mark);
            if found.is_empty() {
                return;
            }
            for group in found {
                if told.insert(group.as_raw_nonzero()) {
                    // It may have ended.
                    let _gone = kill_process_group(group, signal);
                }
            }
            if deadline <= Instant::now() {
                break;
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// The groups in which a process lives that is meant. Never the own one.
fn groups(group: Option<Pid>, mark: &str) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let process = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()?.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
        let account = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (state, of) = state_and_group(&account)?;
        if state == "Z" || of == getpgrp() {
            return None;
        }
        let is_meant =
            Some(of) == group || has_mark(&std::fs::read(entry.path().join("environ")).ok()?, mark);
        is_meant.then_some(of)
    };
    entries.flatten().filter_map(process).collect()
}

/// State and process group of a line of `/proc/N/stat`. The second field is the program's name in
/// parentheses, which may have spaces and parentheses. See proc_pid_stat(5).
fn state_and_group(account: &str) -> Option<(&str, Pid)> {
    let mut fields = account.rsplit_once(')')?.1.split_whitespace();
    let (state, group) = (fields.next()?, fields.nth(1)?);
    Some((state, Pid::from_raw(group.parse().ok()?)?))
}

/// Whether an environment has a mark that begins like this.
fn has_mark(environment: &[u8], mark: &str) -> bool {
    let marks = environment
        .split(|byte| *byte == 0)
        .filter_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="));
    marks.into_iter().any(|found| found.starts_with(mark.as_bytes()))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    impl Run {
        /// A run that is not watched.
        pub fn unwatched() -> Self {
            let mut watcher = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            let pipe = watcher.stdin.take();
            // Runs of other tests are not this one.
            static RUNS: AtomicUsize = AtomicUsize::new(0);
            let id = format!("{}.unwatched-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
            Self { id, jobs: AtomicUsize::new(0), watcher, pipe }
        }
    }

    fn is_alive(process: &str) -> bool {
        let account = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        state_and_group(&account).is_some_and(|(state, _)| state != "Z")
    }

    /// A job, and the process that it has told to be started.
    fn started(run: &Run, line: &str) -> (Job, String) {
        let mut job = run.start(Command::new("sh").args(["-c", line]).stdout(Stdio::piped())).unwrap();
        let mut sleeper = String::new();
        BufReader::new(job.output().unwrap()).read_line(&mut sleeper).unwrap();
        (job, sleeper.trim().to_owned())
    }

    #[test]
    fn a_job_that_is_ended_takes_its_children_along() {
        let run = Run::unwatched();
        for line in [
            "sleep 600 & echo $!; sleep 600",
            "setsid sleep 600 & echo $!; sleep 600",
            "sh -c 'trap : TERM; while :; do sleep 1; done' & echo $!; sleep 600",
        ] {
            let (job, sleeper) = started(&run, line);
            assert!(is_alive(&sleeper) && !job.has_ended().unwrap(), "{line}");
            assert!(!job.end().unwrap().success());
            assert!(!is_alive(&sleeper), "{line}");
        }
    }

    #[test]
    fn a_job_that_has_ended_leaves_nothing_behind_and_keeps_its_status() {
        let run = Run::unwatched();
        let (_, other) = started(&run, "sleep 600 & echo $!; sleep 600");
        let (job, sleeper) = started(&run, "sleep 600 & echo $!; exit 7");
        assert_eq!(job.wait().unwrap().code(), Some(7));
        assert!(!is_alive(&sleeper) && is_alive(&other), "another job goes on");
        end_all(None, &format!("{}.", run.id));
        assert!(!is_alive(&other));
    }

    #[test]
    fn a_job_that_hangs_is_ended_when_its_time_is_over() {
        let run = Run::unwatched();
        let (job, sleeper) = started(&run, "sleep 600 & echo $!; sleep 600");
        assert!(job.wait_within(Duration::ZERO).unwrap().is_none());
        assert!(!is_alive(&sleeper));
        let (job, _) = started(&run, "echo; exit 7");
        let status = job.wait_within(Duration::from_secs(600)).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(7));
    }

    #[test]
    fn a_mark_is_the_value_of_its_variable() {
        let environment = b"A=1\0XTASK_TEST_JOB=7.8.9.\0B=XTASK_TEST_JOB=1.\0";
        assert!(has_mark(environment, "7.8.") && has_mark(environment, "7.8.9."));
        assert!(!has_mark(environment, "7.8.9.1") && !has_mark(environment, "1."));
        let (state, group) = state_and_group("12 (a) b (c) S 1 34 5").unwrap();
        assert_eq!((state, group), ("S", Pid::from_raw(34).unwrap()));
    }
}
