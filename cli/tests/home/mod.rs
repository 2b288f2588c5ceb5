//! A separate home for each test of the real program: its folder, its processes, and checks that nothing
//! stays behind.

#![allow(dead_code, reason = "each of the two programs uses a part of it")]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Long enough for a busy machine.
pub const SOON: Duration = Duration::from_secs(90);
/// A store that starts fast.
pub const SMALL: [&str; 2] = ["--store", "16MiB"];

/// A folder for all files of a test. Its processes are those with the folder in their environment; they are
/// killed when it is dropped.
pub struct Home {
    folder: TempDir,
}

/// The result of a command that ended.
pub struct Ended {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The program, without the settings in this test's environment, in the home.
    pub fn command<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tharsis"));
        without_settings(&mut command).args(words).envs(self.folders()).stdin(Stdio::null());
        command
    }

    /// The variables that name folders: of what may be lost with the machine's next start, and of what may
    /// not.
    pub fn folders(&self) -> [(&str, &Path); 2] {
        [("TMPDIR", self.folder.path()), ("XDG_DATA_HOME", self.folder.path())]
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Ended {
        Ended::of(self.command(words).output().unwrap())
    }

    /// Runs a line in a shell, with the program in its path.
    pub fn paste(&self, line: &str) -> Ended {
        let program = Path::new(env!("CARGO_BIN_EXE_tharsis"));
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        without_settings(&mut shell).args(["-c", line]).env("PATH", path).envs(self.folders());
        Ended::of(shell.stdin(Stdio::null()).output().unwrap())
    }

    /// A background process of the program.
    pub fn spawn<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Child {
        self.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The status that a node reports.
    pub fn status(&self, socket: Option<&str>) -> serde_json::Value {
        let mut words = vec!["status", "--json"];
        words.extend(socket.into_iter().flat_map(|socket| ["--socket", socket]));
        let ended = self.run(words);
        assert_eq!(ended.status, 0, "{}", ended.err);
        serde_json::from_str(&ended.out).unwrap()
    }

    /// Waits until a node sees `count` nodes.
    pub fn await_nodes(&self, socket: Option<&str>, count: usize) {
        await_that(&format!("{count} nodes at {socket:?}"), || {
            self.status(socket)["nodes"].as_array().unwrap().len() == count
        });
    }

    /// Running processes that were started in this home.
    pub fn processes(&self) -> BTreeSet<u32> {
        let wanted = self.folder.path().as_os_str();
        let all = procfs::process::all_processes().unwrap().flatten();
        let ours = all.filter(|process| {
            let runs = process.stat().is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'));
            let home = process.environ().ok().and_then(|all| all.get(OsStr::new("TMPDIR")).cloned());
            runs && home.as_deref() == Some(wanted)
        });
        ours.map(|process| process.pid as u32).collect()
    }

    /// Asserts that nothing is left of these processes: not they, no socket, no segment.
    pub fn assert_clean(&self, processes: &BTreeSet<u32>) {
        assert!(!processes.is_empty(), "there was something to leave behind");
        await_that("no process is left", || self.processes().is_empty());
        assert_eq!(segments(processes), Vec::<String>::new());
        assert_eq!(sockets(self.folder.path()), Vec::<PathBuf>::new());
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let ours = self.processes();
        for pid in &ours {
            kill(*pid, "KILL");
        }
        for segment in segments(&ours) {
            let _gone = std::fs::remove_file(Path::new("/dev/shm").join(segment));
        }
    }
}

impl Ended {
    pub fn of(output: Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let status = output.status.code().unwrap_or_else(|| -output.status.signal().unwrap());
        let ended = Self { status, out: text(output.stdout), err: text(output.stderr) };
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
        ended
    }

    /// The line of the output that begins with `head`, without it.
    pub fn after(&self, head: &str) -> String {
        let line = self.out.lines().find_map(|line| line.strip_prefix(head));
        line.unwrap_or_else(|| panic!("no line {head:?} in:\n{}", self.out)).trim().to_owned()
    }

    /// Asserts the status, and that the error output has every part.
    pub fn assert_refused(&self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, status, "{}{}", self.out, self.err);
        for part in parts {
            assert!(self.err.contains(part), "{part:?} missing in: {}", self.err);
        }
    }
}

/// Takes the settings in this test's environment from a command, and the folder of the user's own nodes.
pub fn without_settings(command: &mut Command) -> &mut Command {
    command.env_remove("XDG_RUNTIME_DIR");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("THARSIS_") || name.starts_with("OTEL_")) {
            command.env_remove(name);
        }
    }
    command
}

/// The root of the workspace. Cargo names the package when the tests run, so that a program that another
/// clone built reads the files of this one.
pub fn root() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("..")
}

/// Names of segments that these processes made.
pub fn segments(processes: &BTreeSet<u32>) -> Vec<String> {
    let names = std::fs::read_dir("/dev/shm").unwrap().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| processes.iter().any(|pid| name.starts_with(&format!("tharsis-{pid}-")))).collect()
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::FileTypeExt;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(sockets(&entry.path()));
        } else if kind.is_socket() {
            found.push(entry.path());
        }
    }
    found
}

/// Sends a signal.
pub fn kill(pid: u32, signal: &str) {
    let _gone = Command::new("kill").args(["-s", signal, &pid.to_string()]).stderr(Stdio::null()).status();
}

pub fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < until, "{what}: not within {SOON:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for a process and collects its output; one that does not end is killed.
pub fn end_of(mut child: Child) -> Ended {
    let until = Instant::now() + SOON;
    while child.try_wait().unwrap().is_none() {
        if until < Instant::now() {
            child.kill().unwrap();
            panic!("process {} did not end within {SOON:?}", child.id());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ended::of(child.wait_with_output().unwrap())
}
