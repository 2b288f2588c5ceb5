//! `.ci/run` with other programs in the places of cargo and the tests: what it calls, in which folder, and
//! under which lock. `tools/make-room`, which it calls: what empties the folder. `./test` in a hook of git.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The root of the tree whose tests run.
fn root() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    Path::new(&folder).parent().unwrap().to_owned()
}

/// In the place of cargo.
const CARGO: &str = r#"#!/bin/sh
echo "cargo $*" >>"$LOG"
"#;

/// In the place of the tests, which fail.
const TESTS: &str = r#"#!/bin/sh
echo "test ${CARGO_TARGET_DIR:-in the clone} $CARGO_INCREMENTAL $*" >>"$LOG"
if [ -z "${CARGO_TARGET_DIR:-}" ]; then
  lock=${XDG_CACHE_HOME:-}/tharsis-ci.lock
  if [ -e "$lock" ]; then flock --nonblock "$lock" echo "nobody has the lock" >>"$LOG"; fi
  exit 7
fi
if [ -n "${SLEEPS:-}" ]; then
  echo $$ >>"$LOG"
  exec sleep 600
fi
if [ -e /proc/self/fd/9 ]; then echo "the tests have the lock" >>"$LOG"; fi
flock --nonblock "$CARGO_TARGET_DIR.lock" echo "nobody has the lock" >>"$LOG"
echo "$(stat -c %Y one) $(stat -c %Y two)" >>"$LOG"
exit 7
"#;

/// A tree with the script and what it calls.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        let this = Self(tempfile::tempdir().unwrap());
        for file in [".ci/run", "tools/make-room", "tools/stamp-sources"] {
            this.write(&format!("tree/{file}"), &fs::read_to_string(root().join(file)).unwrap());
        }
        this.write("tree/test", TESTS);
        this.write("tree/one", "1");
        this.write("tree/two", "2");
        this.write("bin/cargo", CARGO);
        let made =
            Command::new("git").args(["init", "--quiet", "--template="]).arg(this.path("tree")).status();
        assert!(made.unwrap().success());
        this
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn command(&self) -> Command {
        self.script(".ci/run")
    }

    /// A script of the tree.
    fn script(&self, script: &str) -> Command {
        let mut command = Command::new(self.path("tree").join(script));
        let given = std::env::var_os("PATH").unwrap();
        let folders = [self.path("bin")].into_iter().chain(std::env::split_paths(&given));
        command.env("PATH", std::env::join_paths(folders).unwrap());
        command.env("LOG", self.path("log")).env("XDG_CACHE_HOME", self.path("cache"));
        command.env_remove("CARGO_TARGET_DIR").env_remove("CARGO_INCREMENTAL");
        command
    }

    /// The lines that the programs wrote since the last look.
    fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap();
        fs::remove_file(self.path("log")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// A run: the times of the two files for its tests.
    fn times(&self) -> [u64; 2] {
        failed_as_its_tests(&self.command().output().unwrap());
        let line = self.log().pop().unwrap();
        let (one, two) = line.split_once(' ').unwrap();
        [one, two].map(|time| time.parse().unwrap())
    }
}

fn failed_as_its_tests(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
}

#[test]
fn the_tests_run_in_the_kept_folder_while_the_script_has_its_lock() {
    let tree = Tree::new();
    failed_as_its_tests(&tree.command().args(["--long", "types"]).output().unwrap());
    let kept = tree.path("cache/tharsis-ci");
    let log = tree.log();
    let tests = format!("test {} 0 --sweep --long types", kept.display());
    assert_eq!(log[..2], ["cargo xtask commits --all".to_owned(), tests]);
    assert_eq!(log.len(), 3, "{log:?}");
    assert!(File::open(tree.path("cache/tharsis-ci.lock")).unwrap().try_lock().is_ok(), "it is over");
}

#[test]
fn the_folder_sees_what_differs_and_the_tree_keeps_its_times() {
    let tree = Tree::new();
    let first = tree.times();
    assert_eq!(first[0], first[1]);
    tree.write("tree/one", "3");
    let second = tree.times();
    assert!(first[0] < second[0] && first[1] == second[1], "{first:?} {second:?}");
    // Other content, and the former again, which the folder has seen.
    tree.write("tree/one", "1");
    let written = fs::metadata(tree.path("tree/one")).unwrap().modified().unwrap();
    tree.write("tree/one", "3");
    assert_eq!(tree.times(), second, "as it was");
    let back = fs::metadata(tree.path("tree/one")).unwrap().modified().unwrap();
    assert!(
        written <= back,
        "its own target folder must not take it for older than what was made of the other"
    );
}

#[test]
fn a_second_run_waits_for_the_first() {
    let tree = Tree::new();
    fs::create_dir(tree.path("cache")).unwrap();
    let first = File::create(tree.path("cache/tharsis-ci.lock")).unwrap();
    first.lock().unwrap();
    let mut second = tree.command().stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.starts_with("waiting for another run in "), "{line}");
    assert!(!tree.path("log").exists());
    drop(first);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(7), "{rest}");
    assert!(tree.log()[1].ends_with("/tharsis-ci 0 --sweep"));
}

