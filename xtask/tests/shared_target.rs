//! Continuous integration builds fresh clones in one target folder. `tools/stamp-sources` makes that right:
//! what differs from the clone before is compiled, what does not is taken over. A tree in which somebody also
//! works has a second target folder, for which the same must hold.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// The root of the tree whose tests run.
fn root() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    Path::new(&folder).parent().unwrap().to_owned()
}

/// The output of a command; its errors end the test.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    format!("{}{said}", String::from_utf8_lossy(&output.stdout))
}

/// A program and a library of it, in a repository. The library says a word.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let package = |name: &str| format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n");
        write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"word\", \"say\"]\n");
        write("word/Cargo.toml", &package("word"));
        write("word/src/lib.rs", "pub const WORD: &str = \"first\";\n");
        write(
            "say/Cargo.toml",
            &format!("{}[dependencies]\nword = {{ path = \"../word\" }}\n", package("say")),
        );
        write("say/src/main.rs", "fn main() { println!(\"{}\", word::WORD) }\n");
        let this = Self(folder);
        for words in [&["init", "--quiet"][..], &["add", "--all"], &["commit", "--quiet", "--message", "all"]]
        {
            this.git(this.0.path(), words);
        }
        this
    }

    fn git(&self, folder: &Path, words: &[&str]) {
        let who = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
        let mut git = Command::new("git");
        // Nor signatures, hooks or anything else that the user has set.
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        output(git.current_dir(folder).args(who).args(words));
    }

    /// A clone that is edited, stamped and run with the shared target folder: what the program says, and
    /// what cargo compiled for it.
    fn run(&self, target: &Path, word: Option<&str>) -> String {
        let clone = self.cloned();
        if let Some(word) = word {
            write_word(clone.path(), word);
        }
        stamp_and_say(clone.path(), target)
    }

    fn cloned(&self) -> TempDir {
        let clone = tempfile::tempdir().unwrap();
        let [from, to] = [&self.0, &clone].map(|folder| folder.path().to_str().unwrap());
        self.git(clone.path(), &["clone", "--quiet", from, to]);
        clone
    }
}

/// Has the library of a tree say another word.
fn write_word(tree: &Path, word: &str) {
    fs::write(tree.join("word/src/lib.rs"), format!("pub const WORD: &str = \"{word}\";\n")).unwrap();
}

/// The command that stamps a tree.
fn stamp(tree: &Path, options: &[&str], target: &Path) -> Command {
    let mut command = Command::new(root().join("tools/stamp-sources"));
    command.args(options).arg(target).current_dir(tree);
    command
}

/// The words of the program of a tree, and what cargo compiled for it.
fn say(tree: &Path, target: &Path) -> String {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--offline", "--package", "say"]).current_dir(tree);
    cargo.env("CARGO_TARGET_DIR", target).env_remove("RUSTC_WORKSPACE_WRAPPER");
    output(&mut cargo)
}

/// Stamps a tree; the words of its program, and what cargo compiled for it.
fn stamp_and_say(tree: &Path, target: &Path) -> String {
    output(&mut stamp(tree, &[], target));
    let said = say(tree, target);
    // Times of files are whole seconds.
    std::thread::sleep(Duration::from_millis(1_100));
    said
}

#[test]
fn an_edit_in_a_second_clone_is_compiled_and_its_absence_in_a_third_too() {
    let (repository, target) = (Repository::new(), tempfile::tempdir().unwrap());
    assert!(repository.run(target.path(), None).contains("first"));
    assert!(repository.run(target.path(), Some("second")).contains("second"));
    assert!(
        repository.run(target.path(), None).contains("first"),
        "the edit of another clone is still there"
    );
}

#[test]
fn a_clone_without_a_change_compiles_nothing() {
    let (repository, target) = (Repository::new(), tempfile::tempdir().unwrap());
    assert!(repository.run(target.path(), None).contains("Compiling"));
    let again = repository.run(target.path(), None);
    assert!(!again.contains("Compiling") && again.contains("first"), "{again}");
}

/// Cargo knows a file outside of a package by its whole path, in the tree that read it.
#[test]
fn an_edit_outside_of_a_package_is_compiled_while_the_tree_before_is_still_there() {
    let (repository, target) = (Repository::new(), tempfile::tempdir().unwrap());
    let first = repository.0.path();
    fs::write(first.join("page"), "first page").unwrap();
    let library = "pub const WORD: &str = include_str!(\"../../page\");\n";
    fs::write(first.join("word/src/lib.rs"), library).unwrap();
    repository.git(first, &["add", "--all"]);
    repository.git(first, &["commit", "--quiet", "--message", "page"]);
    assert!(stamp_and_say(first, target.path()).contains("first page"));
    let second = repository.cloned();
    fs::write(second.path().join("page"), "second page").unwrap();
    assert!(stamp_and_say(second.path(), target.path()).contains("second page"));
    let again = stamp_and_say(second.path(), target.path());
    assert!(!again.contains("Compiling") && again.contains("second page"), "{again}");
    assert!(stamp_and_say(first, target.path()).contains("first page"), "and back");
}

