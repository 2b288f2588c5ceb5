//! Continuous integration builds fresh clones in one target folder. `tools/stamp-sources` makes that right:
//! what differs from the clone before is compiled, what does not is taken over.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
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
        let clone = tempfile::tempdir().unwrap();
        let at = clone.path().join("clone");
        self.git(clone.path(), &["clone", "--quiet", self.0.path().to_str().unwrap(), at.to_str().unwrap()]);
        if let Some(word) = word {
            fs::write(at.join("word/src/lib.rs"), format!("pub const WORD: &str = \"{word}\";\n")).unwrap();
        }
        output(Command::new(root().join("tools/stamp-sources")).arg(target).current_dir(&at));
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["run", "--offline", "--package", "say"]).current_dir(&at);
        cargo.env("CARGO_TARGET_DIR", target).env_remove("RUSTC_WORKSPACE_WRAPPER");
        let said = output(&mut cargo);
        // Times of files are whole seconds.
        std::thread::sleep(Duration::from_millis(1_100));
        said
    }
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