#[test]
fn a_run_builds_in_the_clone_when_another_one_does_not_end() {
    let tree = Tree::new();
    fs::create_dir_all(tree.path("cache/tharsis-ci")).unwrap();
    // A script, and tests that have outlived theirs: when they end, others can have the folder.
    for (lock, is_free) in [("cache/tharsis-ci.lock", false), ("cache/tharsis-ci/test-run.lock", true)] {
        let held = File::create(tree.path(lock)).unwrap();
        held.lock().unwrap();
        let output = tree.command().env("CI_WAIT_MAX", "0").output().unwrap();
        failed_as_its_tests(&output);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("waiting for ") && said.contains("builds in the clone"), "{lock}: {said}");
        let mut expected = vec!["cargo xtask commits --all", "test in the clone 0 "];
        expected.extend(is_free.then_some("nobody has the lock"));
        assert_eq!(tree.log(), expected, "{lock}");
    }
}

#[test]
fn a_run_that_is_told_to_end_ends_its_tests_and_gives_times_back() {
    let tree = Tree::new();
    let written = fs::metadata(tree.path("tree/one")).unwrap().modified().unwrap();
    let mut run = tree.command().env("SLEEPS", "1").spawn().unwrap();
    let log = || fs::read_to_string(tree.path("log")).unwrap_or_default();
    let sleeper = loop {
        assert!(run.try_wait().unwrap().is_none(), "{}", log());
        if let Some(sleeper) = log().lines().nth(2).filter(|_| log().ends_with('\n')) {
            break sleeper.to_owned();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let told = Command::new("kill").args(["-TERM", &run.id().to_string()]).status();
    assert!(told.unwrap().success() && !run.wait().unwrap().success());
    assert!(!Path::new("/proc").join(&sleeper).exists(), "its tests have ended");
    let back = fs::metadata(tree.path("tree/one")).unwrap().modified().unwrap();
    assert!(written <= back);
    assert!(!tree.path("cache/tharsis-ci/stamps.set-back").exists());
}

#[test]
fn without_a_folder_that_can_be_kept_the_clone_has_its_own() {
    let tree = Tree::new();
    let wanted = ["cargo xtask commits --all", "test in the clone 0 "];
    failed_as_its_tests(&tree.command().env_remove("HOME").env_remove("XDG_CACHE_HOME").output().unwrap());
    assert_eq!(tree.log(), wanted, "no home");
    tree.write("file", "");
    failed_as_its_tests(&tree.command().env("XDG_CACHE_HOME", tree.path("file")).output().unwrap());
    assert_eq!(tree.log(), wanted, "no folder");
}

/// Tests make repositories: they are not that of a hook which runs the tests.
#[test]
fn tests_that_a_hook_of_git_runs_know_nothing_of_its_repository() {
    let tree = Tree::new();
    tree.write("tree/test", &fs::read_to_string(root().join("test")).unwrap());
    let says = "echo \"$* ${GIT_DIR-none} ${GIT_INDEX_FILE-none} ${GIT_EDITOR-none}\" >>\"$LOG\"";
    tree.write("bin/cargo", &format!("#!/bin/sh\n{says}\n"));
    let mut command = tree.script("test");
    command.arg("types").env("GIT_DIR", "/nowhere").env("GIT_INDEX_FILE", "/nowhere/index");
    assert!(command.env("GIT_EDITOR", "an-editor").status().unwrap().success());
    assert_eq!(tree.log(), ["xtask test types none none an-editor"]);
}

/// The files and folders that `make-room` leaves of a folder that a compiler has filled.
fn left(compiler: &str, limits: [&str; 2], is_in_use: bool) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("debug/deps")).unwrap();
    for (file, text) in [("compiler", compiler), ("stamps", ""), ("debug/deps/a", "a")] {
        fs::write(folder.path().join(file), text).unwrap();
    }
    let lock = File::create(folder.path().join("test-run.lock")).unwrap();
    if is_in_use {
        lock.lock().unwrap();
    }
    let status = Command::new(root().join("tools/make-room")).arg(folder.path()).args(limits).status();
    assert!(status.unwrap().success());
    let entries = fs::read_dir(folder.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The words of two calls for a folder on a disk that is full, and that somebody fills between them.
fn make_room_twice() -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut said = String::new();
    for _ in 0..2 {
        fs::create_dir_all(folder.path().join("debug")).unwrap();
        let mut command = Command::new(root().join("tools/make-room"));
        let output = command.arg(folder.path()).args(["1000000", "1000000"]).output().unwrap();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}");
    }
    said
}

#[test]
fn a_folder_is_emptied_if_it_is_too_large_or_the_disk_is_full_or_the_compiler_another() {
    let output = Command::new("rustc").args(["--version", "--verbose"]).output().unwrap();
    let compiler = String::from_utf8(output.stdout).unwrap();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let full = names(&["compiler", "debug", "stamps", "test-run.lock"]);
    let empty = names(&["compiler", "test-run.lock"]);
    let of_full_disk = names(&["compiler", "test-run.lock", "was-full"]);
    let (any, none) = ("1000000", "0");
    assert_eq!(left(&compiler, [any, none], false), full);
    assert_eq!(left(&compiler, [none, none], false), empty, "it is too large");
    assert_eq!(left(&compiler, [any, any], false), of_full_disk, "the disk is full");
    assert_eq!(left("rustc 1.0.0", [any, none], false), empty, "another compiler");
    assert_eq!(left("rustc 1.0.0", [none, any], true), full, "tests still run in it");
    let output = make_room_twice();
    assert_eq!(output.matches("emptying ").count(), 1, "others have filled the disk: {output}");
}