#[test]
fn content_that_came_back_is_compiled_in_the_own_target_folder_of_the_tree() {
    let (repository, kept, own) =
        (Repository::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = repository.0.path();
    let of_the_kept_folder = || {
        output(&mut stamp(tree, &[], kept.path()));
        let said = say(tree, kept.path());
        output(&mut stamp(tree, &["--undo"], kept.path()));
        said
    };
    assert!(of_the_kept_folder().contains("first"));
    write_word(tree, "second");
    assert!(say(tree, own.path()).contains("second"));
    write_word(tree, "first");
    assert!(of_the_kept_folder().contains("first"));
    assert!(say(tree, own.path()).contains("first"), "the kept folder knew the content from before");
}

#[test]
fn a_file_that_is_written_while_a_tree_is_stamped_keeps_its_time() {
    let (repository, kept) = (Repository::new(), tempfile::tempdir().unwrap());
    let tree = repository.0.path();
    let modified = |file: &str| fs::metadata(tree.join(file)).unwrap().modified().unwrap();
    output(&mut stamp(tree, &[], kept.path()));
    output(&mut stamp(tree, &["--undo"], kept.path()));
    let before = modified("say/src/main.rs");
    output(&mut stamp(tree, &[], kept.path()));
    write_word(tree, "second");
    let written = modified("word/src/lib.rs");
    output(&mut stamp(tree, &["--undo"], kept.path()));
    assert_eq!(modified("word/src/lib.rs"), written);
    assert_eq!(modified("say/src/main.rs"), before);
}

#[test]
fn a_tree_whose_script_was_killed_gets_its_times_back_before_the_next_is_stamped() {
    let (killed, next, kept) = (Repository::new(), Repository::new(), tempfile::tempdir().unwrap());
    output(&mut stamp(killed.0.path(), &[], kept.path()));
    write_word(killed.0.path(), "second");
    write_word(killed.0.path(), "first");
    let modified = || fs::metadata(killed.0.path().join("word/src/lib.rs")).unwrap().modified().unwrap();
    let written = modified();
    output(&mut stamp(killed.0.path(), &[], kept.path()));
    assert!(modified() < written, "the content is known from before");
    output(&mut stamp(next.0.path(), &[], kept.path()));
    assert!(written <= modified());
}

/// A run that has given up waiting does not know whose tests still run in the folder.
#[test]
fn a_tree_gives_no_times_back_to_files_of_another() {
    let (first, second, kept) = (Repository::new(), Repository::new(), tempfile::tempdir().unwrap());
    let tree = first.0.path();
    let modified = || fs::metadata(tree.join("word/src/lib.rs")).unwrap().modified().unwrap();
    output(&mut stamp(tree, &[], kept.path()));
    write_word(tree, "second");
    write_word(tree, "first");
    let written = modified();
    output(&mut stamp(tree, &[], kept.path()));
    let given = modified();
    assert!(given < written, "the content is known from before");
    output(&mut stamp(second.0.path(), &["--undo"], kept.path()));
    assert_eq!(modified(), given);
    output(&mut stamp(tree, &["--undo"], kept.path()));
    assert!(written <= modified());
}

/// Gives each file of a folder a time.
fn give_time(folder: &Path, time: SystemTime) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            give_time(&path, time);
        } else {
            File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        }
    }
}

#[test]
fn an_edit_is_compiled_in_a_folder_that_was_built_when_the_clock_was_ahead() {
    let (repository, target) = (Repository::new(), tempfile::tempdir().unwrap());
    assert!(repository.run(target.path(), None).contains("first"));
    give_time(&target.path().join("debug"), SystemTime::now() + Duration::from_secs(3_600));
    assert!(repository.run(target.path(), Some("second")).contains("second"));
}

#[test]
fn a_tree_is_not_stamped_while_tests_run_in_the_folder() {
    let (repository, target) = (Repository::new(), tempfile::tempdir().unwrap());
    let running = File::create(target.path().join("test-run.lock")).unwrap();
    running.lock().unwrap();
    let mut stamping = stamp(repository.0.path(), &[], target.path()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(stamping.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.starts_with("waiting for the run of process "), "{said}");
    assert!(!target.path().join("stamps").exists());
    drop(running);
    assert!(stamping.wait().unwrap().success() && target.path().join("stamps").exists());
}
